//! Addresses of endpoints.

use std::net::{IpAddr, Ipv6Addr};

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use crate::address::Allowed;

/// The address of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// True with TLS.
    pub is_tls: bool,
    authority: Authority,
    /// Path and query, with a slash at the beginning.
    path: String,
}

impl Target {
    /// Parses `https://HOST[:PORT][/PATH][?QUERY]`, or with `http`.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Target, String> {
        let wrong = || "expected an address such as https://example.com/hooks".to_owned();
        if text.contains('#') {
            return Err("expected an address without a fragment (#)".to_owned());
        }
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err("expected no name and password in the address: verify signatures".to_owned());
        }
        let in_brackets = authority.host().strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if in_brackets.is_some_and(|address| address.parse::<Ipv6Addr>().is_err()) {
            return Err("expected an IPv6 address between the brackets, without a zone (%25...)".to_owned());
        }
        // A port that is none is not told from none at all.
        let has_port = authority.as_str() != authority.host();
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err("expected a port from 1 to 65535".to_owned());
        }
        let path = uri.path_and_query().map_or("", PathAndQuery::as_str);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Target { is_tls, authority: authority.clone(), path })
    }

    /// Checks what can be known before the host is looked up.
    ///
    /// # Errors
    /// An address that is refused; clear text, where no range is opened for it.
    pub fn check(&self, allowed: &Allowed) -> Result<(), String> {
        if !self.is_tls && allowed.is_empty() {
            return Err("expected https://; http:// is for addresses that the server's setting \
                push.allowed_addresses opens"
                .to_owned());
        }
        match self.host().parse::<IpAddr>() {
            Ok(address) => self.check_address(address, allowed),
            Err(_) => Ok(()),
        }
    }

    /// Checks that an address may be connected with.
    ///
    /// # Errors
    /// Why not, and what would be right.
    pub fn check_address(&self, address: IpAddr, allowed: &Allowed) -> Result<(), String> {
        if !self.is_tls && !allowed.contains(address) {
            return Err(format!(
                "http:// is only for addresses that the server's setting push.allowed_addresses opens, and \
                {address} is none of them: use https://"
            ));
        }
        allowed.check(address)
    }

    /// The host, without brackets.
    pub fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_tls { 443 } else { 80 })
    }

    /// The text for the field `host`.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Path and query.
    pub fn path(&self) -> &str {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, is_tls, host, port, path) in [
            ("https://example.com", true, "example.com", 443, "/"),
            ("https://example.com:8443/a/b?c=d", true, "example.com", 8443, "/a/b?c=d"),
            ("http://127.0.0.1/", false, "127.0.0.1", 80, "/"),
            ("https://[2606:4700::1111]:1/x", true, "2606:4700::1111", 1, "/x"),
            ("https://example.com?x=1", true, "example.com", 443, "/?x=1"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(
                (target.is_tls, target.host(), target.port(), target.path()),
                (is_tls, host, port, path),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "example.com",
            "/hooks",
            "ftp://example.com",
            "https://",
            "https:///x",
            "https://a b",
            "https://me:secret@example.com",
            "https://example.com/#part",
            "https://example.com:0/",
            "https://[fe80::1%25eth0]/",
            "https://[1.2.3.4]/",
            "https://example.com:65536/",
            "https://exämple.com/",
        ] {
            assert!(Target::parse(text).unwrap_err().starts_with("expected "), "{text}");
        }
    }

    #[test]
    fn refused_addresses_are_told_before_a_look_up() {
        let (none, some) = (Allowed::default(), Allowed::parse("10.0.0.0/8").unwrap());
        let check = |text: &str, allowed| Target::parse(text).unwrap().check(allowed);
        assert!(check("https://10.0.0.1/", &none).unwrap_err().contains("private"));
        assert!(check("https://[::1]/", &none).is_err());
        assert_eq!(check("https://10.0.0.1/", &some), Ok(()));
        assert_eq!(check("https://example.com/", &none), Ok(()));
        assert!(check("http://example.com/", &none).unwrap_err().starts_with("expected https://"));
        assert_eq!(check("http://example.com/", &some), Ok(()), "as far as is known");
        assert!(check("http://8.8.8.8/", &some).unwrap_err().contains("none of them"));
        assert_eq!(check("http://10.0.0.1/", &some), Ok(()));
    }
}
