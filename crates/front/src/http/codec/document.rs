//! Answers that are the same as long as the server is: clients that have one ask whether it is another by now
//! (RFC 9110 §13.1.2).

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::StatusCode;
use http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::response::Response;
use ring::digest::{SHA256, digest};

use crate::net::body::Body;
use crate::net::respond;

/// An answer that stays.
#[derive(Debug)]
pub(crate) struct Document {
    content_type: &'static str,
    bytes: Bytes,
    /// Weak, since it is the same for all codings of the answer.
    tag: String,
}

impl Document {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Document {
        let bytes = bytes.into();
        let tag = format!("W/\"{}\"", HEXLOWER.encode(&digest(&SHA256, &bytes).as_ref()[..8]));
        Document { content_type, bytes, tag }
    }

    /// The document, or that it is still the same.
    pub(crate) fn answer(&self, head: &Parts) -> Response<Body> {
        let mut response = match self.is_known(&head.headers) {
            true => respond::empty(StatusCode::NOT_MODIFIED),
            false => respond::content(StatusCode::OK, self.content_type, self.bytes.clone()),
        };
        let headers = response.headers_mut();
        // It may be kept, but another server may answer the next time.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(ETAG, tag);
        }
        response
    }

    /// True when the client has it, by weak comparison (§8.8.3.2): `W/` says nothing. Our own tags hold no
    /// comma, so it does not matter where others are cut apart.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let own = opaque(&self.tag);
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|tag| tag.trim() == "*" || opaque(tag) == own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly_and_one_of_many_is_enough() {
        let document = Document::new("text/plain", "text");
        let tag = document.tag.clone();
        let strong = tag.trim_start_matches("W/").to_owned();
        let known = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|value| {
                headers.append(IF_NONE_MATCH, value.parse().unwrap());
            });
            document.is_known(&headers)
        };
        assert!(known(&[&tag]) && known(&[&strong]) && known(&["*"]));
        assert!(known(&[&format!("\"other\", {tag}")]) && known(&["\"a,b\"", &tag]));
        assert!(!known(&[]) && !known(&["\"other\""]) && !known(&[strong.trim_matches('"')]));
        assert_ne!(Document::new("text/plain", "another").tag, tag);
    }
}
