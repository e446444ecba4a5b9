//! Well-formedness of a request's fields (RFC 9110, RFC 9112). Fields that can be read in two ways are
//! refused, since a proxy before this server might read them in the other one. The end of the body is checked
//! by `connection/heads` for HTTP/1.1, and by `sluice-http2` for HTTP/2.

use http::Version;
use http::header::{CONTENT_TYPE, HOST};
use http::request::Parts;

use crate::json::{Fault, Read, clip};

/// Refuses a request that is not well-formed.
///
/// # Errors
/// `missing_field`, `duplicate_field` or `invalid_argument` for `Host`; `duplicate_field` for `Content-Type`.
pub(crate) fn check(head: &Parts) -> Read<()> {
    if head.headers.get_all(CONTENT_TYPE).iter().nth(1).is_some() {
        return Err(given_twice("Content-Type"));
    }
    if head.version == Version::HTTP_2 { Ok(()) } else { check_host(head) }
}

/// There is one, also where the target of the request names the host (RFC 9112 §3.2); HTTP/1.0 knows none.
fn check_host(head: &Parts) -> Read<()> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else {
        return match head.version {
            Version::HTTP_11 => {
                Err(Fault::missing("Host", "a request of HTTP/1.1 names the server that it is for"))
            }
            _ => Ok(()),
        };
    };
    if hosts.next().is_some() {
        return Err(given_twice("Host"));
    }
    if !host.as_bytes().iter().all(|byte| is_of_host(*byte)) || !has_sound_port(host.as_bytes()) {
        let host = clip(&String::from_utf8_lossy(host.as_bytes()));
        return Err(
            Fault::invalid(format!("expected a name or an address, and a port, got {host:?}")).inside("Host")
        );
    }
    Ok(())
}

/// True for the bytes of a host or a port (RFC 3986 §3.2.2).
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%:[]".contains(&byte)
}

/// True when what stands behind the last colon, unless that is within brackets, is a port: digits, or nothing
/// (RFC 3986 §3.2.3).
fn has_sound_port(host: &[u8]) -> bool {
    match host.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if host[at] == b':' => host[at + 1..].iter().all(u8::is_ascii_digit),
        _ => true,
    }
}

/// A field of which a request has one at most.
#[cold]
pub(crate) fn given_twice(name: &str) -> Box<Fault> {
    Fault::new("duplicate_field", "the field is given twice").inside(name)
}
