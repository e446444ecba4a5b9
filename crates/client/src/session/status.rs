//! End of a gRPC call, from its trailers.

use http::HeaderMap;
use serde_json::Value;

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
        details: Value::Null,
        retry_after: None,
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
}
