//! Causes of a failed TLS handshake.

use std::io;

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
                let has: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                let has = if has.is_empty() { "no name".to_owned() } else { has.join(", ") };
                let called = expected.to_str();
                (TlsFault::Name, format!("its certificate is not for {called}: it is for {has}"))
            }
            _ => (TlsFault::Other, error.to_string()),
        }
    }
}

/// `DnsName("localhost")` and `IpAddress(127.0.0.1)`, as webpki writes them, without what surrounds the name.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}
