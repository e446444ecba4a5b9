//! Where messages to send come from.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _, Read};

use serde::Deserialize;
use sluice_client::{Backoff, Message};

use super::super::{CliError, Result};
use super::options::OptionFields;
use super::{Fields, SendArgs};

/// Longest line; a longer one is an error before it fills the memory.
const LINE_BYTES_MAX: u64 = 96 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// Messages, one after another.
pub(super) enum Input {
    /// One payload, or none any more.
    One(Option<Vec<u8>>),
    /// One message per line.
    Lines { reader: BufReader<Box<dyn Read + Send>>, name: String, number: u64, json: bool },
}

impl Input {
    pub(super) fn open(args: &SendArgs) -> Result<Input> {
        if args.lines || args.jsonl {
            let (source, name): (Box<dyn Read + Send>, String) = match &args.file {
                Some(path) => {
                    let file = File::open(path).map_err(|e| cannot_read(&path.display().to_string(), &e))?;
                    (Box::new(file), path.display().to_string())
                }
                None => (Box::new(std::io::stdin()), "stdin".to_owned()),
            };
            let reader = BufReader::with_capacity(READ_BYTES, source);
            return Ok(Input::Lines { reader, name, number: 0, json: args.jsonl });
        }
        let payload = match (&args.payload, &args.file) {
            (Some(text), _) if text != "-" => text.clone().into_bytes(),
            (None, Some(path)) => {
                std::fs::read(path).map_err(|e| cannot_read(&path.display().to_string(), &e))?
            }
            (None, None) if std::io::stdin().is_terminal() => {
                return Err(CliError::usage("there is nothing to send")
                    .hint("Give the payload as an argument, a file with --file, or pipe it in."));
            }
            _ => {
                let mut payload = Vec::new();
                let read = std::io::stdin().take(LINE_BYTES_MAX + 1).read_to_end(&mut payload);
                read.map_err(|e| cannot_read("stdin", &e))?;
                if payload.len() as u64 > LINE_BYTES_MAX {
                    return Err(CliError::usage(format!("stdin has more than {LINE_BYTES_MAX} bytes")));
                }
                payload
            }
        };
        Ok(Input::One(Some(payload)))
    }

    /// The next message.
    pub(super) fn next(&mut self, fields: &Fields) -> Result<Option<Message<'static>>> {
        let (reader, name, number, json) = match self {
            Input::One(payload) => return Ok(payload.take().map(|payload| fields.message(payload))),
            Input::Lines { reader, name, number, json } => (reader, name, number, *json),
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            *number += 1;
            let read = reader.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if read.map_err(|e| cannot_read(name, &e))? == 0 {
                return Ok(None);
            }
            if line.len() as u64 == LINE_BYTES_MAX {
                return Err(CliError::usage(format!(
                    "{name}, line {number}: longer than {LINE_BYTES_MAX} bytes"
                )));
            }
            trim_newline(&mut line);
            if !json {
                return Ok(Some(fields.message(line)));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                let parsed = from_json(&line, fields);
                return parsed.map(Some).map_err(|e| CliError::usage(format!("{name}, line {number}: {e}")));
            }
        }
    }

    /// Whether more has been read already, and need not be waited for; a slow writer's lines are sent as they come.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Input::One(_) => false,
            Input::Lines { reader, .. } => !reader.buffer().is_empty(),
        }
    }
}

fn trim_newline(line: &mut Vec<u8>) {
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
}

fn cannot_read(name: &str, error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot read {name}: {error}"))
}

/// A message object of the HTTP API.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    payload: Option<String>,
    payload_base64: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    priority: Option<u8>,
    delay_ms: Option<u64>,
    deliver_at_ms: Option<u64>,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    #[serde(flatten)]
    options: OptionFields,
}

fn from_json(line: &[u8], fields: &Fields) -> std::result::Result<Message<'static>, String> {
    let line: Line = serde_json::from_slice(line).map_err(|e| format!("not a message: {e}"))?;
    let payload = match (line.payload, line.payload_base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => data_encoding::BASE64
            .decode(text.as_bytes())
            .map_err(|e| format!("payload_base64 is not base64: {e}"))?,
        (None, None) => return Err("payload or payload_base64 is missing".to_owned()),
        (Some(_), Some(_)) => return Err("payload and payload_base64 exclude each other".to_owned()),
    };
    let mut message = fields.message(payload);
    if line.delay_ms.is_some() || line.deliver_at_ms.is_some() {
        (message.delay_ms, message.deliver_at_ms) = (line.delay_ms, line.deliver_at_ms);
    }
    message.content_type = line.content_type.map(Into::into).or(message.content_type);
    message.priority = line.priority.or(message.priority);
    message.max_attempts = line.max_attempts.or(message.max_attempts);
    message.backoff = line.backoff.or(message.backoff);
    message.options = line.options.over(message.options.take());
    message.headers.retain(|(name, _)| !line.headers.contains_key(name.as_ref()));
    message.headers.extend(line.headers.into_iter().map(|(n, v)| (n.into(), v.into())));
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::super::options::OptionFlags;
    use super::*;

    fn fields() -> Fields {
        Fields {
            priority: Some(1),
            delay: Some(std::time::Duration::from_secs(1)),
            deliver_at_ms: None,
            content_type: None,
            header: vec![("a".into(), "flag".into()), ("b".into(), "flag".into())],
            max_attempts: None,
            backoff: None,
            options: OptionFlags::default(),
        }
    }

    fn lines(text: &'static str, json: bool) -> Input {
        Input::Lines {
            reader: BufReader::new(Box::new(text.as_bytes())),
            name: "stdin".into(),
            number: 0,
            json,
        }
    }

    #[test]
    fn an_object_overrides_the_flags() {
        let line = br#"{"payload_base64":"/wA=","priority":9,"deliver_at_ms":5,"headers":{"a":"line"}}"#;
        let message = from_json(line, &fields()).unwrap();
        assert_eq!(message.payload.as_ref(), &[0xff, 0]);
        assert_eq!((message.priority, message.delay_ms, message.deliver_at_ms), (Some(9), None, Some(5)));
        let headers: Vec<_> = message.headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(headers, ["b=flag", "a=line"]);
    }

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        let mut input = lines("a \r\n\nb", false);
        let mut payloads = Vec::new();
        while let Some(message) = input.next(&fields()).unwrap() {
            payloads.push(message.payload.into_owned());
        }
        assert_eq!(payloads, [b"a ".to_vec(), b"".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, wrong) in [
            (
                "{\"payload\":\"a\"}\n\n{\"payloaf\":1}\n",
                "stdin, line 3: not a message: unknown field `payloaf`",
            ),
            ("\n\n{}\n", "stdin, line 3: payload or payload_base64 is missing"),
        ] {
            let mut input = lines(text, true);
            let error = loop {
                match input.next(&fields()) {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("no error"),
                    Err(e) => break e.to_json().to_string(),
                }
            };
            assert!(error.contains(wrong), "{error}");
        }
    }
}
