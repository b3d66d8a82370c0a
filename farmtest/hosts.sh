#!/bin/bash
# Hosts for tests on one machine: network namespaces on one isolated bridge. Needs root, iproute2 and
# iptables. PFX (up to 8 letters) keeps the hosts of several callers apart; host I has the address 10.78.0.I.
#   hosts.sh up PFX N            makes hosts 1 to N
#   hosts.sh exec PFX I CMD...   runs a command as host I
#   hosts.sh cut PFX I           takes host I's link down: silence, no resets; `heal` undoes it
#   hosts.sh drop PFX I J        host I hears nothing from host J, J still hears I; `undrop` undoes it
#   hosts.sh loss PFX I P        host I loses P percent of the packets that come in, at random
#   hosts.sh calm PFX I          undoes drops and losses of host I
#   hosts.sh down PFX N          removes everything
set -euo pipefail

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

[ $# -ge 3 ] || usage
verb=$1 prefix=$2
shift 2

inside() {
    local host=$1
    shift
    ip netns exec "$prefix$host" "$@"
}

# A container daemon may forbid forwarding, also on a bridge.
bridge_rule() {
    if [ "$(cat /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null)" = 1 ]; then
        iptables "$1" FORWARD -i "${prefix}br" -o "${prefix}br" -j ACCEPT
    fi
}

case $verb in
up)
    ip link add "${prefix}br" type bridge
    ip link set "${prefix}br" up
    bridge_rule -I
    for ((host = 1; host <= $1; host++)); do
        ip netns add "$prefix$host"
        ip link add "${prefix}v$host" type veth peer name eth0 netns "$prefix$host"
        ip link set "${prefix}v$host" master "${prefix}br" up
        ip -n "$prefix$host" addr add "10.78.0.$host/24" dev eth0
        ip -n "$prefix$host" link set eth0 up
        ip -n "$prefix$host" link set lo up
    done
    ;;
exec)
    host=$1
    shift
    exec ip netns exec "$prefix$host" "$@"
    ;;
cut) ip link set "${prefix}v$1" down ;;
heal) ip link set "${prefix}v$1" up ;;
drop) inside "$1" iptables -A INPUT -s "10.78.0.$2" -j DROP ;;
undrop) inside "$1" iptables -D INPUT -s "10.78.0.$2" -j DROP ;;
loss)
    inside "$1" iptables -A INPUT -i eth0 -m statistic --mode random \
        --probability "$(awk "BEGIN { print $2 / 100 }")" -j DROP
    ;;
calm) inside "$1" iptables -F INPUT ;;
down)
    for ((host = 1; host <= $1; host++)); do ip netns del "$prefix$host" || true; done
    ip link del "${prefix}br" || true
    bridge_rule -D 2>/dev/null || true
    ;;
*) usage ;;
esac
