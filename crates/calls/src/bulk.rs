//! Changes of all messages of a queue that match a filter, in the background.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sluice_engine::change::Verb;
use sluice_engine::limit::Cost;
use sluice_engine::{Error, NamespaceId};
use sluice_node::bulk::{BULK_PER_SECOND_MAX, BulkAction, BulkRequest, BulkState, BulkView, id_text};
use sluice_node::search::MessageFilter;

use crate::access::Right;
use crate::call::{Body, Done, How, Noted, Unary};
use crate::changes::{
    AtMs, Attempts, DelayMs, MessageCost, Priority, audited, deliver, from_hex, missing_to, reasons,
};
use crate::error::{CallError, ErrorCode};
use crate::fault::{Fault, Read};
use crate::hot::AT_MS_EXAMPLE;
use crate::messages::message_filter;
use crate::payload::{JsonObject, Tags};
use crate::permit::Permit;
use crate::value::{Within, Word, words};

/// Characters of an unknown id that an error shows.
const ID_CHARS_MAX: usize = 64;

words! {
    BulkState:
        "running" = BulkState::Running,
        "done" = BulkState::Done,
        "cancelled" = BulkState::Cancelled,
        "failed" = BulkState::Failed;
}

/// Id of a bulk for examples.
const BULK_EXAMPLE: &str = "0006475d6a9f8000";

/// The messages of a queue that a bulk changes.
// No default of the whole: with one, the schema would require no field.
#[derive(Clone, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BulkFilter")]
pub struct Filter {
    /// Name of the queue.
    #[schemars(required)]
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    /// Filter that the message matches, as one JSON object of its fields; default: all messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#where: Option<JsonObject>,
}

impl From<&BulkRequest> for Filter {
    fn from(request: &BulkRequest) -> Filter {
        Filter {
            queue: Some(request.queue.to_string()),
            r#where: condition(request).map(|text| JsonObject(text.to_owned())),
        }
    }
}

/// The condition of a bulk, as it was written; `None`: it is about all messages of its queue.
fn condition(request: &BulkRequest) -> Option<&str> {
    Some(request.filter.text()).filter(|_| *request.filter != MessageFilter::default())
}

/// A change of many messages.
// No default of the whole: with one, the schema would require no field.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BulkRequest")]
#[schemars(example = json!({
    "action": "retry", "filter": {"queue": "a", "where": {"/state": "dead"}}, "dry_run": true,
}))]
pub struct Start {
    /// The change that is made to each message.
    #[schemars(required)]
    action: Option<Word<Verb>>,
    /// The messages that are changed.
    #[schemars(required)]
    filter: Option<Filter>,
    /// `move`: name of a queue that exists.
    to: Option<String>,
    /// `change`: higher first.
    priority: Option<Priority>,
    /// `change`: ready after so many milliseconds from now; not together with `deliver_at_ms`.
    delay_ms: Option<DelayMs>,
    /// `change`: ready at this time, in milliseconds since the Unix epoch; not together with `delay_ms`.
    deliver_at_ms: Option<AtMs>,
    /// `change`: attempts before a message becomes a dead letter.
    max_attempts: Option<Attempts>,
    /// `change`: share of its limit's rates that each delivery of a message takes from then on.
    cost: Option<MessageCost>,
    /// `change`: all tags that a message has from then on.
    #[schemars(with = "Option<Tags>")]
    tags: Option<Vec<String>>,
    /// Name of the person who changes them, for the history; up to 256 bytes.
    #[schemars(length(max = 256))]
    #[serde(default)]
    by: String,
    /// Why, for the history; up to 4,096 bytes.
    #[schemars(length(max = 4_096))]
    #[serde(default)]
    why: String,
    /// True: messages are only counted, and none is changed; default false.
    #[serde(default)]
    dry_run: bool,
    /// Most messages that are changed in a second; default: as many as leave room for other requests.
    per_second: Option<Within<1, { BULK_PER_SECOND_MAX as u64 }>>,
}

impl Start {
    /// The request as the node takes it.
    fn request(mut self, namespace: NamespaceId) -> Read<BulkRequest> {
        let no_action = || Fault::missing("action", "say what is to be done with the messages");
        let no_filter = || Fault::missing("filter", "say which messages, at least their queue");
        let Word(verb) = self.action.ok_or_else(no_action)?;
        let filter = self.filter.take().ok_or_else(no_filter)?;
        let missing = || Fault::missing("queue", "name the queue of the messages").inside("filter");
        let queue = filter.queue.ok_or_else(missing)?.into();
        let filter = message_filter(filter.r#where.as_ref()).map_err(|fault| fault.inside("filter"))?;
        let (by, why) = (std::mem::take(&mut self.by), std::mem::take(&mut self.why));
        let (dry_run, per_second) = (self.dry_run, self.per_second.map(|rate| rate.get() as u32));
        Ok(BulkRequest { namespace, queue, filter, action: self.action(verb)?, by, why, dry_run, per_second })
    }

    /// The action with its fields; those of others are refused.
    fn action(self, verb: Verb) -> Read<BulkAction> {
        let deliver = deliver(self.delay_ms, self.deliver_at_ms)?;
        let sets = self.priority.is_some()
            || deliver.is_some()
            || self.max_attempts.is_some()
            || self.cost.is_some()
            || self.tags.is_some();
        if self.to.is_some() && verb != Verb::Move {
            return Err(Fault::invalid("only the action move takes it: leave it out").inside("to"));
        }
        if sets && verb != Verb::Change {
            let reason =
                "priority, delay_ms, deliver_at_ms, max_attempts, cost and tags belong to the action change";
            return Err(Fault::invalid(reason).inside("action"));
        }
        Ok(match verb {
            Verb::Move => BulkAction::Move { to: self.to.ok_or_else(missing_to)? },
            Verb::Change => BulkAction::Set {
                priority: self.priority.map(|priority| priority.get() as u8),
                deliver,
                max_attempts: self.max_attempts.map(|attempts| attempts.get() as u16),
                cost: self.cost.map(|cost| Cost(cost.get() as u32)),
                tags: self.tags,
            },
            Verb::Cancel => BulkAction::Cancel,
            Verb::Hold => BulkAction::Hold,
            Verb::Approve => BulkAction::Approve,
            Verb::Deny => BulkAction::Deny,
            Verb::Retry => BulkAction::Retry,
        })
    }
}

/// A bulk that has begun.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "BulkStarted")]
#[schemars(example = json!({"bulk": BULK_EXAMPLE}))]
pub struct Started {
    /// Its id.
    bulk: String,
}

impl Unary for Start {
    type Answer = Started;
    const BODY: Body = Body::Small;
    const HOW: &'static [How] = &[How::Begun];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Started>, CallError> {
        let request = self.request(permit.namespace_id()?)?;
        permit.allow_queue(Right::Operate, &request.queue)?;
        match &request.action {
            BulkAction::Move { to } => {
                permit.allow_queue(Right::Operate, to)?;
                permit.allow_queue(Right::Send, to)?;
            }
            BulkAction::Retry => permit.allow_queue(Right::Send, &request.queue)?,
            BulkAction::Cancel
            | BulkAction::Hold
            | BulkAction::Approve
            | BulkAction::Deny
            | BulkAction::Set { .. } => {}
        }
        let noted = noted(&request, reasons(&request.by, &request.why));
        let bulk = id_text(permit.node().bulk_start(request).await?.id);
        let noted = Noted { made: Some(bulk.clone()), ..noted };
        Ok(Done { answer: Started { bulk }, how: How::Begun, noted })
    }
}

/// A bulk, and how far it is. Of the messages that match, each is either changed or skipped when it has
/// ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Bulk {
    /// Its id.
    bulk: String,
    /// `running`, `done`, `cancelled`, or `failed`.
    state: Word<BulkState>,
    /// The change that it makes.
    action: Word<Verb>,
    /// Name of the queue that messages move to.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// The messages that it changes.
    filter: Filter,
    /// Name of the person who asked for it.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Why.
    #[schemars(length(max = 4_096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// True when messages are only counted.
    dry_run: bool,
    /// Most messages that are changed in a second; absent where the request names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<u32>,
    /// Messages in the queue when it began, in the state of the filter.
    total: u64,
    /// Messages that it has looked at.
    scanned: u64,
    /// Messages of those that match the filter.
    matched: u64,
    /// Messages of those that were changed; of a dry run: that would be.
    changed: u64,
    /// Messages of those that were not: their state does not allow it, they have changed meanwhile, or the
    /// bulk ended before them.
    skipped: u64,
    /// When it began, in milliseconds since the Unix epoch.
    started_at_ms: u64,
    /// When it ended, in milliseconds since the Unix epoch; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at_ms: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<BulkError>,
}

fn example() -> Value {
    json!({
        "bulk": BULK_EXAMPLE, "state": "running", "action": "move", "to": "b",
        "filter": {"queue": "a", "where": {"/state": "dead"}}, "dry_run": false, "total": 12_000, "scanned": 1_280,
        "matched": 1_280, "changed": 1_279, "skipped": 1, "started_at_ms": AT_MS_EXAMPLE,
    })
}

/// The error that has ended a bulk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BulkError {
    /// Its code.
    #[schemars(with = "ErrorCode")]
    code: &'static str,
    /// Error in words.
    message: String,
}

impl From<&Error> for BulkError {
    fn from(error: &Error) -> BulkError {
        BulkError { code: error.code(), message: error.to_string() }
    }
}

impl From<&BulkView> for Bulk {
    fn from(view: &BulkView) -> Bulk {
        let request = &view.request;
        let to = if let BulkAction::Move { to } = &request.action { Some(to.clone()) } else { None };
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Bulk {
            bulk: id_text(view.id),
            state: Word(view.state),
            action: Word(request.action.verb()),
            to,
            filter: Filter::from(&**request),
            by: given(&request.by),
            why: given(&request.why),
            dry_run: request.dry_run,
            per_second: request.per_second,
            total: view.total,
            scanned: view.scanned,
            matched: view.matched,
            changed: view.changed,
            skipped: view.skipped,
            started_at_ms: view.started_at_us / 1_000,
            ended_at_ms: view.ended_at_us.map(|at_us| at_us / 1_000),
            error: view.error.as_ref().map(BulkError::from),
        }
    }
}

/// The record of a bulk in the audit log, beside its id, which is forgotten some time after the end. One
/// that only counts changes nothing. `details` has what is recorded of the caller's own words.
fn noted(request: &BulkRequest, mut details: Map<String, Value>) -> Noted {
    details.insert("action".into(), request.action.verb().name().into());
    let mut filter = Map::from_iter([("queue".to_owned(), json!(*request.queue))]);
    filter.extend(condition(request).map(|text| ("where".to_owned(), audited(text).into())));
    details.insert("filter".into(), filter.into());
    if let BulkAction::Move { to } = &request.action {
        details.insert("to".into(), to.as_str().into());
    }
    if let Some(rate) = request.per_second {
        details.insert("per_second".into(), rate.into());
    }
    Noted { made: None, details: Some(details.into()), is_silent: request.dry_run }
}

fn bulk_id(text: &str) -> Result<u64, Error> {
    from_hex(text).ok_or_else(|| Error::BulkNotFound { bulk: text.chars().take(ID_CHARS_MAX).collect() })
}

/// The bulk that is named, for a caller with this right in its queue.
fn known(permit: &Permit<'_>, right: Right) -> Result<BulkView, CallError> {
    let view = permit.node().bulk(permit.namespace_id()?, bulk_id(permit.name())?)?;
    permit.allow_queue(right, &view.request.queue)?;
    Ok(view)
}

/// The bulks of a namespace, oldest first.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "BulkListRequest")]
pub struct List {}

/// The bulks that run, and those that ended not long ago; of queues that the caller may look at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "BulkList")]
#[schemars(example = json!({"bulks": [example()]}))]
pub struct Bulks {
    /// Oldest first.
    bulks: Vec<Bulk>,
}

impl Unary for List {
    type Answer = Bulks;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Bulks>, CallError> {
        let mut bulks = permit.node().bulks(permit.namespace_id()?);
        bulks.retain(|bulk| permit.may_queue(Right::Observe, &bulk.request.queue));
        Ok(Bulks { bulks: bulks.iter().map(Bulk::from).collect() }.into())
    }
}

/// A bulk to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "BulkShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Bulk;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Bulk>, CallError> {
        Ok(Bulk::from(&known(permit, Right::Observe)?).into())
    }
}

/// A bulk to end.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "BulkCancelRequest")]
pub struct Cancel {}

impl Unary for Cancel {
    type Answer = Bulk;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Bulk>, CallError> {
        let known = known(permit, Right::Operate)?;
        let view = permit.node().bulk_cancel(permit.namespace_id()?, known.id).await?;
        // The words in the request are those of whoever has begun it.
        Ok(Done { answer: Bulk::from(&view), how: How::Done, noted: noted(&view.request, Map::new()) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[test]
    fn the_audit_log_records_what_a_bulk_does_and_nothing_of_one_that_counts() {
        let mut body = json!({"action": "move", "to": "b", "by": "ann", "per_second": 5,
            "filter": {"queue": "a", "where": r#"{"/state":"dead"}"#}});
        let begun = |body: Value| {
            let request = read(body).unwrap();
            noted(&request, reasons(&request.by, &request.why))
        };
        let done = begun(body.clone());
        let expected = json!({"action": "move", "to": "b", "by": "ann", "per_second": 5,
            "filter": {"queue": "a", "where": r#"{"/state":"dead"}"#}});
        assert_eq!((done.details, done.is_silent), (Some(expected), false));
        // As deep as a request may be: an entry that has it within can be read still.
        let deep = format!(r#"{{"/payload":{{"eq":{}{}}}}}"#, "[".repeat(120), "]".repeat(120));
        let filter = json!({"queue": "a", "where": deep});
        let details = begun(json!({"action": "hold", "filter": filter})).details.unwrap();
        let entry = json!({"entry": {"details": details}}).to_string();
        assert!(serde_json::from_str::<Value>(&entry).is_ok(), "{entry}");
        // Of texts that are long only the beginning: an entry has room for it.
        let ids: Vec<String> = (0..500).map(|n| n.to_string()).collect();
        let long = json!({"action": "hold", "why": "x".repeat(4_096),
            "filter": {"queue": "a", "where": json!({"/id": {"in": ids}}).to_string()}});
        let details = begun(long).details.unwrap().to_string();
        assert!(details.len() < 2_500 && details.contains('…'), "{details}");
        body["dry_run"] = true.into();
        assert!(begun(body).is_silent);
    }

    fn read(body: Value) -> Read<BulkRequest> {
        from_value::<Start>(body).unwrap().request(NamespaceId::DEFAULT)
    }

    #[test]
    fn the_schemas_require_what_has_no_default() {
        let required = |schema: schemars::Schema| schema.get("required").cloned();
        assert_eq!(required(schemars::schema_for!(Start)), Some(json!(["action", "filter"])));
        assert_eq!(required(schemars::schema_for!(Filter)), Some(json!(["queue"])));
    }

    #[test]
    fn the_filter_is_read_and_shown() {
        let condition = json!({"/state": "dead", "/errors": {"contains": "451"}});
        let filter = json!({"queue": "a", "where": condition.to_string()});
        let body = json!({"action": "move", "to": "b", "dry_run": true, "by": "ann", "filter": filter});
        let request = read(body).unwrap();
        assert_eq!(request.action, BulkAction::Move { to: "b".into() });
        assert_eq!((request.dry_run, request.by.as_str(), &*request.queue), (true, "ann", "a"));
        assert_eq!(*request.filter, MessageFilter::parse(&condition.to_string()).unwrap());
        let shown = serde_json::to_value(Filter::from(&request)).unwrap();
        assert_eq!(shown, json!({"queue": "a", "where": condition}));
        assert_eq!(request.per_second, None);
        let all = read(json!({"action": "hold", "filter": {"queue": "a"}, "per_second": 50})).unwrap();
        assert_eq!(all.per_second, Some(50));
        assert_eq!(serde_json::to_value(Filter::from(&all)).unwrap(), json!({"queue": "a"}));
    }

    #[test]
    fn mistakes_are_named() {
        for (body, expected) in [
            (json!({"filter": {"queue": "a"}}), "missing_field action"),
            (json!({"action": "hold"}), "missing_field filter"),
            (json!({"action": "hold", "filter": {}}), "missing_field filter.queue"),
            (json!({"action": "move", "filter": {"queue": "a"}}), "missing_field to"),
            (json!({"action": "hold", "to": "b", "filter": {"queue": "a"}}), "invalid_argument to"),
            (json!({"action": "hold", "priority": 1, "filter": {"queue": "a"}}), "invalid_argument action"),
            (
                json!({"action": "hold", "filter": {"queue": "a", "where": r#"{"/sate":"dead"}"#}}),
                "invalid_argument filter.where./sate",
            ),
        ] {
            let fault = read(body.clone()).unwrap_err();
            assert_eq!(format!("{} {}", fault.code, fault.field), expected, "{body}");
        }
    }

    #[test]
    fn a_rate_has_bounds() {
        for per_second in [0, 100_001] {
            let body = json!({"action": "hold", "filter": {"queue": "a"}, "per_second": per_second});
            let error = from_value::<Start>(body).unwrap_err().to_string();
            assert!(error.contains("100000"), "{error}");
        }
    }

    #[tokio::test]
    async fn who_ends_a_bulk_is_not_recorded_with_the_words_of_whoever_began_it() {
        let server = Open::new();
        server.send("a", b"x").await;
        let start = json!({"action": "hold", "by": "ann", "filter": {"queue": "a"}});
        let start = from_value::<Start>(start).unwrap();
        let begun = start.run(&server.permit(Operation::BulkStart, "")).await.unwrap();
        assert_eq!(begun.noted.details.unwrap()["by"], "ann");
        let id = begun.answer.bulk;
        let ended = Cancel {}.run(&server.permit(Operation::BulkCancel, &id)).await.unwrap();
        let details = ended.noted.details.unwrap();
        assert_eq!((details.get("by"), &details["filter"]["queue"]), (None, &json!("a")));
    }

    #[tokio::test]
    async fn a_bulk_is_found_by_its_id_alone() {
        let server = Open::new();
        for name in ["0006475d6a9f8000", "x"] {
            let shown = Show {}.run(&server.permit(Operation::BulkShow, name)).await;
            let error = shown.unwrap_err();
            assert_eq!(error.code(), "bulk_not_found");
            assert!(
                error.message().starts_with(&format!("bulk {name} does not exist")),
                "{}",
                error.message()
            );
        }
        let listed = List {}.run(&server.permit(Operation::BulkList, "")).await.unwrap();
        assert_eq!(serde_json::to_string(&listed.answer).unwrap(), r#"{"bulks":[]}"#);
    }
}
