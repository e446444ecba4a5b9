//! Events: what happens to messages, as the server tells it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

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

/// Which events, and from where on.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// One queue; `None`: all of the namespace.
    pub queue: Option<String>,
    /// Of all queues those whose names match, `*` standing for any number of characters; `None`: all.
    pub pattern: Option<String>,
    /// Names of types; none: all.
    pub types: Vec<String>,
    /// The [`Event::event_id`] of the last one that came; `None`: from now on.
    pub after: Option<String>,
}

/// Something that happened to a message, or to many at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// What: `sent`, `delivered`, `acked`, ...; `gap`: events that are not to be had.
    #[serde(rename = "type")]
    pub kind: String,
    /// When, in milliseconds since the Unix epoch; not of a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// The queue that the message is in afterwards, or was in; not of a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Which message; `None`: many, or a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The attempt that begins, ends or has ended, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u16>,
    /// When its lease ends, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until_ms: Option<u64>,
    /// Id of the consumer that it was delivered to, if that has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// Until when it waits, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at_ms: Option<u64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The queue that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_queue: Option<String>,
    /// How many messages at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Of a gap: how many events, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// To go on behind it later, see [`WatchOptions::after`].
    #[serde(default)]
    pub event_id: String,
    /// What a newer server added.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A stream of events, which is begun again where it was when it breaks off.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    options: WatchOptions,
    stream: Option<Download>,
    lines: Lines,
    found: VecDeque<Event>,
    begun: bool,
}

impl Watch {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Watch {
        let lines = Lines::default();
        Watch { client, options, stream: None, lines, found: VecDeque::new(), begun: false }
    }

    /// Waits for the next event. The future may be dropped and made anew: nothing is lost.
    ///
    /// # Errors
    /// What the server says: `queue_not_found`, `invalid_argument` for a type or id that is none, `forbidden`; or that it
    /// could not be reached for as long as the client's options tell it to try.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(event) = self.found.pop_front() {
                self.options.after = Some(event.event_id.clone());
                return Ok(event);
            }
            let Some(stream) = &mut self.stream else {
                self.begin().await?;
                continue;
            };
            match timeout(SILENCE_MAX, stream.next()).await {
                Ok(Ok(Some(piece))) => {
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

    /// Where it stands: to be given as [`WatchOptions::after`] to go on from here. `None` before it has begun.
    pub fn position(&self) -> Option<&str> {
        self.options.after.as_deref()
    }

    async fn begin(&mut self) -> Result<(), ClientError> {
        if self.begun {
            sleep(PAUSE).await;
        }
        let call = self.client.call(Method::GET, self.path(), Bytes::new());
        self.stream = Some(self.client.open_again(&call).await?);
        self.lines = Lines::default();
        self.begun = true;
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
    fn push(&mut self, piece: &[u8], found: &mut VecDeque<Event>) -> Result<(), ClientError> {
        self.unread.extend_from_slice(piece);
        let mut begin = 0;
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
                    let event: Event = parse(&std::mem::take(&mut self.data))?;
                    found.push_back(Event { event_id: self.id.clone(), ..event });
                }
            }
        }
        self.unread.drain(..begin);
        if self.unread.len() + self.data.len() > EVENT_BYTES_MAX {
            return Err(not_understood(format!("an event of more than {EVENT_BYTES_MAX} bytes")));
        }
        Ok(())
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
