//! Events: what happens to messages, as the server tells it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::sse::EventStream;

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
    options: WatchOptions,
    stream: EventStream<Event>,
}

impl Watch {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Watch {
        Watch { stream: EventStream::new(client, options.after.clone()), options }
    }

    /// True when the server has sent anything yet. An error after that is worth a retry.
    pub fn has_begun(&self) -> bool {
        self.stream.has_begun()
    }

    /// Waits for the next event. The future may be dropped and made anew, as often as one likes: nothing is
    /// lost, and what it waits for goes on.
    ///
    /// # Errors
    /// What the server says: `queue_not_found`, `invalid_argument` for a type or id that is none,
    /// `forbidden`; or that it could not be reached for as long as the client's options tell it to try.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        let Watch { options, stream } = self;
        let (event_id, event) = stream.next(|client, after| path(client, options, after)).await?;
        Ok(Event { event_id, ..event })
    }

    /// Id of the last event, for [`WatchOptions::after`] of a later stream. `None`: no event has come.
    pub fn position(&self) -> Option<&str> {
        self.stream.after.as_deref()
    }
}

fn path(client: &Client, options: &WatchOptions, after: Option<&str>) -> String {
    let WatchOptions { queue, pattern, types, after: _ } = options;
    let mut path = match queue {
        Some(queue) => client.path(&format!("/queues/{}/events", encoded(queue))),
        None => client.path("/events"),
    };
    let types = (!types.is_empty()).then(|| types.join(","));
    let parameters = [("types", types.as_deref()), ("queue", pattern.as_deref()), ("after", after)];
    let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    for (at, (name, value)) in given.enumerate() {
        path.push_str(&format!("{}{name}={}", if at == 0 { '?' } else { '&' }, encoded(value)));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stands_in_the_path() {
        let client = Client::new("http://localhost:1").unwrap();
        let path = |options: WatchOptions| path(&client, &options, options.after.as_deref());
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
