#!/bin/bash
# Checks the recipes as far as programs of this machine can, and the bill of materials:
#   packaging/check.sh
# Spack, EasyBuild, rattler-build and Apptainer themselves are not needed: recipes are read as the languages that they are
# written in, and modulefiles run with commands that only note their arguments. Needs POWERSWEEP_PYTHON with PyYAML, and
# lua and tclsh for their modulefiles.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${POWERSWEEP_PYTHON:-python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-packaging.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)

fail() {
    echo "packaging-check: FAILED: $*"
    exit 1
}

# Checksums that are told apart: 1, 2 and 3.
for archive in "" -x86_64-unknown-linux-musl -aarch64-unknown-linux-musl; do
    count=$((${count:-0} + 1))
    printf '%064d  powersweep-%s%s.tar.gz\n' "$count" "$VERSION" "$archive"
done >"$scratch/SHA256SUMS"
packaging/recipes.sh "$scratch/SHA256SUMS" "$scratch/recipes"
cd "$scratch/recipes"

"$python" - "$VERSION" <<'PYTHON' || fail "the recipes of Spack, EasyBuild and conda"
import ast, sys
version = sys.argv[1]
source, x86_64, aarch64 = (f"{number:064d}" for number in (1, 2, 3))

# Spack: a class with this version, whose checksum is that of the source.
package = next(node for node in ast.parse(open("package.py").read()).body if isinstance(node, ast.ClassDef))
calls = {}
for node in package.body:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        arguments = [ast.literal_eval(argument) for argument in node.value.args]
        calls.setdefault(node.value.func.id, []).append((arguments, {k.arg: ast.literal_eval(k.value) for k in node.value.keywords}))
assert package.name == "Powersweep" and calls["version"] == [([version], {"sha256": source})], calls
assert {arguments[0].split("@")[0] for arguments, _ in calls["depends_on"]} == {"c", "gmake", "rust"}, calls
assert {node.name for node in package.body if isinstance(node, ast.FunctionDef)} >= {"install", "write_pages"}

# EasyBuild: assignments of its known parameters.
easyconfig = {}
exec(open(f"powersweep-{version}.eb").read(), {"SYSTEM": "SYSTEM"}, easyconfig)
known = {"easyblock", "name", "version", "homepage", "description", "toolchain", "source_urls", "sources", "checksums",
         "sanity_check_paths", "sanity_check_commands", "moduleclass"}
assert set(easyconfig) == known and easyconfig["version"] == version, easyconfig
archive = "%(name)s-%(version)s-{}-unknown-linux-musl.tar.gz"
assert easyconfig["checksums"] == [{archive.format("x86_64"): x86_64, archive.format("aarch64"): aarch64}], easyconfig

# conda.
try:
    import yaml
except ImportError:
    sys.exit(print("packaging-check: recipe.yaml is not read: no PyYAML (POWERSWEEP_PYTHON)"))
recipe = yaml.safe_load(open("recipe.yaml"))
assert set(recipe) == {"schema_version", "context", "package", "source", "build", "requirements", "tests", "about"}
assert recipe["context"]["version"] == version and recipe["source"]["sha256"] == source, recipe
assert all(isinstance(line, str) for line in recipe["build"]["script"] + recipe["tests"][0]["script"]), recipe
PYTHON
checked="Spack, EasyBuild, conda"

for section in arguments files post runscript test labels; do
    grep -q "^%$section" powersweep.def || fail "powersweep.def has no %$section"
done
grep -q "folder=powersweep-$VERSION-x86_64" powersweep.def || fail "powersweep.def names another archive"

# The modulefiles run; they must set the paths of the archive.
expected="bin share/man share/zsh/site-functions"
if command -v lua >/dev/null; then
    found=$(lua - "$VERSION.lua" <<'LUA'
local quiet = function() end
help, whatis, conflict = quiet, quiet, quiet
function pathJoin(a, b) return a .. "/" .. b end
function prepend_path(_, path) print(path) end
dofile(arg[1])
LUA
    )
    checked+=", Lua modulefile"
    [ "$found" = "$(printf "/opt/powersweep/$VERSION/%s\n" $expected)" ] || fail "the Lua modulefile sets $found"
else
    echo "packaging-check: $VERSION.lua is not run: no lua"
fi
if command -v tclsh >/dev/null; then
    found=$(tclsh <<TCL
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {variable path} { puts \$path }
source $VERSION.tcl
TCL
    )
    checked+=", Tcl modulefile"
    [ "$found" = "$(printf "/opt/powersweep/$VERSION/%s\n" $expected)" ] || fail "the Tcl modulefile sets $found"
else
    echo "packaging-check: $VERSION.tcl is not run: no tclsh"
fi

cd - >/dev/null
cargo --quiet xtask sbom >"$scratch/sbom.json"
"$python" - "$scratch/sbom.json" "$VERSION" <<'PYTHON' || fail "the bill of materials"
import json, sys
sbom = json.load(open(sys.argv[1]))
assert (sbom["bomFormat"], sbom["metadata"]["component"]["version"]) == ("CycloneDX", sys.argv[2])
components = {component["bom-ref"]: component for component in sbom["components"]}
assert len(components) == len(sbom["components"]) > 100
without = [name for name, component in components.items() if "hashes" not in component and "powersweep" not in name]
assert not without, without
assert all(component["licenses"][0]["expression"] for component in components.values())
names = {component["name"] for component in components.values()}
assert {"slatedb", "reqwest", "zstd-sys", "tikv-jemalloc-sys"} <= names and "divan" not in names, names
print(f"packaging-check: {len(components)} crates in the bill of materials")
PYTHON
echo "packaging-check: $checked are in order"
