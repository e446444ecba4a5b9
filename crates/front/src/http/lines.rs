//! Pages as lines: one JSON object a line (<https://github.com/ndjson/ndjson-spec>), for callers that prefer
//! them to one JSON document. The other fields of the page are headers then.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::response::Response;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use sluice_calls::CallError;
use sluice_calls::operation::Operation;
use sluice_engine::Error;

use super::compression::weight;
use crate::json::Json;
use crate::net::body::Body;

/// The media type of lines.
const LINES: &str = "application/x-ndjson";
/// The beginning of a page: its list is the first field.
const LIST: &[u8] = b"{\"documents\":[";

/// The fields of a page behind its list.
#[derive(Deserialize)]
struct Rest {
    scanned: u64,
    index: Option<String>,
    next: Option<String>,
}

/// True if the answer to an operation has lines that the caller prefers to one document.
pub(super) fn are_preferred(operation: Operation, headers: &HeaderMap) -> bool {
    operation == Operation::DocumentQuery && {
        let of = |name: &str| weight_of(name, headers);
        of(LINES).is_some_and(|lines| lines > 0 && lines >= of("application/json").unwrap_or(0))
    }
}

/// The weight of a media type that the caller names (RFC 9110 §12.5.1), in thousandths.
fn weight_of(name: &str, headers: &HeaderMap) -> Option<u16> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut items = values.flat_map(|value| value.split(','));
    items.find_map(|item| {
        let (found, parameters) = item.split_once(';').unwrap_or((item, ""));
        // One with a malformed weight counts as refused.
        found.trim().eq_ignore_ascii_case(name).then(|| weight(parameters).unwrap_or(0))
    })
}

/// The answer in lines.
///
/// # Errors
/// `internal`: the answer is no page.
pub(super) fn of(page: Json) -> Result<Response<Body>, CallError> {
    let Json { status, document } = page;
    let no_page = || Error::Internal { reason: "an answer that has lines is no page".into() };
    let (lines, rest) = split(&document).ok_or_else(no_page)?;
    let mut response = Response::from(Json::new(status, lines));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
    let fields = [
        ("sluice-next", rest.next),
        ("sluice-scanned", Some(rest.scanned.to_string())),
        ("sluice-index", rest.index),
    ];
    for (name, value) in fields {
        // Numbers, names and places are printable ASCII.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

/// The entries of a page in lines, and its other fields. Text of JSON has no line breaks.
fn split(page: &[u8]) -> Option<(Vec<u8>, Rest)> {
    let mut rest = page.strip_prefix(LIST)?;
    let mut lines = Vec::with_capacity(page.len());
    while rest.first() != Some(&b']') {
        let entry = rest.strip_prefix(b",").unwrap_or(rest);
        let mut entries = Deserializer::from_slice(entry).into_iter::<IgnoredAny>();
        entries.next()?.ok()?;
        let (line, behind) = entry.split_at(entries.byte_offset());
        lines.extend_from_slice(line);
        lines.push(b'\n');
        rest = behind;
    }
    let fields = [b"{", rest.strip_prefix(b"],")?].concat();
    Some((lines, serde_json::from_slice(&fields).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_into_its_entries() {
        let page =
            br#"{"documents":[{"key":"a,]","content":"{\"x\":[1]}\n"},{"key":"b"}],"scanned":3,"next":"bg"}"#;
        let (lines, rest) = split(page).unwrap();
        assert_eq!(lines, b"{\"key\":\"a,]\",\"content\":\"{\\\"x\\\":[1]}\\n\"}\n{\"key\":\"b\"}\n");
        assert_eq!((rest.scanned, rest.index, rest.next.as_deref()), (3, None, Some("bg")));
        let (lines, rest) = split(br#"{"documents":[],"scanned":0,"index":"state"}"#).unwrap();
        assert_eq!((lines.len(), rest.index.as_deref(), rest.next), (0, Some("state"), None));
        for wrong in ["{}", r#"{"documents":[{]}"#, r#"{"documents":[{}"#, r#"{"documents":[]}"#] {
            assert!(split(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn lines_are_for_those_who_prefer_them() {
        let prefers = |accept: &'static str| {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            are_preferred(Operation::DocumentQuery, &headers)
        };
        for lines in [
            "application/x-ndjson",
            "Application/X-NDJSON, */*",
            "application/json;q=0.5, application/x-ndjson;q=0.6",
        ] {
            assert!(prefers(lines), "{lines}");
        }
        for json in [
            "*/*",
            "application/json",
            "application/x-ndjson;q=0",
            "application/x-ndjson;q=x",
            "application/x-ndjson;q=0.5, application/json",
        ] {
            assert!(!prefers(json), "{json}");
        }
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(LINES))]);
        assert!(
            !are_preferred(Operation::DocumentShow, &headers)
                && !are_preferred(Operation::DocumentQuery, &HeaderMap::new())
        );
    }
}
