//! Dead letters of a queue: count them by error, make them ready again, at once or at a rate, and delete
//! them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::time::{Duration, Instant};

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::limits::{ERROR_TEXT_BYTES_MAX, REDRIVE_PER_SECOND_MAX};
use sluice_node::api::LastError;

use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::ID_EXAMPLE;
use crate::permit::Permit;
use crate::schema::inline_schemas;
use crate::value::{True, Within, cursor};

/// The dead letters to make ready again: give `ids`, or `"all": true`.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RedriveRequest", transform = ids_or_all)]
#[schemars(example = json!({"all": true, "per_second": 50}))]
#[schemars(example = json!({"ids": [ID_EXAMPLE]}))]
pub struct Redrive {
    /// Ids of the messages, 1 to 10,000: all of them become ready, or none.
    ids: Option<Ids>,
    /// Every message that is dead at this moment; only `true`.
    #[schemars(with = "Option<True>")]
    all: Option<bool>,
    /// With `all`: messages per second; default: all at once.
    per_second: Option<Within<1, { REDRIVE_PER_SECOND_MAX as u64 }>>,
}

/// The number of messages that are ready again.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({"redriven": 13}))]
pub struct Redriven {
    /// Messages; at a rate: those that will be.
    redriven: u64,
}

impl Unary for Redrive {
    type Answer = Redriven;
    const BODY: Body = Body::Items;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Redriven>, CallError> {
        permit.allow_queue(Right::Send, permit.name())?;
        let (node, namespace, queue) = (permit.node(), permit.namespace_id()?, permit.name());
        let ids = chosen(self.ids, self.all, node.limits().batch_items)?;
        let redriven = match self.per_second {
            Some(_) if !ids.is_empty() => return Err(Fault::conflict("ids", "per_second").into()),
            Some(rate) => node.dead_redrive_rate(namespace, queue, rate.get() as u32).await?,
            None => node.dead_redrive(namespace, queue, &ids).await?,
        };
        Ok(Redriven { redriven }.into())
    }
}

/// A redrive at a rate to end.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RedriveEndRequest")]
pub struct RedriveEnd {}

/// The rest of a redrive that was ended.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RedriveEnded")]
#[schemars(example = json!({"left": 13}))]
pub struct Left {
    /// Messages that stay dead.
    left: u64,
}

impl Unary for RedriveEnd {
    type Answer = Left;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Left>, CallError> {
        // A rate of zero ends the redrive that runs.
        let left = permit.node().dead_redrive_rate(permit.namespace_id()?, permit.name(), 0).await?;
        Ok(Left { left }.into())
    }
}

/// The dead letters to delete: give `ids`, or `"all": true`.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DeadDeleteRequest", transform = ids_or_all)]
#[schemars(example = json!({"all": true}))]
#[schemars(example = json!({"ids": [ID_EXAMPLE]}))]
pub struct Delete {
    /// Ids of the messages, 1 to 10,000: all of them are deleted, or none.
    ids: Option<Ids>,
    /// Every message that is dead at this moment; only `true`.
    #[schemars(with = "Option<True>")]
    all: Option<bool>,
}

/// The number of messages that were deleted.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeadDeleted")]
#[schemars(example = json!({"deleted": 13}))]
pub struct Deleted {
    /// Messages.
    deleted: u64,
}

impl Unary for Delete {
    type Answer = Deleted;
    const BODY: Body = Body::Items;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Deleted>, CallError> {
        let ids = chosen(self.ids, self.all, permit.node().limits().batch_items)?;
        let deleted = permit.node().dead_delete(permit.namespace_id()?, permit.name(), &ids).await?;
        Ok(Deleted { deleted }.into())
    }
}

/// Texts that one answer counts each by itself.
const TEXTS_MAX: usize = 1_000;
/// Default number of dead letters that one answer looks at.
const LOOKED_AT_DEFAULT: u64 = 10_000;
/// Time after which an answer ends with what it has counted.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// The part of a queue's dead letters to count by the text of their last error.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DeadErrorsRequest")]
pub struct Errors {
    /// `next` of the answer before.
    cursor: Option<String>,
    /// Maximum number of dead letters to look at; default 10,000; fewer where that takes longer than a
    /// second.
    limit: Option<Within<1, 100_000>>,
}

/// Dead letters by the text of their last error.
#[derive(Clone, Default, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({"errors": [{"error": "smtp: 451", "fingerprint": "724d96ee3b2a9c16", "messages": 12}],
    "without_text": 2, "with_other_texts": 0, "with_damaged_text": 0, "scanned": 14}))]
pub struct DeadErrors {
    /// The first 1,000 texts, fewer if memory is short; the most frequent first, equals by text.
    errors: Vec<DeadError>,
    /// Dead letters whose last attempt gave no text, such as those whose lease ended.
    without_text: u64,
    /// Dead letters with other texts than these.
    with_other_texts: u64,
    /// Dead letters whose text is damaged.
    with_damaged_text: u64,
    /// Dead letters that were looked at.
    scanned: u64,
    /// Where to go on; absent when all were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The dead letters with one text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct DeadError {
    /// The text of their last error.
    error: String,
    /// Fingerprint of the text, 16 hexadecimal digits, which a search finds by `/error_fingerprint`: errors
    /// that differ in ids and times alone have the same.
    fingerprint: String,
    /// Their number.
    messages: u64,
}

impl Unary for Errors {
    type Answer = DeadErrors;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<DeadErrors>, CallError> {
        self.count(permit, COUNT_TIME).await.map(Done::from)
    }
}

impl Errors {
    /// Counts until the limit or the time is reached; a page at the least.
    async fn count(self, permit: &Permit<'_>, time: Duration) -> Result<DeadErrors, CallError> {
        let began = Instant::now();
        let mut cursor = cursor(self.cursor.as_deref())?;
        let limit = self.limit.map_or(LOOKED_AT_DEFAULT, Within::get);
        let mut room = permit.room().reserve_up_to(TEXTS_MAX * ERROR_TEXT_BYTES_MAX)?;
        let namespace = permit.namespace_id()?;
        let mut by_text = HashMap::new();
        let mut counted = DeadErrors::default();
        loop {
            let most = (limit - counted.scanned) as usize;
            let page = permit.node().dead_errors(namespace, permit.name(), cursor, most).await?;
            counted.scanned += page.items.len() as u64;
            page.items.into_iter().for_each(|error| counted.count(error, &mut by_text, &mut room));
            cursor = page.next;
            if cursor.is_none() || counted.scanned >= limit || began.elapsed() >= time {
                break;
            }
        }
        counted.next = cursor.map(|cursor| cursor.to_string());
        let told = |(error, (fingerprint, messages)): (String, (u64, u64))| DeadError {
            error,
            fingerprint: format!("{fingerprint:016x}"),
            messages,
        };
        counted.errors = by_text.into_iter().map(told).collect();
        counted.errors.sort_by(|one, other| {
            other.messages.cmp(&one.messages).then_with(|| one.error.cmp(&other.error))
        });
        Ok(counted)
    }
}

impl DeadErrors {
    /// Counts a dead letter; `room`: bytes that are left for texts.
    fn count(&mut self, error: LastError, by_text: &mut HashMap<String, (u64, u64)>, room: &mut usize) {
        let (text, fingerprint) = match error {
            LastError::Text(text, fingerprint) => (text, fingerprint),
            LastError::NoText => return self.without_text += 1,
            LastError::Damaged => return self.with_damaged_text += 1,
        };
        let (is_full, bytes) = (by_text.len() >= TEXTS_MAX || text.len() > *room, text.len());
        match by_text.entry(text) {
            Entry::Occupied(mut known) => known.get_mut().1 += 1,
            Entry::Vacant(_) if is_full => self.with_other_texts += 1,
            Entry::Vacant(new) => {
                new.insert((fingerprint, 1));
                *room -= bytes;
            }
        }
    }
}

/// The ids that are given; empty: all, which has to be said.
fn chosen(ids: Option<Ids>, all: Option<bool>, ids_max: u32) -> Read<Vec<MessageId>> {
    match (ids, all) {
        (Some(_), Some(_)) => Err(Fault::conflict("ids", "all")),
        (Some(ids), None) => ids.checked(ids_max.into()),
        (None, Some(true)) => Ok(Vec::new()),
        (None, Some(false)) => Err(Fault::invalid("all can only be true: or give ids").inside("all")),
        (None, None) => Err(Fault::missing("ids", "give ids, or \"all\": true")),
    }
}

/// Splits the schema of a request into its two forms: one with `ids`, one with `all` and what goes with that.
fn ids_or_all(schema: &mut Schema) {
    let Some(Value::Object(mut all)) = schema.remove("properties") else { return };
    let ids: Map<String, Value> = all.remove_entry("ids").into_iter().collect();
    let form = |required: &str, properties: Map<String, Value>| {
        json!({
            "type": "object", "properties": properties, "required": [required],
            "additionalProperties": false,
        })
    };
    for of_one_form in ["type", "additionalProperties"] {
        schema.remove(of_one_form);
    }
    schema.insert("oneOf".to_owned(), json!([form("ids", ids), form("all", all)]));
}

/// A list of message ids in a request. After the first text that is not an id the rest of the list is read
/// and dropped, so that the list takes less memory than the request.
#[derive(Clone, Default, Debug)]
struct Ids {
    ids: Vec<MessageId>,
    wrong: Option<Wrong>,
}

/// The first text of a list that is not an id.
#[derive(Clone, Debug)]
struct Wrong {
    position: usize,
    error: Error,
}

impl Ids {
    /// The ids, of which there are 1 to `ids_max`.
    ///
    /// # Errors
    /// `invalid_message_id`, `batch_too_large`, or `invalid_argument` when there are none.
    fn checked(self, ids_max: u64) -> Read<Vec<MessageId>> {
        if let Some(Wrong { position, error }) = self.wrong {
            return Err(Box::<Fault>::from(error).at(position).inside("ids"));
        }
        match self.ids.len() as u64 {
            0 => Err(Fault::invalid("expected at least one id").inside("ids")),
            size if size > ids_max => Err(Error::BatchTooLarge { what: "ids", size, limit: ids_max }.into()),
            _ => Ok(self.ids),
        }
    }
}

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ids, D::Error> {
        deserializer.deserialize_seq(IdsVisitor)
    }
}

struct IdsVisitor;

impl<'de> Visitor<'de> for IdsVisitor {
    type Value = Ids;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of message ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ids, A::Error> {
        let mut ids = Ids::default();
        while let Some(text) = list.next_element::<Cow<'de, str>>()? {
            match text.parse() {
                Ok(id) => ids.ids.push(id),
                Err(error) => {
                    ids.wrong = Some(Wrong { position: ids.ids.len(), error });
                    break;
                }
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ids)
    }
}

inline_schemas! {
    Ids: json_schema!({"type": "array", "items": {"type": "string"}});
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;
    use sluice_engine::command::{SettleItem, Settlement};
    use sluice_engine::{NamespaceId, error_fingerprint};
    use sluice_node::api::ReceiveOptions;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[test]
    fn all_has_to_be_said() {
        let read = |body: Value| {
            let delete: Delete = from_value(body).unwrap();
            chosen(delete.ids, delete.all, 1)
        };
        assert_eq!(read(json!({"all": true})).unwrap(), []);
        let id = MessageId { namespace: NamespaceId(1), sequence: 3 };
        assert_eq!(read(json!({"ids": [id.to_string()]})).unwrap(), [id]);
        for (body, code, field) in [
            (json!({}), "missing_field", "ids"),
            (json!({"ids": []}), "invalid_argument", "ids"),
            (json!({"all": false}), "invalid_argument", "all"),
            (json!({"all": true, "ids": []}), "conflicting_fields", ""),
            (json!({"ids": [id.to_string(), id.to_string()]}), "batch_too_large", ""),
            (json!({"ids": [id.to_string(), "x", "y"]}), "invalid_message_id", "ids[1]"),
        ] {
            let fault = read(body.clone()).unwrap_err();
            assert_eq!((fault.code, fault.field.as_str()), (code, field), "{body}");
        }
    }

    #[tokio::test]
    async fn a_rate_is_for_all() {
        let server = Open::new();
        let permit = server.permit(Operation::DeadRedrive, "q");
        let run = async |body: Value| from_value::<Redrive>(body).unwrap().run(&permit).await;
        let id = MessageId { namespace: NamespaceId::DEFAULT, sequence: 3 }.to_string();
        let both = run(json!({"ids": [id], "per_second": 5})).await.unwrap_err();
        assert_eq!(both.code(), "conflicting_fields");
        let neither = run(json!({"per_second": 5})).await.unwrap_err();
        assert_eq!(neither.code(), "missing_field");
        let missing = run(json!({"all": true, "per_second": 5})).await.unwrap_err();
        assert_eq!(missing.code(), "queue_not_found");
    }

    /// Sends messages and rejects each with its text; an empty one is none.
    async fn die(server: &Open, errors: &[&str]) {
        for error in errors {
            server.send("q", b"a").await;
            let receive = ReceiveOptions {
                namespace: NamespaceId::DEFAULT,
                queues: &[("q", 0)],
                max_messages: 1,
                lease_ms: 0,
                wait: Duration::ZERO,
                consumer: "",
                room: None,
            };
            let receipt = server.node().receive(&receive).await.unwrap()[0].delivery.receipt;
            let item =
                SettleItem { receipt, settlement: Settlement::Reject, error, result: None, add_cost: 0 };
            server.node().settle(NamespaceId::DEFAULT, &[item]).await.unwrap()[0].clone().unwrap();
        }
    }

    #[tokio::test]
    async fn dead_letters_are_counted_by_their_last_error() {
        let server = Open::new();
        die(&server, &["no such user", "smtp: 451", "smtp: 451", "", "timeout"]).await;
        let permit = server.permit(Operation::DeadErrors, "q");
        let count = async |body: Value| {
            let done = from_value::<Errors>(body).unwrap().run(&permit).await.unwrap();
            serde_json::to_value(done.answer).unwrap()
        };
        let fingerprint = |text: &str| format!("{:016x}", error_fingerprint(text.as_bytes()));
        let all = json!({
            "errors": [
                {"error": "smtp: 451", "fingerprint": fingerprint("smtp: 451"), "messages": 2},
                {"error": "no such user", "fingerprint": fingerprint("no such user"), "messages": 1},
                {"error": "timeout", "fingerprint": fingerprint("timeout"), "messages": 1},
            ],
            "without_text": 1, "with_other_texts": 0, "with_damaged_text": 0, "scanned": 5,
        });
        assert_eq!(count(json!({})).await, all);
        let first = count(json!({"limit": 2})).await;
        assert_eq!((&first["scanned"], first["errors"].as_array().unwrap().len()), (&json!(2), 2));
        let rest = count(json!({"cursor": first["next"]})).await;
        assert_eq!((&rest["scanned"], rest.get("next")), (&json!(3), None), "each is counted once");
        let missing = server.permit(Operation::DeadErrors, "none");
        assert_eq!(Errors::default().run(&missing).await.unwrap_err().code(), "queue_not_found");
    }

    #[tokio::test]
    async fn an_answer_ends_in_time_and_says_where_to_go_on() {
        let server = Open::new();
        die(&server, &["timeout"; 300]).await;
        let permit = server.permit(Operation::DeadErrors, "q");
        let mut scanned = Vec::new();
        let mut next = None;
        loop {
            let errors = Errors { cursor: next, limit: None };
            let counted = errors.count(&permit, Duration::ZERO).await.unwrap();
            scanned.push(counted.scanned);
            next = counted.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!((scanned.len() > 1, scanned.iter().sum::<u64>()), (true, 300), "{scanned:?}");
    }

    #[test]
    fn a_damaged_text_is_none_that_was_not_given() {
        let (mut counted, mut by_text, mut room) = (DeadErrors::default(), HashMap::new(), 10);
        for error in [LastError::NoText, LastError::Damaged, LastError::Damaged] {
            counted.count(error, &mut by_text, &mut room);
        }
        assert_eq!((counted.without_text, counted.with_damaged_text, by_text.len()), (1, 2, 0));
    }

    #[test]
    fn texts_beyond_the_bound_are_counted_together() {
        let (mut counted, mut by_text, mut room) = (DeadErrors::default(), HashMap::new(), usize::MAX);
        for at in 0..TEXTS_MAX + 7 {
            counted.count(LastError::Text(at.to_string(), 7), &mut by_text, &mut room);
        }
        counted.count(LastError::Text("0".to_owned(), 7), &mut by_text, &mut room);
        assert_eq!((by_text.len(), by_text["0"].1, counted.with_other_texts), (TEXTS_MAX, 2, 7));
    }

    #[test]
    fn texts_beyond_the_memory_that_there_is_are_counted_together() {
        let (mut counted, mut by_text, mut room) = (DeadErrors::default(), HashMap::new(), 10);
        for text in ["12345", "123456", "1234", "12345"] {
            counted.count(LastError::Text(text.to_owned(), 7), &mut by_text, &mut room);
        }
        assert_eq!((by_text["12345"].1, by_text["1234"].1, room), (2, 1, 1));
        assert_eq!((by_text.len(), counted.with_other_texts), (2, 1));
    }
}
