//! Events of a namespace or a queue, as they happen.

use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde_json::json;
use sluice_engine::Error;
use sluice_engine::event::EventKind;
pub use sluice_node::{EventPosition, Gap, GapReason, Heard, Reader, Told, ToldDetail};

use crate::access::{Patterns, Right};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::{AT_MS_EXAMPLE, ID_EXAMPLE};
use crate::operation::Subject;
use crate::permit::Permit;
use crate::schema::inline_schemas;
use crate::server::Calls;
use crate::standing::{Standing, Waited};
use crate::value::given;

/// A reader of events, and the standing of who reads.
#[derive(Debug)]
pub struct Watch {
    /// The events.
    pub reader: Reader,
    /// True when the caller may still have them.
    pub standing: Standing,
}

/// Begins to watch the queue that a request names, or its whole namespace; after `after`, if that is given.
///
/// # Errors
/// Those of the node.
pub async fn watch(permit: &Permit<'_>, after: Option<EventPosition>) -> Result<Watch, CallError> {
    let queue = (permit.operation().subject() == Subject::Queue).then(|| permit.name());
    let reader = permit.node().watch(permit.namespace_id()?, queue, after).await?;
    let waited = || queue.map_or(Waited::Whole, |queue| Waited::queues(std::iter::once(queue)));
    Ok(Watch { reader, standing: permit.standing(Right::Observe, waited) })
}

impl Calls {
    /// Checks that a namespace is still there, for those who watch it.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn check_namespace(&self, name: &str) -> Result<(), Error> {
        self.node().namespace_id(name).map(|_| ())
    }
}

/// An event of a message, or a gap: events that the reader has missed. Fields that do not apply are absent.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(example = json!({
    "type": "delivered", "at_ms": AT_MS_EXAMPLE, "queue": "mail", "id": ID_EXAMPLE, "attempt": 1,
    "lease_until_ms": AT_MS_EXAMPLE + 30_000,
}))]
pub struct Event {
    /// Type of the event, or `gap`.
    #[schemars(rename = "type")]
    pub kind: EventType,
    /// When it happened, in milliseconds since the Unix epoch; absent of a gap.
    pub at_ms: Option<u64>,
    /// Name of the queue that the message is in afterwards, or was in; absent of a gap.
    pub queue: Option<String>,
    /// Id of the message; absent of many at once, and of a gap.
    pub id: Option<String>,
    /// Number of the attempt that begins, ends or has ended, from 1.
    pub attempt: Option<u16>,
    /// `delivered`: when the lease ends, in milliseconds since the Unix epoch.
    pub lease_until_ms: Option<u64>,
    /// `delivered`: id of the consumer, if that has a name.
    pub consumer: Option<String>,
    /// `delayed`: when it is ready, in milliseconds since the Unix epoch.
    pub ready_at_ms: Option<u64>,
    /// `died`, `held`, `dropped` and `gap`: why.
    pub reason: Option<String>,
    /// `moved`: name of the queue that it was in.
    pub from_queue: Option<String>,
    /// `dropped`: how many messages at once.
    pub messages: Option<u64>,
    /// `gap`: how many events were missed, if that is known.
    pub lost: Option<u64>,
}

/// The type of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventType {
    /// Something happened to a message.
    Kind(EventKind),
    /// The reader has missed events.
    Gap,
}

inline_schemas! {
    EventType: json_schema!({"type": "string", "enum": EventKind::NAMES.iter().copied().chain(["gap"]).collect::<Vec<_>>()});
}

/// Selection of events of a namespace, and the place to begin at.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "EventsRequest")]
pub struct OfNamespace {
    /// Types of events with commas between them; default: all.
    types: Option<String>,
    /// Only queues whose names match; `*` stands for any number of characters.
    queue: Option<String>,
    /// The id of the last event that came; Last-Event-ID goes before it.
    after: Option<String>,
}

/// Selection of events of a queue, and the place to begin at.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueEventsRequest")]
pub struct OfQueue {
    /// Types of events with commas between them; default: all.
    types: Option<String>,
    /// The id of the last event that came; Last-Event-ID goes before it.
    after: Option<String>,
}

/// The events that a reader wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// One bit for each kind.
    kinds: u32,
    queues: Option<Patterns>,
    /// Where to go on; `None`: from now on.
    pub after: Option<EventPosition>,
}

const _: () = assert!(EventKind::ALL.len() <= 32, "each kind has a bit");

impl TryFrom<OfNamespace> for Wanted {
    type Error = Box<Fault>;

    fn try_from(request: OfNamespace) -> Read<Wanted> {
        let pattern = given(request.queue.as_deref())
            .map(|text| Patterns::new(&[text]).map_err(|(_, reason)| Fault::invalid(reason).inside("queue")));
        Wanted::new(request.types.as_deref(), pattern.transpose()?, request.after.as_deref())
    }
}

impl TryFrom<OfQueue> for Wanted {
    type Error = Box<Fault>;

    fn try_from(request: OfQueue) -> Read<Wanted> {
        Wanted::new(request.types.as_deref(), None, request.after.as_deref())
    }
}

impl Wanted {
    fn new(types: Option<&str>, queues: Option<Patterns>, after: Option<&str>) -> Read<Wanted> {
        let kinds = match given(types) {
            None => u32::MAX,
            Some(text) => read_kinds(text).map_err(|fault| fault.inside("types"))?,
        };
        let after = given(after).map(|text| read_position(text.as_bytes()));
        let after = after.transpose().map_err(|fault| fault.inside("after"))?;
        Ok(Wanted { kinds, queues, after })
    }

    /// True when the reader wants this one.
    pub fn wants(&self, told: &Told) -> bool {
        let from = match &told.detail {
            ToldDetail::From(from) => Some(from),
            _ => None,
        };
        let fits = |queues: &Patterns| queues.fit(&told.queue) || from.is_some_and(|from| queues.fit(from));
        self.kinds & bit(told.kind) != 0 && self.queues.as_ref().is_none_or(fits)
    }
}

fn bit(kind: EventKind) -> u32 {
    1 << kind as u32
}

fn read_kinds(text: &str) -> Read<u32> {
    let mut kinds = 0;
    for name in text.split(',') {
        let kind = EventKind::by_name(name).ok_or_else(|| Fault::one_of(EventKind::NAMES, name))?;
        kinds |= bit(kind);
    }
    Ok(kinds)
}

/// Reads the id of an event.
///
/// # Errors
/// `invalid_argument`.
pub fn read_position(text: &[u8]) -> Read<EventPosition> {
    let position = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    position.ok_or_else(|| {
        let got: String = String::from_utf8_lossy(text).chars().take(64).collect();
        Fault::invalid(format!("{got:?} is not the id of an event: give the last one that came, or none"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_name() {
        assert_eq!(read_kinds("sent,acked").unwrap(), bit(EventKind::Sent) | bit(EventKind::Acked));
        assert_eq!(read_kinds("dropped,dropped").unwrap(), bit(EventKind::Dropped));
        for bad in ["sent,", "Sent", "sent acked", "gap"] {
            let fault = read_kinds(bad).unwrap_err();
            assert_eq!(fault.code, "invalid_argument");
            assert!(fault.reason.contains("expected one of sent, delayed, due"), "{}", fault.reason);
        }
    }

    #[test]
    fn noise_is_no_position() {
        let mut random = crate::testing::Random(23);
        for _ in 0..20_000 {
            let mut text = b"1795262113283000-42-1-1".to_vec();
            random.mutate(&mut text);
            if let Ok(position) = read_position(&text) {
                assert_eq!(position.to_string().parse(), Ok(position));
            }
        }
        assert!(read_position(b"\xff").is_err());
    }
}
