//! Addresses that nobody is pushed to unless the server's settings allow it: whoever may set a queue's
//! endpoint must not reach through the server what only the server's own network reaches.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges that are refused, each with its name. `docs/webhooks.md` lists them; a test compares.
pub const REFUSED: [(&str, &str); 32] = [
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a carrier's NAT, with metadata services"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "a metadata service"),
    ("169.254.0.0/16", "link-local, with metadata services"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "for protocols, with metadata services"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved, with broadcast"),
    ("::/96", "unspecified, loopback, or IPv4-compatible"),
    ("64:ff9b:1::/48", "NAT64 of a private network"),
    ("100::/64", "to be discarded"),
    ("2001::/32", "Teredo"),
    ("2001:2::/48", "for benchmarks"),
    ("2001:10::/28", "ORCHID"),
    ("2001:20::/28", "ORCHID"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "for documentation"),
    ("5f00::/16", "for segment routing"),
    ("fc00::/7", "unique local (private), with metadata services"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local (private)"),
    ("ff00::/8", "multicast"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
];

/// The range of addresses that stand for IPv4 addresses behind a NAT64 (RFC 6052 §2.1).
const NAT64: Range = Range { first: IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)), bits: 96 };
/// Most ranges that settings allow.
const ALLOWED_MAX: usize = 64;

/// A range of addresses: those that share their first bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    first: IpAddr,
    bits: u32,
}

impl Range {
    /// Parses `ADDRESS/BITS`, or an address alone.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Range, String> {
        let wrong = || format!("expected an address or ADDRESS/BITS, such as 10.0.0.0/8, got {text:?}");
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most {
            return Err(wrong());
        }
        let range = Range { first, bits };
        if number(first) & !range.mask() != 0 {
            return Err(format!("{text} has bits behind its first {bits}: set them to 0"));
        }
        Ok(range)
    }

    /// Mask of the bits that its addresses share.
    fn mask(&self) -> u128 {
        let width = if self.first.is_ipv4() { 32 } else { 128 };
        let all = u128::MAX >> (128 - width);
        // A shift by the whole width has no result: no bit is shared.
        all & all.checked_shl(width - self.bits).unwrap_or(0)
    }

    /// True if an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && number(address) & self.mask() == number(self.first)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// Ranges that are pushed to although they are refused otherwise: endpoints in the server's own network.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Allowed(Vec<Range>);

impl Allowed {
    /// Parses ranges with commas between; empty: none.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Allowed, String> {
        let ranges = text.split(',').map(str::trim).filter(|range| !range.is_empty());
        let ranges = ranges.map(Range::parse).collect::<Result<Vec<_>, _>>()?;
        if ranges.len() > ALLOWED_MAX {
            return Err(format!("expected at most {ALLOWED_MAX} ranges, got {}", ranges.len()));
        }
        Ok(Allowed(ranges))
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if an address is in one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address.to_canonical()))
    }

    /// Checks that an address may be pushed to.
    ///
    /// # Errors
    /// Why not, and what would be right.
    pub fn check(&self, address: IpAddr) -> Result<(), String> {
        match refused(address) {
            Some(name) if !self.contains(address) => Err(format!(
                "the address {address} is refused ({name}); the server's setting push.allowed_addresses opens ranges"
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.0.iter().map(Range::to_string).collect();
        f.write_str(&ranges.join(","))
    }
}

/// The name of the refused range that an address is in, if it is in one. An IPv6 address that stands for one
/// of IPv4 is judged as that.
fn refused(address: IpAddr) -> Option<&'static str> {
    let address = match address.to_canonical() {
        IpAddr::V6(behind) if NAT64.contains(IpAddr::V6(behind)) => {
            let [.., a, b, c, d] = behind.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        address => address,
    };
    // A test parses the table; a range that is none would refuse all.
    let holds = |range: &str| Range::parse(range).map_or(true, |range| range.contains(address));
    REFUSED.iter().find(|(range, _)| holds(range)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_table_is_one_of_ranges() {
        for (range, name) in REFUSED {
            let parsed = Range::parse(range).unwrap();
            assert_eq!(parsed.to_string(), range, "{name}");
        }
    }

    #[test]
    fn the_documentation_lists_each_range() {
        let docs = include_str!("../../../docs/webhooks.md");
        for (range, name) in REFUSED {
            assert!(
                docs.contains(&format!("| `{range}` | {name} |")),
                "docs/webhooks.md lacks {range}: {name}"
            );
        }
    }

    #[test]
    fn what_only_the_own_network_reaches_is_refused() {
        let none = Allowed::default();
        for refused in [
            "0.0.0.0",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.8.9.10",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "2001::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            let error = none.check(address(refused)).unwrap_err();
            assert!(error.contains("is refused") && error.contains("push.allowed_addresses"), "{error}");
        }
    }

    #[test]
    fn neighbours_of_refused_ranges_are_not_refused() {
        let none = Allowed::default();
        for open in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.17",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2606:4700::1111",
            "fbff::1",
        ] {
            assert_eq!(none.check(address(open)), Ok(()), "{open}");
        }
    }

    #[test]
    fn settings_allow_ranges_and_no_more() {
        let allowed = Allowed::parse("10.1.0.0/16, ::1,127.0.0.1/32").unwrap();
        assert_eq!(allowed.to_string(), "10.1.0.0/16,::1/128,127.0.0.1/32");
        for open in ["10.1.2.3", "::1", "127.0.0.1", "::ffff:10.1.2.3"] {
            assert_eq!(allowed.check(address(open)), Ok(()), "{open}");
        }
        for refused in ["10.2.0.1", "::2", "127.0.0.2"] {
            assert!(allowed.check(address(refused)).is_err(), "{refused}");
        }
        let all = Allowed::parse("0.0.0.0/0,::/0").unwrap();
        assert!(all.contains(address("10.0.0.1")) && all.contains(address("fe80::1")));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["x", "10.0.0.0/33", "::/129", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/-1", "10.0/8", "/8"] {
            assert!(Allowed::parse(text).is_err(), "{text}");
        }
        assert!(Allowed::parse(&"10.0.0.0/8,".repeat(65)).is_err());
        assert!(Allowed::parse(" ,").unwrap().is_empty());
    }
}
