//! Causes of a failed TLS handshake.

use std::io;
use std::net::IpAddr;

use rustls::{CertificateError, Error};

/// The cause of a failed TLS handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TlsFault {
    /// The server's certificate is not signed by a CA that this client trusts.
    Issuer,
    /// The server's certificate is not valid for the name or address of the URL.
    Name,
    /// The server does not speak TLS on this port.
    ClearText,
    /// Another cause.
    Other,
}

impl TlsFault {
    /// The fault behind a failed handshake, and words for it.
    pub(crate) fn of(error: &io::Error) -> (TlsFault, String) {
        let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match cause {
            Some(Error::InvalidMessage(_)) => {
                (TlsFault::ClearText, format!("{error}; does the server speak TLS at this port?"))
            }
            Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => (
                TlsFault::Issuer,
                format!("{error}; give the certificate of the CA that has signed the server's"),
            ),
            Some(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                expected,
                presented,
            })) => {
                let has: Vec<String> = presented.iter().map(|name| bare(name)).collect();
                let has = if has.is_empty() { "no name".to_owned() } else { has.join(", ") };
                let called = expected.to_str();
                (TlsFault::Name, format!("its certificate is not for {called}: it is for {has}"))
            }
            _ => (TlsFault::Other, error.to_string()),
        }
    }
}

/// `DnsName("localhost")` and `IpAddress(127.0.0.1)`, as webpki writes them, without what surrounds the name.
/// Its `0::1` is `::1`.
fn bare(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    let inner = inner.unwrap_or(name).trim_matches('"');
    inner.parse::<IpAddr>().map_or_else(|_| inner.to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_certificates_are_told_as_people_write_them() {
        for (name, told) in [
            ("DnsName(\"localhost\")", "localhost"),
            ("IpAddress(127.0.0.1)", "127.0.0.1"),
            ("IpAddress(0::1)", "::1"),
            ("IpAddress(2001::db8)", "2001::db8"),
            ("something", "something"),
        ] {
            assert_eq!(bare(name), told);
        }
    }
}
