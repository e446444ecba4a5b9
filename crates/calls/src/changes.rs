//! Changes of one message: cancel, hold, approve, deny, retry, move, and new values of its fields.

use std::fmt;

use schemars::{JsonSchema, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use sluice_engine::Error;
use sluice_engine::change::{Change as EngineChange, ChangeAction, NewFields, Verb};
use sluice_engine::command::Deliver;
use sluice_engine::id::MessageId;
use sluice_engine::limit::{COST_MAX, Cost};
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};

use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read, clip_to};
use crate::payload::Tags;
use crate::permit::Permit;
use crate::schema::inline_schemas;
use crate::value::{Nothing, Within, words};

/// Latest time in milliseconds that the engine can name in microseconds.
const AT_MS_MAX: u64 = u64::MAX / 1_000;
/// Most characters of a text of a caller in the audit log.
const AUDITED_CHARS_MAX: usize = 1_000;

/// A new priority, 0 to 9.
pub(crate) type Priority = Within<0, { PRIORITY_MAX as u64 }>;
/// A delay, in milliseconds.
pub(crate) type DelayMs = Within<0, DELAY_MS_MAX>;
/// A time, in milliseconds since the Unix epoch.
pub(crate) type AtMs = Within<0, AT_MS_MAX>;
/// A number of attempts.
pub(crate) type MessageCost = Within<0, { COST_MAX as u64 }>;
pub(crate) type Attempts = Within<1, { ATTEMPTS_MAX as u64 }>;

words! {
    Verb:
        "cancel" = Verb::Cancel,
        "hold" = Verb::Hold,
        "approve" = Verb::Approve,
        "deny" = Verb::Deny,
        "retry" = Verb::Retry,
        "move" = Verb::Move,
        "change" = Verb::Change;
}

/// The version of a message: another one after each change of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version(pub(crate) u64);

impl Version {
    /// The version as the engine has it; 0 stands for any.
    fn or_any(version: Option<Version>) -> u64 {
        version.map_or(0, |version| version.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
        deserializer.deserialize_str(VersionVisitor)
    }
}

struct VersionVisitor;

impl Visitor<'_> for VersionVisitor {
    type Value = Version;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Version, E> {
        let version = from_hex(text).filter(|version| *version != 0).map(Version);
        version.ok_or_else(|| E::custom("expected the version of the message as it was shown"))
    }
}

inline_schemas! {
    Version: json_schema!({"type": "string"});
}

/// Reads 16 digits of lower-case hexadecimal.
pub(crate) fn from_hex(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits { u64::from_str_radix(text, 16).ok() } else { None }
}

/// A change that needs no more than its name.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ChangeRequest")]
#[schemars(example = json!({"by": "ann", "why": "sent by mistake"}))]
pub struct Plain {
    /// Name of the person who changes it, for the history; up to 256 bytes.
    #[schemars(length(max = 256))]
    by: String,
    /// Why, for the history; up to 4,096 bytes.
    #[schemars(length(max = 4_096))]
    why: String,
    /// Change it only if it still has this version.
    version: Option<Version>,
}

impl Plain {
    async fn make(&self, permit: &Permit<'_>, id: MessageId, action: ChangeAction<'_>) -> Answered {
        change(permit, (id, Version::or_any(self.version)), action, &self.by, &self.why).await
    }
}

type Answered = Result<Done<Nothing>, CallError>;

/// A message to cancel.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cancel(Plain);

impl Unary for Cancel {
    type Answer = Nothing;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let id = operable(permit).await?;
        self.0.make(permit, id, ChangeAction::Cancel).await
    }
}

/// A message to hold until a person decides.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hold(Plain);

impl Unary for Hold {
    type Answer = Nothing;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let id = operable(permit).await?;
        self.0.make(permit, id, ChangeAction::Hold).await
    }
}

/// A held message to let go on.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Approve(Plain);

impl Unary for Approve {
    type Answer = Nothing;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let id = operable(permit).await?;
        self.0.make(permit, id, ChangeAction::Approve).await
    }
}

/// A held message to make a dead letter.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Deny(Plain);

impl Unary for Deny {
    type Answer = Nothing;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let id = operable(permit).await?;
        self.0.make(permit, id, ChangeAction::Deny).await
    }
}

/// A message to make ready now.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Retry(Plain);

impl Unary for Retry {
    type Answer = Nothing;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let id = operable(permit).await?;
        permit.allow_messages(Right::Send, std::iter::once(id)).await?;
        self.0.make(permit, id, ChangeAction::Retry).await
    }
}

/// A message to move to another queue of the namespace.
// No default of the whole: with one, the schema would require no field.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MoveRequest")]
#[schemars(example = json!({"to": "b", "by": "ann"}))]
pub struct Move {
    /// Name of the person who moves it, for the history; up to 256 bytes.
    #[schemars(length(max = 256))]
    #[serde(default)]
    by: String,
    /// Why, for the history; up to 4,096 bytes.
    #[schemars(length(max = 4_096))]
    #[serde(default)]
    why: String,
    /// Move it only if it still has this version.
    version: Option<Version>,
    /// Name of a queue that exists.
    #[schemars(required)]
    to: Option<String>,
}

impl Unary for Move {
    type Answer = Nothing;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let to = self.to.as_deref().ok_or_else(missing_to)?;
        let id = operable(permit).await?;
        permit.allow_queue(Right::Operate, to)?;
        permit.allow_queue(Right::Send, to)?;
        let item = (id, Version::or_any(self.version));
        change(permit, item, ChangeAction::Move { to }, &self.by, &self.why).await
    }
}

/// New values for fields of a message that waits; the others stay as they are.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "FieldsRequest")]
#[schemars(example = json!({"priority": 9, "tags": ["urgent"]}))]
pub struct Change {
    /// Name of the person who changes it, for the history; up to 256 bytes.
    #[schemars(length(max = 256))]
    by: String,
    /// Why, for the history; up to 4,096 bytes.
    #[schemars(length(max = 4_096))]
    why: String,
    /// Change it only if it still has this version.
    version: Option<Version>,
    /// Higher first; it goes behind its equals.
    priority: Option<Priority>,
    /// Ready after so many milliseconds from now; not together with `deliver_at_ms`.
    delay_ms: Option<DelayMs>,
    /// Ready at this time, in milliseconds since the Unix epoch; not together with `delay_ms`.
    deliver_at_ms: Option<AtMs>,
    /// Attempts before it becomes a dead letter.
    max_attempts: Option<Attempts>,
    /// Share of its limit's rates that each delivery takes from now on.
    cost: Option<MessageCost>,
    /// All tags that it has from now on.
    #[schemars(with = "Option<Tags>")]
    tags: Option<Vec<String>>,
}

impl Unary for Change {
    type Answer = Nothing;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Answered {
        let tags: Option<Vec<&str>> =
            self.tags.as_ref().map(|tags| tags.iter().map(String::as_str).collect());
        let fields = NewFields {
            priority: self.priority.map(|priority| priority.get() as u8),
            deliver: deliver(self.delay_ms, self.deliver_at_ms)?,
            max_attempts: self.max_attempts.map(|attempts| attempts.get() as u16),
            cost: self.cost.map(|cost| Cost(cost.get() as u32)),
            tags: tags.as_deref(),
        };
        let id = operable(permit).await?;
        let item = (id, Version::or_any(self.version));
        change(permit, item, ChangeAction::Set(fields), &self.by, &self.why).await
    }
}

/// The new time at which a message becomes ready, if one is given.
///
/// # Errors
/// `conflicting_fields`: both are given.
pub(crate) fn deliver(delay_ms: Option<DelayMs>, at_ms: Option<AtMs>) -> Read<Option<Deliver>> {
    match (delay_ms, at_ms) {
        (Some(_), Some(_)) => Err(Fault::conflict("delay_ms", "deliver_at_ms").inside("deliver_at_ms")),
        (Some(delay_ms), None) => Ok(Some(Deliver::AfterMs(delay_ms.get()))),
        (None, Some(at_ms)) => Ok(Some(Deliver::AtUs(at_ms.get() * 1_000))),
        (None, None) => Ok(None),
    }
}

/// The fault of a move that names no queue.
pub(crate) fn missing_to() -> Box<Fault> {
    Fault::missing("to", "name the queue to move to")
}

/// The message that the call names, which the caller may operate.
async fn operable(permit: &Permit<'_>) -> Result<MessageId, CallError> {
    let id = permit.message_id(permit.name())?;
    permit.allow_messages(Right::Operate, std::iter::once(id)).await?;
    Ok(id)
}

async fn change(
    permit: &Permit<'_>,
    item: (MessageId, u64),
    action: ChangeAction<'_>,
    by: &str,
    why: &str,
) -> Answered {
    let change = EngineChange { namespace: item.0.namespace, items: &[item], action, by, why };
    permit.node().change(&change).await?.into_iter().collect::<Result<(), Error>>()?;
    let mut details = reasons(by, why);
    if let ChangeAction::Move { to } = action {
        details.insert("to".into(), to.into());
    }
    let details = (!details.is_empty()).then(|| details.into());
    Ok(Done::from(Nothing {}).with_details(details))
}

/// The name of the person who has asked for a change, and the reason, as far as they are given, for the audit
/// log.
pub(crate) fn reasons(by: &str, why: &str) -> Map<String, Value> {
    let given = [("by", by), ("why", why)].into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| (name.to_owned(), audited(text).into())).collect()
}

/// A text that a caller has chosen, as it stands in the audit log: of a long one only the beginning.
pub(crate) fn audited(text: &str) -> String {
    clip_to(AUDITED_CHARS_MAX, text)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;
    use crate::value::Words;

    #[test]
    fn the_words_are_those_of_the_engine() {
        assert_eq!(Verb::ALL.map(|verb| (verb, verb.name())), Verb::WORDS);
    }

    #[test]
    fn versions_are_read_as_they_are_shown() {
        assert_eq!(from_value::<Version>(json!(Version(7).to_string())).unwrap(), Version(7));
        for wrong in ["7", "0000000000000000", "000000000000000G", "+000000000000007"] {
            let reason = from_value::<Version>(json!(wrong)).unwrap_err().to_string();
            assert!(reason.contains("as it was shown"), "{wrong}: {reason}");
        }
    }

    #[test]
    fn one_time_is_given() {
        let read = |fields| {
            let change: Change = from_value(fields).unwrap();
            deliver(change.delay_ms, change.deliver_at_ms).map_err(|fault| fault.code)
        };
        assert_eq!(read(json!({"by": "ann", "tags": ["a"]})), Ok(None));
        assert_eq!(read(json!({"delay_ms": 5})), Ok(Some(Deliver::AfterMs(5))));
        assert_eq!(read(json!({"deliver_at_ms": 5})), Ok(Some(Deliver::AtUs(5_000))));
        assert_eq!(read(json!({"delay_ms": 1, "deliver_at_ms": 1})), Err("conflicting_fields"));
    }

    #[tokio::test]
    async fn a_move_names_its_queue_and_a_message_is_of_the_namespace() {
        let server = Open::new();
        let foreign = "00000080000000g000g0";
        let moved = Move::default().run(&server.permit(Operation::MessageMove, foreign)).await;
        assert_eq!(moved.unwrap_err().code(), "missing_field");
        let cancelled = Cancel::default().run(&server.permit(Operation::MessageCancel, foreign)).await;
        assert_eq!(cancelled.unwrap_err().code(), "message_not_found");
        let unreadable = Cancel::default().run(&server.permit(Operation::MessageCancel, "x")).await;
        assert_eq!(unreadable.unwrap_err().code(), "invalid_message_id");
    }
}
