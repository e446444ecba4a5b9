//! Names and addresses by which clients reach the server.

use std::net::{IpAddr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;

use crate::config::{Config, plain_host, read_host};

/// The names and addresses that the server's certificate must cover.
pub(super) fn all(config: &Config) -> Vec<String> {
    let mut names = own(&config.listen);
    let addresses = match wildcard(&config.listen) {
        Some(wildcard) => of_interfaces(wildcard),
        None => Vec::new(),
    };
    let address = config.cluster_address.0.as_deref().map(|address| plain_host(host(address)));
    for name in addresses.into_iter().chain(config.tls_name.0.iter().cloned()).chain(address) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The names of this machine for its own programs, and the host in `listen`.
pub(super) fn own(listen: &str) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = Some(host(listen)).filter(|_| wildcard(listen).is_none());
    let uname = rustix::system::uname();
    let machine = uname.nodename().to_string_lossy();
    for name in [host, Some(&*machine)].into_iter().flatten().filter(|name| read_host(name).is_ok()) {
        let name = plain_host(name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn host(listen: &str) -> &str {
    let host = listen.rsplit_once(':').map_or("", |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Returns the wildcard address, if `listen` has one.
fn wildcard(listen: &str) -> Option<IpAddr> {
    host(listen).parse().ok().filter(IpAddr::is_unspecified)
}

/// Returns the addresses of the network interfaces that `wildcard` stands for, without link-local IPv6
/// addresses, which no URL can name.
fn of_interfaces(wildcard: IpAddr) -> Vec<String> {
    // Without an answer from the system there are none; --tls-name can name them.
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let found = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let v6 = || address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
        v4.or_else(v6)
    });
    let mut found: Vec<IpAddr> = found
        .filter(|address| address.is_ipv4() || wildcard.is_ipv6())
        .filter(|address| !matches!(address, IpAddr::V6(v6) if Ipv6Addr::is_unicast_link_local(v6)))
        .collect();
    found.sort_unstable();
    found.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_as_it_is_reached() {
        for (listen, name) in [
            ("queue.example.org:7070", "queue.example.org"),
            ("[2001:db8::1]:1", "2001:db8::1"),
            ("Queue.example.ORG:1", "queue.example.org"),
            ("[2001:DB8:0::1]:1", "2001:db8::1"),
        ] {
            assert!(own(listen).contains(&name.to_owned()), "{:?}", own(listen));
        }
        for listen in ["0.0.0.0:7070", "[::]:7070", "localhost:7070", "[0:0:0:0:0:0:0:1]:7070"] {
            let names = own(listen);
            assert!(!names.contains(&"0.0.0.0".to_owned()) && !names.contains(&"::".to_owned()), "{names:?}");
            for once in ["localhost", "::1"] {
                assert_eq!(names.iter().filter(|name| *name == once).count(), 1);
            }
        }
    }

    #[test]
    fn a_wildcard_stands_for_the_interfaces_of_its_kind() {
        let v4 = of_interfaces(wildcard("0.0.0.0:1").unwrap());
        assert!(v4.contains(&"127.0.0.1".to_owned()) && v4.iter().all(|a| !a.contains(':')), "{v4:?}");
        let both = of_interfaces(wildcard("[::]:1").unwrap());
        assert!(
            both.contains(&"127.0.0.1".to_owned()) && both.iter().all(|a| !a.starts_with("fe80")),
            "{both:?}"
        );
        assert_eq!(wildcard("127.0.0.1:1"), None);
    }
}
