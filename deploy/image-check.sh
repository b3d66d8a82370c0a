#!/bin/bash
# Builds the image by the Dockerfile, with its own build stage, and checks the result. A registry with the default BUILDER
# may be unreachable, so the builder is made here: Debian with a C compiler, make and this machine's Rust.
#   deploy/image-check.sh
# Needs root and the network; apt installs Docker and debootstrap, if necessary. Exit status 77: skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
IMAGE=powersweep-image-check

cannot() {
    echo "skipped: $*"
    exit 77
}

if [ "${1:-}" != inside ]; then
    [ "$(id -u)" = 0 ] || cannot "only root can make a root file system and start a Docker daemon"
    needed=()
    command -v docker >/dev/null && command -v dockerd >/dev/null || needed+=(docker.io)
    command -v debootstrap >/dev/null || needed+=(debootstrap)
    if [ ${#needed[@]} -gt 0 ]; then
        command -v apt-get >/dev/null || cannot "${needed[*]} missing, and there is no apt-get"
        { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${needed[@]}"; } \
            >/dev/null 2>&1 || cannot "apt-get cannot install ${needed[*]}"
    fi
    exec deploy/private-docker.sh --builds "$0" inside
fi

begin=$SECONDS
root=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-builder.XXXXXX")
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=gcc,libc6-dev,make,ca-certificates bookworm "$root" "$MIRROR" >/dev/null ||
    cannot "debootstrap fails"
toolchain=$(rustc --print sysroot)
mkdir -p "$root/opt/rust"
cp -a "$toolchain/bin" "$toolchain/lib" "$root/opt/rust/"
# The certificates with which this machine reaches registries.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
tar --directory "$root" --create . | docker import --change 'ENV PATH=/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    - "$IMAGE-builder" >/dev/null
rm -rf "$root"
echo "image-check: a builder after $((SECONDS - begin)) s"

DOCKER_BUILDKIT=0 docker build --network host --build-arg "BUILDER=$IMAGE-builder" --tag "$IMAGE" .
echo "image-check: built after $((SECONDS - begin)) s"

docker run --rm --network none "$IMAGE" --version
docker run --rm --network none --tmpfs /scratch "$IMAGE" run --quiet --data /scratch/data | tail -n 5
# Status 7: no coordinator answers. Status 5: the store is unreachable, so the certificates were found.
expect() {
    local wanted=$1 status=0
    shift
    docker run --rm --network none --env AWS_ENDPOINT=https://127.0.0.1:1 --env AWS_ACCESS_KEY_ID=a \
        --env AWS_SECRET_ACCESS_KEY=b "$IMAGE" "$@" || status=$?
    [ $status -eq "$wanted" ] || { echo "image-check: $* ended with status $status, not $wanted"; exit 1; }
}
expect 7 health
expect 5 status --data s3://bucket/data
echo "image-check: $(docker image inspect --format '{{.Size}}' "$IMAGE") bytes, its binary runs the quickstart sweep"
