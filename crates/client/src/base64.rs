//! Payload bytes in JSON: the alphabet of RFC 4648 §4.

use data_encoding::BASE64;

/// Appends `bytes` in base64.
pub(crate) fn append(bytes: &[u8], out: &mut String) {
    BASE64.encode_append(bytes, out);
}

/// Decodes base64, or says what is wrong with it.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text.as_bytes()).map_err(|e| format!("this is not base64: {e}"))
}
