#!/bin/bash
# Builds a release into a folder: static binaries in tarballs, the source, recipes with checksums, SHA256SUMS.
#   packaging/build-release.sh DIST [TARGET...]     TARGET: x86_64-unknown-linux-musl and aarch64-unknown-linux-musl by default
# Needs the targets of Rust (`rustup target add TARGET`), and cargo-zigbuild with zig, a C compiler for any target (`pip
# install cargo-zigbuild ziglang`); without these, musl-gcc for this machine's target. Exit status 77: one of them is missing.
#
# The same commit gives the same files: archives are sorted and have the commit's time (SOURCE_DATE_EPOCH sets another one).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
DIST=$(realpath -m "$1")
shift
TARGETS=("$@")
[ ${#TARGETS[@]} -gt 0 ] || TARGETS=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
TARGET_DIR=${CARGO_TARGET_DIR:-target}
HOST=$(uname -m)-unknown-linux-musl
VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# A binary that grows beyond this has a dependency that nobody noticed.
MIB_MAX=60

cannot() {
    echo "skipped: $*"
    exit 77
}

fail() {
    echo "build-release: FAILED: $*"
    exit 1
}

# archive NAME FOLDER: the folder as NAME.tar.gz, the same bytes for the same files.
archive() {
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
        --directory "$(dirname "$2")" "$(basename "$2")" | gzip --no-name -9 >"$DIST/$1.tar.gz"
}

# compile TARGET
compile() {
    local arguments=(--release --locked --package powersweep-cli --features cloud,figures,wasm --target "$1")
    local installed
    installed=$(rustc --print sysroot)/lib/rustlib/$1
    [ -d "$installed" ] || rustup target add "$1" || cannot "Rust has no target $1, and rustup cannot add it"
    if command -v cargo-zigbuild >/dev/null; then
        cargo zigbuild "${arguments[@]}"
    elif [ "$1" = "$HOST" ] && command -v musl-gcc >/dev/null; then
        cargo build "${arguments[@]}"
    else
        cannot "no C compiler for $1: neither cargo-zigbuild nor musl-gcc"
    fi
}

# is_static BINARY: no program interpreter and no library is named in it.
is_static() {
    ! LC_ALL=C readelf --program-headers --dynamic "$1" | grep -E 'INTERP|NEEDED'
}

# stage TARGET FOLDER: the content of a tarball. Completions and manual pages are the same on every target: the first
# binary that runs here writes them.
stage() {
    local binary=$TARGET_DIR/$1/release/powersweep folder=$2 shell
    mkdir -p "$folder"/bin "$folder"/share/{doc/powersweep,man/man1,bash-completion/completions,zsh/site-functions} \
        "$folder"/share/{fish/vendor_completions.d,elvish/lib,powershell}
    cp "$binary" "$folder/bin/powersweep"
    cp README.md SECURITY.md LICENSE-APACHE LICENSE-MIT "$folder/share/doc/powersweep"
    # Of libraries and fonts that are part of the binary.
    cp figures/vendor/*.LICENSE "$folder/share/doc/powersweep"
    cp figures/fonts/LICENSE "$folder/share/doc/powersweep/liberation-fonts.LICENSE"
    cargo --quiet xtask sbom "$1" >"$folder/share/doc/powersweep/sbom.cdx.json"
    "$runs_here" man --output "$folder/share/man/man1" >/dev/null
    "$runs_here" completions bash >"$folder/share/bash-completion/completions/powersweep"
    "$runs_here" completions zsh >"$folder/share/zsh/site-functions/_powersweep"
    "$runs_here" completions fish >"$folder/share/fish/vendor_completions.d/powersweep.fish"
    "$runs_here" completions elvish >"$folder/share/elvish/lib/powersweep.elv"
    "$runs_here" completions powershell >"$folder/share/powershell/powersweep.ps1"
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-release.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$DIST"

runs_here=
for target in "${TARGETS[@]}"; do
    compile "$target"
    binary=$TARGET_DIR/$target/release/powersweep
    is_static "$binary" || fail "$binary is not static"
    bytes=$(stat --format %s "$binary")
    echo "build-release: $target: $((bytes / 1024)) KiB"
    [ $((bytes >> 20)) -lt $MIB_MAX ] || fail "$binary has more than $MIB_MAX MiB"
    [ "$target" != "$HOST" ] || runs_here=$binary
done
# Built for other machines only: the binary of this one.
[ -n "$runs_here" ] || { cargo build --release --locked --package powersweep-cli && runs_here=$TARGET_DIR/release/powersweep; }
[ "$("$runs_here" --version)" = "powersweep $VERSION" ] || fail "$("$runs_here" --version), not $VERSION"

for target in "${TARGETS[@]}"; do
    name=powersweep-$VERSION-$target
    stage "$target" "$scratch/$name"
    archive "$name" "$scratch/$name"
done
git archive --format=tar --prefix="powersweep-$VERSION/" HEAD | gzip --no-name -9 >"$DIST/powersweep-$VERSION.tar.gz"
(cd "$DIST" && sha256sum powersweep-"$VERSION"*.tar.gz >SHA256SUMS)
packaging/recipes.sh "$DIST/SHA256SUMS" "$DIST/recipes"
echo "build-release: $(wc -l <"$DIST/SHA256SUMS") archives in $DIST"
