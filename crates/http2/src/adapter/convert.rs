//! Heads, from and to the types of `http`.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

use super::spare::{Maps, Texts};
use crate::connection::RequestHead;
use crate::hpack::{Encoded, Field};

/// The protocol of an extended CONNECT (RFC 8441 §4), such as `websocket`: an extension of the request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocol(pub HeaderValue);

/// The error of a head that HTTP/2 allows and the types of `http` cannot represent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotHttp;

/// Converts heads, and caches values that many of them share.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The authority of the last request: mostly that of the next, too.
    authority: Option<Authority>,
    texts: Texts,
    maps: Maps,
    pub(super) date: Date,
}

impl Heads {
    /// The head of a request.
    pub(super) fn request(&mut self, head: RequestHead<'_>) -> Result<Request<()>, NotHttp> {
        let mut request = Request::new(());
        *request.version_mut() = Version::HTTP_2;
        *request.method_mut() = Method::from_bytes(head.method()).map_err(|_| NotHttp)?;
        let path = head.path().unwrap_or_default();
        let mut texts =
            self.texts.join(|| std::iter::once(path).chain(head.fields().map(|(_, value)| value)));
        *request.uri_mut() = self.uri(&head, texts.split_to(path.len()))?;
        *request.headers_mut() = self.fields(texts, || head.fields())?;
        if let Some(protocol) = head.protocol() {
            let protocol = HeaderValue::from_bytes(protocol).map_err(|_| NotHttp)?;
            request.extensions_mut().insert(Protocol(protocol));
        }
        Ok(request)
    }

    /// The fields of trailers, which `from` gives, the same each time.
    pub(super) fn trailers<'a, I>(&mut self, from: impl Fn() -> I) -> Result<HeaderMap, NotHttp>
    where
        I: Iterator<Item = (&'a [u8], &'a [u8])>,
    {
        let values = self.texts.join(|| from().map(|(_, value)| value));
        self.fields(values, from)
    }

    /// The fields of a response are sent.
    pub(super) fn sent(&mut self, fields: HeaderMap) {
        self.maps.give(fields);
    }

    fn uri(&mut self, head: &RequestHead<'_>, path: Bytes) -> Result<Uri, NotHttp> {
        let mut parts = http::uri::Parts::default();
        if let Some(authority) = head.authority() {
            parts.authority = Some(self.authority(authority)?);
            // A URI of `http` has a scheme only together with an authority.
            if let Some(scheme) = head.scheme() {
                parts.scheme = Some(Scheme::try_from(scheme).map_err(|_| NotHttp)?);
            }
        }
        if head.path().is_some() {
            parts.path_and_query = Some(PathAndQuery::from_maybe_shared(path).map_err(|_| NotHttp)?);
        }
        Uri::from_parts(parts).map_err(|_| NotHttp)
    }

    fn authority(&mut self, bytes: &[u8]) -> Result<Authority, NotHttp> {
        match &self.authority {
            Some(last) if last.as_str().as_bytes() == bytes => Ok(last.clone()),
            _ => {
                let authority = Authority::try_from(bytes).map_err(|_| NotHttp)?;
                Ok(self.authority.insert(authority).clone())
            }
        }
    }

    /// The fields that `from` gives, the same each time, whose values stand in `values` one behind the other.
    /// Pieces of a cookie become one (RFC 9113 §8.2.3).
    fn fields<'a, I>(&mut self, mut values: Bytes, from: impl Fn() -> I) -> Result<HeaderMap, NotHttp>
    where
        I: Iterator<Item = (&'a [u8], &'a [u8])>,
    {
        let mut map = self.maps.take(from().count()).ok_or(NotHttp)?;
        for (name, value) in from() {
            let name = HeaderName::from_bytes(name).map_err(|_| NotHttp)?;
            let mut value = values.split_to(value.len());
            if name == header::COOKIE
                && let Some(first) = map.get(header::COOKIE)
            {
                value = [first.as_bytes(), b"; ", &value].concat().into();
                map.remove(header::COOKIE);
            }
            let value = HeaderValue::from_maybe_shared(value).map_err(|_| NotHttp)?;
            map.try_append(name, value).map_err(|_| NotHttp)?;
        }
        Ok(map)
    }
}

/// Fields as they are sent: without those that belong to connections of HTTP/1.1 (RFC 9113 §8.2.2), and what
/// is sensitive as a secret.
pub(super) fn to_wire<'a>(
    fields: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>,
) -> impl Iterator<Item = Field<'a>> {
    fields
        .into_iter()
        .filter(|(name, _)| {
            !matches!(
                name.as_str(),
                "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
            )
        })
        .map(|(name, value)| Field {
            name: name.as_str().as_bytes(),
            value: value.as_bytes(),
            is_secret: value.is_sensitive(),
        })
}

/// `content-length`, with a place for its digits.
pub(super) fn content_length(bytes: u64, digits: &mut [u8; 20]) -> Field<'_> {
    Field::new("content-length", decimal(bytes, digits))
}

/// A number in decimal.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

/// The `date` field, written once a second.
#[derive(Debug, Default)]
pub(super) struct Date {
    /// With the time at which it was written.
    written: Option<(Encoded, u64)>,
}

impl Date {
    pub(super) fn field(&mut self, now_us: u64) -> &Encoded {
        let is_old = |since_us: u64| now_us.saturating_sub(since_us) >= 1_000_000;
        if self.written.as_ref().is_none_or(|(_, since_us)| is_old(*since_us)) {
            let text = httpdate::fmt_http_date(SystemTime::now());
            self.written = Some((Encoded::new([Field::new("date", &text)]), now_us));
        }
        &self.written.as_ref().expect("written just now, or before").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9113 §8.2.2, RFC 7541 §7.1.3.
    #[test]
    fn fields_of_connections_are_left_out_and_sensitive_ones_are_secret() {
        let mut map = HeaderMap::new();
        let mut receipt = HeaderValue::from_static("0123");
        receipt.set_sensitive(true);
        map.insert("x-receipt", receipt);
        map.insert(header::CONNECTION, HeaderValue::from_static("close"));
        map.insert(header::ETAG, HeaderValue::from_static("\"1\""));
        let fields: Vec<_> = to_wire(&map).collect();
        assert_eq!(fields, [Field::new("x-receipt", "0123").secret(), Field::new("etag", "\"1\"")]);
    }
}
