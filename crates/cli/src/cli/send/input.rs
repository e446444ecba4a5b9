//! Reads the messages to send: one payload, lines, or JSON lines.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _, Read};

use sluice_client::Message;

use super::super::bounded::{FILE_BYTES_MAX, read_file, read_stdin};
use super::super::format::quoted;
use super::super::{CliError, Result};
use super::objects::message;
use super::{Fields, SendArgs};

/// Longest line in bytes; a longer one is refused before it fills the memory.
const LINE_BYTES_MAX: u64 = FILE_BYTES_MAX;
/// Size of the read buffer in bytes.
const READ_BYTES: usize = 256 << 10;

/// The source of messages.
pub(super) enum Input {
    /// One payload; `None` after it was taken.
    One(Option<Vec<u8>>),
    /// One message per line.
    Lines { reader: BufReader<Box<dyn Read + Send>>, name: String, number: u64, json: bool },
}

impl Input {
    pub(super) fn open(args: &SendArgs) -> Result<Input> {
        if args.lines || args.jsonl {
            let (source, name): (Box<dyn Read + Send>, String) = match &args.file {
                Some(path) => {
                    let file = File::open(path)
                        .map_err(|e| CliError::unreadable(&path.display().to_string(), &e))?;
                    (Box::new(file), path.display().to_string())
                }
                None => (Box::new(std::io::stdin()), "stdin".to_owned()),
            };
            let reader = BufReader::with_capacity(READ_BYTES, source);
            return Ok(Input::Lines { reader, name, number: 0, json: args.jsonl });
        }
        let payload = match (&args.payload, &args.file) {
            (Some(text), _) if text != "-" => text.clone().into_bytes(),
            (None, Some(path)) => read_file(path, FILE_BYTES_MAX)?,
            (None, None) if std::io::stdin().is_terminal() => {
                return Err(CliError::usage("no payload given")
                    .hint("Give the payload as an argument, a file with --file, or pipe it in."));
            }
            _ => {
                let payload = read_stdin(FILE_BYTES_MAX)?;
                if payload.is_empty() && args.payload.is_none() {
                    return Err(CliError::usage("no payload given: stdin is empty").hint(format!(
                        "`sluice send {} ''` sends a message without payload.",
                        quoted(&args.queue)
                    )));
                }
                payload
            }
        };
        Ok(Input::One(Some(payload)))
    }

    /// Returns the next message; `None` at the end.
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
            if read.map_err(|e| CliError::unreadable(name, &e))? == 0 {
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
                let parsed = message(&line, fields);
                return parsed.map(Some).map_err(|e| CliError::usage(format!("{name}, line {number}: {e}")));
            }
        }
    }

    /// The source and number of the last message's line; `None` if the input is one payload.
    pub(super) fn line(&self) -> Option<(&str, u64)> {
        match self {
            Input::One(_) => None,
            Input::Lines { name, number, .. } => Some((name, *number)),
        }
    }

    /// True when another line is in the buffer already. Lines of a slow writer are sent as they come.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static str, json: bool) -> Input {
        Input::Lines {
            reader: BufReader::new(Box::new(text.as_bytes())),
            name: "stdin".into(),
            number: 0,
            json,
        }
    }

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        let mut input = lines("a \r\n\nb", false);
        let mut payloads = Vec::new();
        while let Some(message) = input.next(&Fields::default()).unwrap() {
            payloads.push(message.payload.into_owned());
        }
        assert_eq!(payloads, [b"a ".to_vec(), b"".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, wrong) in [
            (
                "{\"payload\":\"a\"}\n\n{\"payloaf\":1}\n",
                "stdin, line 3: not a message: unknown field `payloaf`, did you mean `payload`?",
            ),
            ("\n\n{}\n", "stdin, line 3: payload or payload_base64 is missing"),
        ] {
            let mut input = lines(text, true);
            let error = loop {
                match input.next(&Fields::default()) {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("no error"),
                    Err(e) => break e.to_json().to_string(),
                }
            };
            assert!(error.contains(wrong), "{error}");
        }
    }
}
