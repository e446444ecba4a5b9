//! Answers of tools that fit into the context of an agent, and errors.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sluice_calls::Operation;
use sluice_client::ClientError;

use super::tools::McpTool;
use crate::terminal::CliError;

/// Longest text of an answer, in bytes as JSON writes it; a longer one is cut.
const TEXT_BYTES_MAX: usize = 32 << 10;
/// Shortest text that is cut, in bytes as JSON writes it: receipts and ids are shorter.
const TEXT_BYTES_MIN: usize = 512;
/// Longest answer as it is written, in bytes, with its texts cut.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// An error for an agent.
pub(super) fn refusal(code: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "details": {}}})
}

/// The error of a call for an agent.
pub(super) fn told(error: &ClientError) -> Value {
    let told = CliError::client(error);
    let details = Some(told.details()).filter(|details| details.is_object()).cloned();
    json!({"error": {"code": told.code(), "message": told.message(), "details": details.unwrap_or_else(|| json!({}))}})
}

/// An answer whose long texts are cut, each with a note of its length. One that is too long nevertheless is
/// refused; where it holds what the caller could not get again, its texts are cut shorter instead.
pub(super) fn bounded(tool: &McpTool, mut answer: Value) -> Result<Value, Value> {
    let mut cut = BTreeMap::new();
    let mut text_bytes_max = TEXT_BYTES_MAX;
    loop {
        shorten(&mut answer, "", text_bytes_max, &mut cut);
        note(&mut answer, &cut);
        let bytes = written_bytes(&answer);
        if bytes <= ANSWER_BYTES_MAX {
            return Ok(answer);
        }
        if tool.operation != Operation::Receive {
            let message = format!(
                "the answer would have {bytes} bytes as it is written, as text and as structured content, more than \
                 {ANSWER_BYTES_MAX}: ask for fewer entries with `limit`, or for less"
            );
            return Err(refusal("answer_too_large", &message));
        }
        if text_bytes_max <= TEXT_BYTES_MIN {
            // What is left is bounded by the server, and holds receipts.
            return Ok(answer);
        }
        text_bytes_max /= 2;
    }
}

/// Bytes of an answer as it is written: as structured content, and as text with its JSON in it.
fn written_bytes(answer: &Value) -> usize {
    let text = answer.to_string();
    text.len() + escaped_bytes(&text)
}

/// Bytes of a text between the quotes of JSON, as serde_json writes it.
fn escaped_bytes(text: &str) -> usize {
    text.chars().map(escaped_bytes_of).sum()
}

fn escaped_bytes_of(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

/// A text that was cut.
#[derive(Debug)]
struct Cut {
    bytes: usize,
    kept_bytes: usize,
}

/// Cuts the texts of a value that are too long, and notes their lengths by their places.
fn shorten(value: &mut Value, place: &str, text_bytes_max: usize, cut: &mut BTreeMap<String, Cut>) {
    match value {
        Value::String(text) => {
            if let Some(kept_bytes) = end(text, text_bytes_max) {
                let noted = cut.entry(place.to_owned()).or_insert(Cut { bytes: text.len(), kept_bytes });
                noted.kept_bytes = kept_bytes;
                text.truncate(kept_bytes);
            }
        }
        Value::Array(items) => {
            let inner = items.iter_mut().enumerate();
            inner.for_each(|(at, item)| shorten(item, &format!("{place}/{at}"), text_bytes_max, cut));
        }
        Value::Object(fields) => {
            let inner = fields.iter_mut();
            inner.for_each(|(name, field)| shorten(field, &format!("{place}/{name}"), text_bytes_max, cut));
        }
        _ => {}
    }
}

/// The end of what is kept of a text, in bytes; `None`: all of it.
fn end(text: &str, text_bytes_max: usize) -> Option<usize> {
    let mut written = 0;
    text.char_indices().find_map(|(at, c)| {
        written += escaped_bytes_of(c);
        (written > text_bytes_max).then_some(at)
    })
}

/// Notes in an answer what was cut.
fn note(answer: &mut Value, cut: &BTreeMap<String, Cut>) {
    let notes = cut.iter().map(|(at, it)| json!({"at": at, "bytes": it.bytes, "kept_bytes": it.kept_bytes}));
    if let Some(answer) = answer.as_object_mut().filter(|_| !cut.is_empty()) {
        answer.insert("cut".to_owned(), notes.collect());
    }
}

#[cfg(test)]
mod tests {
    use sluice_client::TransportKind;

    use super::*;

    fn tool(name: &str) -> McpTool {
        let tools = super::super::tools::all(&sluice_front::http::openapi("0"));
        tools.into_iter().find(|tool| tool.listed.name == name).unwrap()
    }

    #[test]
    fn long_answers_are_cut_and_receipts_never_lost() {
        let text = "ä".repeat(TEXT_BYTES_MAX);
        let message = |at: usize| json!({"id": at, "receipt": "r", "payload": text});
        let answer = bounded(&tool("receive"), json!({"messages": [message(0)]})).unwrap();
        assert_eq!(answer["messages"][0]["receipt"], "r");
        assert_eq!(answer["messages"][0]["payload"].as_str().unwrap().len(), TEXT_BYTES_MAX);
        let cut =
            json!([{"at": "/messages/0/payload", "bytes": 2 * TEXT_BYTES_MAX, "kept_bytes": TEXT_BYTES_MAX}]);
        assert_eq!(answer["cut"], cut);
        let many: Vec<Value> = (0..ANSWER_BYTES_MAX / TEXT_BYTES_MAX + 1).map(message).collect();
        let refused = bounded(&tool("message_list"), json!({"messages": many})).unwrap_err();
        assert_eq!(refused["error"]["code"], "answer_too_large");
        assert_eq!(bounded(&tool("queue_list"), json!({"queues": []})).unwrap(), json!({"queues": []}));
    }

    #[test]
    fn what_counts_is_what_is_written() {
        let text = "\"\\\n\u{1}ä\u{7f}\u{2028}";
        assert_eq!(escaped_bytes(text) + 2, json!(text).to_string().len());
        // Each of these bytes is six as JSON, and seven in the text with the JSON.
        let message = json!({"receipt": "r", "payload": "\u{1}".repeat(1 << 20)});
        let answer = bounded(&tool("receive"), json!({"messages": vec![message; 16]})).unwrap();
        let result = rmcp::model::CallToolResult::structured(answer.clone());
        let written = serde_json::to_string(&result).unwrap().len();
        assert!(written <= ANSWER_BYTES_MAX + 200, "{written}");
        assert_eq!(answer["messages"][15]["receipt"], "r");
        let kept = answer["messages"][15]["payload"].as_str().unwrap().len();
        let cut = answer["cut"].as_array().unwrap();
        assert_eq!((cut.len(), &cut[0]["bytes"], &cut[0]["kept_bytes"]), (16, &json!(1 << 20), &json!(kept)));
    }

    #[test]
    fn an_error_always_has_details() {
        let kind = TransportKind::Connect;
        let (server, reason) = ("127.0.0.1:1".to_owned(), "gone".to_owned());
        let error = ClientError::Transport { kind, server, tried: 1, reason };
        assert_eq!(told(&error)["error"]["details"], json!({}));
    }
}
