//! Where the collector is, and the fields that it is sent.

use std::fmt;

use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Uri};

/// Most header fields.
const HEADERS_MAX: usize = 16;

/// The address of a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// True with TLS.
    pub is_tls: bool,
    /// Host and port.
    authority: Authority,
    /// The path before `/v1/traces`; without a slash at its end.
    path: String,
}

impl Endpoint {
    /// Parses `http://HOST[:PORT][/PATH]`, or with `https`. The port is 4318 unless it is given.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let wrong =
            || "expected http://HOST:PORT or https://HOST:PORT, such as http://localhost:4318".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(wrong)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(
                "expected no name, password or query in the address: headers carry credentials".to_owned()
            );
        }
        // A port that is none is not told from none at all.
        let has_port = authority.as_str() != authority.host();
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err("expected a port from 1 to 65535".to_owned());
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Endpoint { is_tls, authority: authority.clone(), path })
    }

    /// The host, without brackets, and the port.
    pub(crate) fn host(&self) -> (&str, u16) {
        let host = self.authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (bare, self.authority.port_u16().unwrap_or(4_318))
    }

    /// The name of the host for the field `host`.
    pub(crate) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The path of a signal: `traces`, `metrics` or `logs`.
    pub(crate) fn path(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.path)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Header fields of each request; their values are secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    /// Parses `NAME=VALUE`, several separated by commas.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Headers, String> {
        let mut headers = Vec::new();
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        for (at, pair) in pairs.enumerate() {
            let expected = "expected NAME=VALUE, several with commas between";
            let (name, value) = pair.split_once('=').ok_or(expected)?;
            // The text may be a part of a secret, so the error repeats none of it.
            let name: HeaderName = name.trim().parse().map_err(|_| {
                format!("pair {} has no name of a header before its first `=`: {expected}", at + 1)
            })?;
            let mut parsed = HeaderValue::from_str(value.trim())
                .map_err(|_| format!("the value of pair {} has characters that no header has", at + 1))?;
            parsed.set_sensitive(true);
            headers.push((name, parsed));
        }
        if headers.len() > HEADERS_MAX {
            return Err(format!("expected at most {HEADERS_MAX} headers, got {}", headers.len()));
        }
        Ok(Headers(headers))
    }

    /// The text from which they can be parsed again.
    pub fn show(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| {
            // They were made of text.
            format!("{name}={}", value.to_str().unwrap_or_default())
        });
        pairs.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.0.iter()
    }
}

/// Tells the names alone.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, host, path) in [
            ("http://localhost:4318", ("localhost", 4318), "/v1/traces"),
            ("http://localhost:4318/", ("localhost", 4318), "/v1/traces"),
            ("https://otel.example/a/b/", ("otel.example", 4318), "/a/b/v1/traces"),
            ("http://[::1]:80", ("::1", 80), "/v1/traces"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!((endpoint.host(), endpoint.path("traces").as_str()), (host, path), "{text}");
            assert_eq!(Endpoint::parse(&endpoint.to_string()), Ok(endpoint));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "localhost:4318",
            "/v1",
            "grpc://localhost:4317",
            "http://",
            "http:///x",
            "http://a b",
            "http://me:secret@localhost:4318",
            "http://localhost:4318?x=1",
            "https://x:99999",
            "https://x:0",
            "https://x:",
        ] {
            assert!(Endpoint::parse(text).unwrap_err().starts_with("expected "), "{text}");
        }
    }

    #[test]
    fn headers_are_read_and_their_values_kept_from_logs() {
        let headers = Headers::parse("Authorization=Bearer a=b, x-scope=7,").unwrap();
        assert_eq!(headers.show(), "authorization=Bearer a=b,x-scope=7");
        assert_eq!(format!("{headers:?}"), r#"{"authorization", "x-scope"}"#);
        assert_eq!(Headers::parse("").unwrap(), Headers::default());
        for text in ["name", "a b=c", "=c", "a=\u{7f}"] {
            assert!(Headers::parse(text).is_err(), "{text}");
        }
        assert!(Headers::parse(&"a=b,".repeat(17)).is_err());
    }
}
