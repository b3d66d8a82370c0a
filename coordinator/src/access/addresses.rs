//! The addresses at which other machines may reach this one.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;

/// Names of interfaces of fast networks, which are preferred.
const FAST: [&str; 4] = ["ib", "hsn", "opa", "ipogif"];
/// Names of interfaces of bridges and tunnels on this machine, which others rarely reach.
const INNER: [&str; 8] = ["docker", "br-", "veth", "virbr", "cni", "flannel", "tun", "podman"];

/// `HOST:PORT` of a socket that listens here, best first: that of a fast network, loopback last.
pub fn reachable(listen: SocketAddr) -> Vec<String> {
    if !listen.ip().is_unspecified() {
        return vec![listen.to_string()];
    }
    let found = getifaddrs().into_iter().flatten().filter_map(|found| address(&found, listen.is_ipv6()));
    let mut found: Vec<(u8, IpAddr)> = found.collect();
    found.sort_by_key(|(rank, ip)| (*rank, ip.is_ipv6()));
    found.dedup();
    found.into_iter().map(|(_, ip)| SocketAddr::new(ip, listen.port()).to_string()).collect()
}

fn address(found: &InterfaceAddress, v6_too: bool) -> Option<(u8, IpAddr)> {
    if !found.flags.contains(InterfaceFlags::IFF_UP) {
        return None;
    }
    let address = found.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    let v6 = address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())).filter(|_| v6_too);
    let ip = v4.or(v6)?;
    // An address of one link means nothing without the link.
    let link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    (!link_local).then(|| (rank(&found.interface_name, ip), ip))
}

fn rank(interface: &str, ip: IpAddr) -> u8 {
    let among = |names: &[&str]| names.iter().any(|name| interface.starts_with(name));
    match () {
        () if ip.is_loopback() => 3,
        () if among(&FAST) => 0,
        () if among(&INNER) => 2,
        () => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_networks_come_first_and_loopback_last() {
        let outside: IpAddr = [10, 0, 0, 1].into();
        let ranks = [("hsn0", outside), ("eth0", outside), ("docker0", outside), ("lo", [127, 0, 0, 1].into())];
        assert_eq!(ranks.map(|(interface, ip)| rank(interface, ip)), [0, 1, 2, 3]);
        assert_eq!(reachable(([127, 0, 0, 1], 7).into()), ["127.0.0.1:7"]);
        let all = reachable(([0, 0, 0, 0], 7).into());
        assert_eq!(all.last().map(String::as_str), Some("127.0.0.1:7"), "{all:?}");
    }
}
