#!/bin/bash
# Runs a command with a private Docker daemon, which ends with the command:
#   deploy/private-docker.sh COMMAND...              containers have networks, ports are published on this shell's loopback
#   deploy/private-docker.sh --builds COMMAND...     for `docker build --network host` alone: the machine's own network
# Needs root, dockerd and unshare. The command finds the daemon by DOCKER_HOST.
#
# The daemon runs in its own name spaces for processes, mounts and (without --builds) network. So the kernel removes every
# process, mount, bridge and firewall rule when the command ends, also after a crash, and no port of the machine is used.
set -euo pipefail

inside() {
    local mode=$1 folder=$2 options=()
    shift 2
    if [ "$mode" = --builds ]; then
        options=(--bridge=none --iptables=false --ip-forward=false --ip-masq=false)
    else
        ip link set lo up
    fi
    export DOCKER_HOST=unix://$folder/docker.sock
    dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/docker.pid" \
        --host "$DOCKER_HOST" "${options[@]}" >"$folder/dockerd.log" 2>&1 &
    local daemon=$! tries=0
    until docker version >/dev/null 2>&1; do
        tries=$((tries + 1))
        if ! kill -0 $daemon 2>/dev/null || [ $tries -gt 300 ]; then
            echo "dockerd does not start:"
            tail -n 10 "$folder/dockerd.log"
            return 1
        fi
        sleep 0.2
    done
    local status=0
    "$@" || status=$?
    # An orderly end, so that the daemon unmounts its mounts below its folder.
    kill $daemon
    wait $daemon || true
    return $status
}

if [ "${1:-}" = inside ]; then
    shift
    inside "$@"
    exit
fi

mode=--networks
if [ "$1" = --builds ]; then
    mode=--builds
    shift
fi
spaces=(--mount --pid --fork --mount-proc --kill-child)
[ $mode = --builds ] || spaces+=(--net)
folder=$(mktemp -d "${TMPDIR:-/tmp}/powersweep-docker.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
unshare "${spaces[@]}" "$0" inside $mode "$folder" "$@"
