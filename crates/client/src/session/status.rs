//! End of a gRPC call, from its trailers.

use std::iter;

use data_encoding::BASE64_NOPAD;
use http::HeaderMap;
use serde_json::{Map, Value};
use sluice_proto::wire::{Raw, next_field};

use crate::error::ClientError;

/// The error that the trailers tell of; `None`: all went well.
pub(super) fn ended(trailers: &HeaderMap) -> Option<ClientError> {
    let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok());
    let status: u16 = text("grpc-status").and_then(|status| status.parse().ok()).unwrap_or(2);
    if status == 0 {
        return None;
    }
    Some(ClientError::Server {
        status: as_http(status),
        code: text("sluice-code").unwrap_or("internal").to_owned(),
        message: percent_decode(text("grpc-message").unwrap_or("the server gave no reason")),
        details: text("grpc-status-details-bin").map_or(Value::Null, details),
        retry_after: None,
    })
}

/// The values in `google.rpc.ErrorInfo` of a `google.rpc.Status` in base64, by name; those that are JSON as
/// that.
fn details(status: &str) -> Value {
    let Ok(status) = BASE64_NOPAD.decode(status.trim_end_matches('=').as_bytes()) else { return Value::Null };
    let mut details = Map::new();
    for info in fields(&status, 3).filter(|any| is_info(any)).flat_map(|any| fields(any, 2)) {
        for entry in fields(info, 3) {
            let text = |number| fields(entry, number).next().map(String::from_utf8_lossy);
            if let (Some(name), Some(value)) = (text(1), text(2)) {
                let value = match serde_json::from_str(&value) {
                    Ok(number @ Value::Number(_)) => number,
                    Ok(words @ Value::Array(_)) => words,
                    _ => Value::from(value),
                };
                details.insert(name.into_owned(), value);
            }
        }
    }
    Value::Object(details)
}

/// True of a `google.protobuf.Any` that holds what an error is about.
fn is_info(any: &[u8]) -> bool {
    fields(any, 1).any(|url| url.ends_with(b"google.rpc.ErrorInfo"))
}

/// The values of a field that is text or a message, as far as the message can be read.
fn fields(mut message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    let fields = iter::from_fn(move || next_field(&mut message).ok()?);
    fields.filter_map(move |(other, value)| match value {
        Raw::Bytes(bytes) if other == number => Some(bytes),
        _ => None,
    })
}

/// The HTTP status whose class says the same about who has to act.
fn as_http(status: u16) -> u16 {
    match status {
        3 => 400,
        5 => 404,
        6 | 9 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 405,
        4 => 408,
        16 => 401,
        2 | 14 => 503,
        _ => 500,
    }
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = if byte == b'%' { text.get(at + 1..at + 3) } else { None };
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_proto::wire::put_bytes;

    use super::*;

    #[test]
    fn trailers_tell_code_and_message() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "5".parse().unwrap());
        trailers.insert("sluice-code", "namespace_not_found".parse().unwrap());
        trailers.insert("grpc-message", "n%C3%A4h 100%".parse().unwrap());
        let error = ended(&trailers).unwrap();
        assert_eq!(error.to_string(), "näh 100% (namespace_not_found)");
        trailers.insert("grpc-status", "0".parse().unwrap());
        assert!(ended(&trailers).is_none());
    }

    #[test]
    fn trailers_tell_the_values_that_an_error_is_about() {
        let message = |fields: &[(u32, &[u8])]| {
            let mut out = Vec::new();
            fields.iter().for_each(|(number, value)| put_bytes(&mut out, *number, value));
            out
        };
        let entries = [("address", "c:3"), ("leader", "3"), ("allowed", r#"["a","b"]"#)];
        let entries = entries.map(|(name, value)| message(&[(1, name.as_bytes()), (2, value.as_bytes())]));
        let info = message(&[(1, b"not_leader"), (3, &entries[0]), (3, &entries[1]), (3, &entries[2])]);
        let info = message(&[(1, b"type.googleapis.com/google.rpc.ErrorInfo"), (2, &info)]);
        let retry = message(&[(1, b"type.googleapis.com/google.rpc.RetryInfo"), (2, b"x")]);
        let status = message(&[(2, b"another node leads"), (3, &info), (3, &retry)]);
        let told = details(&BASE64_NOPAD.encode(&status));
        assert_eq!(told, json!({"address": "c:3", "leader": 3, "allowed": ["a", "b"]}));
        for noise in ["", "!", "AAAA", &BASE64_NOPAD.encode(&status[..20])] {
            assert!(details(noise).get("address").is_none(), "{noise}");
        }
    }
}
