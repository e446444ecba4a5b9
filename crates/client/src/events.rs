//! Events: what happens to messages, as the server tells it.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::transport::Download;
use crate::types::{not_understood, parse};

/// Largest event that is taken; the server's have some hundred bytes.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// After so long without a byte the connection is taken for dead: the server says something every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Pause before a stream that has ended is begun again.
const PAUSE: Duration = Duration::from_millis(250);

/// The options of a stream of events.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Name of a queue; `None`: all queues of the namespace.
    pub queue: Option<String>,
    /// Pattern of names of queues, in which `*` stands for any number of characters; `None`: all.
    pub pattern: Option<String>,
    /// Types of events, such as `acked`; empty: all.
    pub types: Vec<String>,
    /// [`Event::event_id`] of the last event received, after which the stream begins; `None`: from now on.
    pub after: Option<String>,
}

/// An event: a change of the state of one message, or of many at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Type: `sent`, `delivered`, `acked`, and so on; `gap` stands for events that the server no longer has.
    #[serde(rename = "type")]
    pub kind: String,
    /// Time, in milliseconds since the Unix epoch; `None` of a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// Name of the queue that the message is in afterwards, or was in; `None` of a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Id of the message; `None`: many messages, or a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Number of the attempt that begins, ends or has ended, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u16>,
    /// End of its lease, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until_ms: Option<u64>,
    /// Id of the consumer that it was delivered to, if that has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// Time at which it becomes ready, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at_ms: Option<u64>,
    /// Reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the queue that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_queue: Option<String>,
    /// Number of messages, where the event is about many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Number of events in a gap, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Id of the event, for [`WatchOptions::after`].
    #[serde(default)]
    pub event_id: String,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A stream of events, which is resumed after the last event when the connection breaks.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    options: WatchOptions,
    /// The next stream, on its way.
    beginning: JoinSet<Result<Download, ClientError>>,
    stream: Option<Download>,
    lines: Lines,
    found: VecDeque<Event>,
    /// When the last byte came; `None` before there was a stream.
    heard: Option<Instant>,
}

impl Watch {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Watch {
        Watch {
            client,
            options,
            beginning: JoinSet::new(),
            stream: None,
            lines: Lines::default(),
            found: VecDeque::new(),
            heard: None,
        }
    }

    /// True when the server has sent anything yet. An error after that is worth a retry.
    pub fn has_begun(&self) -> bool {
        self.heard.is_some()
    }

    /// Waits for the next event. The future may be dropped and made anew, as often as one likes: nothing is
    /// lost, and what it waits for goes on.
    ///
    /// # Errors
    /// What the server says: `queue_not_found`, `invalid_argument` for a type or id that is none,
    /// `forbidden`; or that it could not be reached for as long as the client's options tell it to try.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(event) = self.found.pop_front() {
                self.options.after = Some(event.event_id.clone());
                return Ok(event);
            }
            let (Some(stream), Some(heard)) = (&mut self.stream, &mut self.heard) else {
                self.begin().await?;
                continue;
            };
            match timeout_at(*heard + SILENCE_MAX, stream.next()).await {
                Ok(Ok(Some(piece))) => {
                    *heard = Instant::now();
                    self.lines.push(&piece, &mut self.found)?;
                    if self.found.is_empty() && !self.lines.id.is_empty() {
                        // It may be told where it stands without an event.
                        self.options.after = Some(self.lines.id.clone());
                    }
                }
                // It ended, broke, or is dead: there will be another one, or an error that tells why not.
                Ok(Ok(None) | Err(_)) | Err(_) => self.stream = None,
            }
        }
    }

    /// Id of the last event, for [`WatchOptions::after`] of a later stream. `None`: no event has come.
    pub fn position(&self) -> Option<&str> {
        self.options.after.as_deref()
    }

    async fn begin(&mut self) -> Result<(), ClientError> {
        if self.beginning.is_empty() {
            let client = self.client.clone();
            let call = client.call(Method::GET, self.path(), Bytes::new());
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

    fn path(&self) -> String {
        let WatchOptions { queue, pattern, types, after } = &self.options;
        let mut path = match queue {
            Some(queue) => self.client.path(&format!("/queues/{}/events", encoded(queue))),
            None => self.client.path("/events"),
        };
        let types = (!types.is_empty()).then(|| types.join(","));
        let parameters = [("types", types.as_ref()), ("queue", pattern.as_ref()), ("after", after.as_ref())];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (at, (name, value)) in given.enumerate() {
            path.push_str(&format!("{}{name}={}", if at == 0 { '?' } else { '&' }, encoded(value)));
        }
        path
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
    fn push(&mut self, piece: &[u8], found: &mut VecDeque<Event>) -> Result<(), ClientError> {
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
                    match parse::<Event>(&std::mem::take(&mut self.data)) {
                        Ok(event) => found.push_back(Event { event_id: self.id.clone(), ..event }),
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
            let event = found.pop_front().unwrap();
            assert_eq!((event.kind.as_str(), event.event_id.as_str()), ("sent", "1-1-1-1"));
            assert_eq!((event.at_ms, event.queue.as_deref(), event.lost), (Some(7), Some("q"), None));
            assert!(found.is_empty());
        }
    }

    #[test]
    fn rubbish_is_an_error_and_takes_no_memory() {
        let mut found = VecDeque::new();
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
        let kinds: Vec<&str> = found.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["sent", "acked"]);
    }

    #[test]
    fn what_is_asked_for_stands_in_the_path() {
        let client = Client::new("http://localhost:1").unwrap();
        let path = |options| Watch::new(client.clone(), options).path();
        assert_eq!(path(WatchOptions::default()), "/v1/events");
        let options = WatchOptions {
            types: vec!["sent".into(), "acked".into()],
            pattern: Some("a*".into()),
            after: Some("1-2-3-4".into()),
            ..WatchOptions::default()
        };
        assert_eq!(path(options), "/v1/events?types=sent%2Cacked&queue=a%2A&after=1-2-3-4");
        let options = WatchOptions { queue: Some("a/b".into()), ..WatchOptions::default() };
        assert_eq!(path(options), "/v1/queues/a%2Fb/events");
    }
}
