#!/bin/bash
# Fills the recipes in packaging/recipes with version and checksums:
#   packaging/recipes.sh SHA256SUMS FOLDER     SHA256SUMS: of packaging/build-release.sh
# POWERSWEEP_RELEASES is the address of the archives' folder, by default that of SHA256SUMS. So no recipe of an older
# version can be left behind: the recipes of a release come from its build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SUMS=$(realpath "$1")
FOLDER=$(realpath -m "$2")
RELEASES=${POWERSWEEP_RELEASES:-file://$(dirname "$SUMS")}
value() {
    sed -n "/^\[workspace.package\]/,/^\[/ s/^$1 = \"\(.*\)\"/\1/p" Cargo.toml
}
VERSION=$(value version)

# sum ARCHIVE: its checksum; zeros for one that was not built.
sum() {
    awk -v name="$1" '$2 == name { found = $1 } END { print found ? found : sprintf("%064d", 0) }' "$SUMS"
}

mkdir -p "$FOLDER"
for recipe in packaging/recipes/*; do
    filled=$FOLDER/$(basename "$recipe" | sed "s/VERSION/$VERSION/")
    sed -e "s|@VERSION@|$VERSION|g" -e "s|@RUST@|$(value rust-version)|g" -e "s|@RELEASES@|$RELEASES|g" \
        -e "s|@SHA256_SOURCE@|$(sum "powersweep-$VERSION.tar.gz")|g" \
        -e "s|@SHA256_X86_64@|$(sum "powersweep-$VERSION-x86_64-unknown-linux-musl.tar.gz")|g" \
        -e "s|@SHA256_AARCH64@|$(sum "powersweep-$VERSION-aarch64-unknown-linux-musl.tar.gz")|g" "$recipe" >"$filled"
    if grep -n '@[A-Z0-9_]*@' "$filled"; then
        echo "recipes: $recipe has a name that is not known"
        exit 1
    fi
done
