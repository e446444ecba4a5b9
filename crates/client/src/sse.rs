//! Streams of server-sent events, which are begun again when the connection breaks.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::Client;
use crate::error::ClientError;
use crate::transport::Download;
use crate::types::{not_understood, parse};

/// Largest event that is taken; the server's have some hundred bytes, or some kilobytes.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// After so long without a byte the connection is taken for dead: the server says something every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Pause before a stream that has ended is begun again.
const PAUSE: Duration = Duration::from_millis(250);

/// A stream of events whose data are the JSON of `T`.
#[derive(Debug)]
pub(crate) struct EventStream<T> {
    client: Client,
    /// Id of the last event, after which the next stream begins.
    pub(crate) after: Option<String>,
    /// The next stream, on its way.
    beginning: JoinSet<Result<Download, ClientError>>,
    stream: Option<Download>,
    lines: Lines,
    found: VecDeque<(String, T)>,
    /// When the last byte came; `None` before there was a stream.
    heard: Option<Instant>,
}

impl<T: DeserializeOwned> EventStream<T> {
    pub(crate) fn new(client: Client, after: Option<String>) -> EventStream<T> {
        EventStream {
            client,
            after,
            beginning: JoinSet::new(),
            stream: None,
            lines: Lines::default(),
            found: VecDeque::new(),
            heard: None,
        }
    }

    /// True when the server has sent anything yet.
    pub(crate) fn has_begun(&self) -> bool {
        self.heard.is_some()
    }

    /// Waits for the next event of streams of this path, and gives it with its id. The future may be dropped
    /// and made anew: nothing is lost, and what it waits for goes on.
    pub(crate) async fn next(
        &mut self,
        path: impl Fn(&Client, Option<&str>) -> String,
    ) -> Result<(String, T), ClientError> {
        loop {
            if let Some((id, event)) = self.found.pop_front() {
                if !id.is_empty() {
                    self.after = Some(id.clone());
                }
                return Ok((id, event));
            }
            let (Some(stream), Some(heard)) = (&mut self.stream, &mut self.heard) else {
                self.begin(&path).await?;
                continue;
            };
            match timeout_at(*heard + SILENCE_MAX, stream.next()).await {
                Ok(Ok(Some(piece))) => {
                    *heard = Instant::now();
                    self.lines.push(&piece, &mut self.found)?;
                    if self.found.is_empty() && !self.lines.id.is_empty() {
                        // It may be told where it stands without an event.
                        self.after = Some(self.lines.id.clone());
                    }
                }
                // It ended, broke, or is dead: there will be another one, or an error that tells why not.
                Ok(Ok(None) | Err(_)) | Err(_) => self.stream = None,
            }
        }
    }

    async fn begin(&mut self, path: impl Fn(&Client, Option<&str>) -> String) -> Result<(), ClientError> {
        if self.beginning.is_empty() {
            let client = self.client.clone();
            let call = client.call(Method::GET, path(&client, self.after.as_deref()), Bytes::new());
            let pause = if self.has_begun() { PAUSE } else { Duration::ZERO };
            self.beginning.spawn(async move {
                sleep(pause).await;
                client.open_again(&call).await
            });
        }
        match self.beginning.join_next().await {
            Some(Ok(stream)) => self.stream = Some(stream?),
            Some(Err(failed)) if failed.is_panic() => resume_unwind(failed.into_panic()),
            // It ends with the runtime.
            Some(Err(_)) | None => return Ok(()),
        }
        self.lines = Lines::default();
        self.heard = Some(Instant::now());
        Ok(())
    }
}

/// Server-sent events that are being read, line by line.
#[derive(Debug, Default)]
struct Lines {
    unread: Vec<u8>,
    /// The last id that was complete.
    id: String,
    next_id: String,
    data: Vec<u8>,
}

impl Lines {
    /// Takes the next bytes. After an error it goes on behind the event that was not understood.
    fn push<T: DeserializeOwned>(
        &mut self,
        piece: &[u8],
        found: &mut VecDeque<(String, T)>,
    ) -> Result<(), ClientError> {
        self.unread.extend_from_slice(piece);
        let mut begin = 0;
        let mut result = Ok(());
        while let Some(length) = self.unread[begin..].iter().position(|byte| *byte == b'\n') {
            let line = &self.unread[begin..begin + length];
            begin += length + 1;
            if let Some(id) = line.strip_prefix(b"id: ") {
                self.next_id = String::from_utf8_lossy(id).into_owned();
            } else if let Some(data) = line.strip_prefix(b"data: ") {
                self.data.extend_from_slice(data);
            } else if line.is_empty() {
                self.id.clone_from(&self.next_id);
                if !self.data.is_empty() {
                    match parse(&std::mem::take(&mut self.data)) {
                        Ok(event) => found.push_back((self.id.clone(), event)),
                        Err(error) => result = Err(error),
                    }
                }
            }
        }
        self.unread.drain(..begin);
        if self.unread.len() + self.data.len() > EVENT_BYTES_MAX {
            self.unread = Vec::new();
            self.data = Vec::new();
            return Err(not_understood(format!("an event of more than {EVENT_BYTES_MAX} bytes")));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;

    const TEXT: &str = "retry: 2000\nid: 1-1-0-0\n\nid: 1-1-1-1\nevent: sent\n\
                        data: {\"type\":\"sent\",\"at_ms\":7,\"queue\":\"q\",\"id\":\"a\"}\n\n: still here\nid: 1-9-0-1\n\n";

    #[test]
    fn events_are_read_however_they_are_cut() {
        for size in 1..TEXT.len() {
            let (mut lines, mut found) = (Lines::default(), VecDeque::new());
            for piece in TEXT.as_bytes().chunks(size) {
                lines.push(piece, &mut found).unwrap();
            }
            assert_eq!(lines.id, "1-9-0-1");
            let (id, event): (String, Event) = found.pop_front().unwrap();
            assert_eq!((event.kind.as_str(), id.as_str()), ("sent", "1-1-1-1"));
            assert_eq!((event.at_ms, event.queue.as_deref(), event.lost), (Some(7), Some("q"), None));
            assert!(found.is_empty());
        }
    }

    #[test]
    fn rubbish_is_an_error_and_takes_no_memory() {
        let mut found: VecDeque<(String, Event)> = VecDeque::new();
        assert!(Lines::default().push(b"data: {\"type\":1}\n\n", &mut found).is_err());
        assert!(Lines::default().push(&vec![b'x'; EVENT_BYTES_MAX + 1], &mut found).is_err());
        assert!(found.is_empty());
    }

    #[test]
    fn an_event_that_is_not_understood_is_told_once_and_the_others_are_given() {
        let (mut lines, mut found) = (Lines::default(), VecDeque::new());
        let text = TEXT.replace("id: 1-9-0-1", "data: {}\n\nid: 1-2-0-0\ndata: {\"type\":\"acked\"}\n");
        assert!(lines.push(text.as_bytes(), &mut found).is_err());
        assert!(lines.push(b": still here\n\n", &mut found).is_ok());
        let kinds: Vec<&str> = found.iter().map(|(_, event): &(String, Event)| event.kind.as_str()).collect();
        assert_eq!(kinds, ["sent", "acked"]);
    }
}
