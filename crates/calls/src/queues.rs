//! Queues: list, show, set, pause, close, purge, delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_engine::push::PushSecrets;
use sluice_engine::query::{Counters, QueueView};
use sluice_engine::settings::QueuePatch;

use crate::access::Right;
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::settings::{QueueSettings, QueueSettingsPatch};
use crate::value::{PageSize, cut_page, given, page_size};

/// A queue, its settings and its figures.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Queue {
    /// Its name.
    name: String,
    /// Name of its namespace.
    namespace: String,
    /// Its settings.
    settings: QueueSettings,
    /// Messages in it, by state.
    counts: Counts,
    /// Blocked messages, by what they wait for; absent when none is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<BlockedBy>,
    /// Events since the queue was created.
    totals: Totals,
    /// Bytes of content types, headers and payloads of all its messages.
    bytes: u64,
    /// When it was created, in milliseconds since the Unix epoch.
    created_at_ms: u64,
    /// The redrive of its dead letters at a rate; absent when none runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    redriving: Option<Redriving>,
    /// Age of the message that is next in line, in milliseconds since its send; absent when none is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_ready_age_ms: Option<u64>,
}

fn example() -> Value {
    json!({
        "name": "mail", "namespace": "default",
        "settings": QueueSettings::from(&sluice_engine::settings::QueueSettings::default()),
        "counts": Counts::default(), "totals": Totals::default(), "bytes": 0, "created_at_ms": AT_MS_EXAMPLE,
    })
}

/// Messages by state.
#[derive(Clone, Copy, Default, Debug, Serialize, JsonSchema)]
pub struct Counts {
    /// Messages that wait for their time.
    delayed: u64,
    /// Messages that wait for a consumer.
    ready: u64,
    /// Messages that a consumer has.
    leased: u64,
    /// Messages that wait for a person.
    held: u64,
    /// Dead letters.
    dead: u64,
    /// Messages that wait for another message, for a limit, or for the credit of a consumer.
    blocked: u64,
    /// Finished messages that are kept.
    done: u64,
}

/// Blocked messages by what they wait for.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BlockedBy {
    /// Messages that wait for another one with their ordering key.
    ordering_key: u64,
    /// Messages that wait for the limit that the queue follows.
    limit: u64,
    /// Messages that wait for messages that they depend on.
    parents: u64,
    /// Messages that wait for the credit of the consumer that has their ordering key.
    consumer: u64,
}

/// Events of a queue since it was created, each counted once for each message that it happened to.
#[derive(Clone, Copy, Default, Debug, Serialize, JsonSchema)]
pub struct Totals {
    /// Messages sent.
    sent: u64,
    /// Deliveries.
    delivered: u64,
    /// Deliveries that were acked.
    acked: u64,
    /// Deliveries that were nacked.
    nacked: u64,
    /// Deliveries that were released.
    released: u64,
    /// Deliveries that were rejected.
    rejected: u64,
    /// Leases that ended without having been settled.
    expired: u64,
    /// Messages that became dead letters.
    died: u64,
    /// Dead letters that were redriven.
    redriven: u64,
    /// Messages dropped by a purge, by a deletion, or at the end of their time to live.
    dropped: u64,
    /// Results that could not be sent to the `reply_to` queue.
    replies_lost: u64,
    /// Messages cancelled.
    cancelled: u64,
    /// Messages moved here from another queue.
    moved_in: u64,
    /// Messages moved to another queue.
    moved_out: u64,
}

/// The progress of a redrive at a rate.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Redriving {
    /// Dead letters yet to be redriven.
    left: u64,
    /// Dead letters redriven per second.
    per_second: u32,
}

impl Queue {
    /// A queue of the call's namespace, as it is now.
    fn new(permit: &Permit<'_>, queue: &QueueView) -> Queue {
        let now_ms = permit.node().clock().now_ms();
        Queue {
            name: queue.name.clone(),
            namespace: permit.namespace_name().to_owned(),
            settings: QueueSettings::from(&queue.settings),
            counts: Counts::from(&queue.counters),
            blocked_by: BlockedBy::of(queue),
            totals: Totals::from(&queue.counters),
            bytes: queue.counters.bytes,
            created_at_ms: queue.created_at_us / 1_000,
            redriving: queue
                .redriving
                .map(|redriving| Redriving { left: redriving.left, per_second: redriving.per_second }),
            oldest_ready_age_ms: queue.oldest_ready_at_us.map(|at_us| now_ms.saturating_sub(at_us / 1_000)),
        }
    }
}

impl From<&Counters> for Counts {
    fn from(counters: &Counters) -> Counts {
        let [delayed, ready, leased, held, dead, blocked, done] = counters.states;
        Counts { delayed, ready, leased, held, dead, blocked, done }
    }
}

impl BlockedBy {
    fn of(queue: &QueueView) -> Option<BlockedBy> {
        let blocked = BlockedBy {
            ordering_key: queue.blocked_by_ordering_key,
            limit: queue.blocked_by_limit,
            parents: queue.blocked_by_parents,
            consumer: queue.blocked_by_consumer,
        };
        let BlockedBy { ordering_key, limit, parents, consumer } = blocked;
        (ordering_key | limit | parents | consumer != 0).then_some(blocked)
    }
}

impl From<&Counters> for Totals {
    fn from(counters: &Counters) -> Totals {
        Totals {
            sent: counters.sent,
            delivered: counters.delivered,
            acked: counters.acked,
            nacked: counters.nacked,
            released: counters.released,
            rejected: counters.rejected,
            expired: counters.expired,
            died: counters.died,
            redriven: counters.redriven,
            dropped: counters.dropped,
            replies_lost: counters.replies_lost,
            cancelled: counters.cancelled,
            moved_in: counters.moved_in,
            moved_out: counters.moved_out,
        }
    }
}

impl Totals {
    /// Each count and its name.
    pub fn by_name(&self) -> [(&'static str, u64); 14] {
        [
            ("sent", self.sent),
            ("delivered", self.delivered),
            ("acked", self.acked),
            ("nacked", self.nacked),
            ("released", self.released),
            ("rejected", self.rejected),
            ("expired", self.expired),
            ("died", self.died),
            ("redriven", self.redriven),
            ("dropped", self.dropped),
            ("replies_lost", self.replies_lost),
            ("cancelled", self.cancelled),
            ("moved_in", self.moved_in),
            ("moved_out", self.moved_out),
        ]
    }
}

/// The queues of a namespace that the caller may look at, by name.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueListRequest")]
pub struct List {
    /// Only queues whose names begin with this.
    prefix: Option<String>,
    /// `next` of the page before.
    after: Option<String>,
    /// Most queues of the page.
    limit: Option<PageSize>,
}

/// A page of queues.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueList")]
#[schemars(example = json!({"queues": [example()], "next": "mail"}))]
pub struct Queues {
    /// By name; those that the caller may not look at are left out, so that a page may be short and have a
    /// next one.
    queues: Vec<Queue>,
    /// Name after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Queues;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Queues>, CallError> {
        let (size, namespace) = (page_size(self.limit), permit.namespace_id()?);
        let (prefix, after) = (self.prefix.as_deref().unwrap_or_default(), given(self.after.as_deref()));
        let mut queues = permit.node().queues(namespace, prefix, after, size + 1).await?;
        let next = cut_page(&mut queues, size, |queue| &queue.name);
        queues.retain(|queue| permit.may_queue(Right::Observe, &queue.name));
        let queues = queues.iter().map(|queue| Queue::new(permit, queue)).collect();
        Ok(Queues { queues, next }.into())
    }
}

/// A queue to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Queue;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Queue>, CallError> {
        let queue = permit.node().queue(permit.namespace_id()?, permit.name()).await?;
        Ok(Queue::new(permit, &queue).into())
    }
}

/// Settings of a queue that is created by this, or exists; what is left out keeps its value, or begins as in
/// any new queue.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Put(QueueSettingsPatch);

impl Unary for Put {
    type Answer = Queue;
    const HOW: &'static [How] = &[How::Created, How::Done];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Queue>, CallError> {
        set_allowed(permit, self.0, true).await
    }
}

/// Settings of a queue that exists; what is left out keeps its value.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Patch(QueueSettingsPatch);

impl Unary for Patch {
    type Answer = Queue;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Queue>, CallError> {
        set_allowed(permit, self.0, false).await
    }
}

/// Changes the settings when the caller also has the rights at the queue that dead letters move to.
async fn set_allowed(
    permit: &Permit<'_>,
    patch: QueueSettingsPatch,
    create: bool,
) -> Result<Done<Queue>, CallError> {
    patch.check_push(permit.calls().pushes())?;
    let known = match patch.keeps_secrets() {
        true => present_secrets(permit).await?,
        false => PushSecrets::default(),
    };
    let patch = QueuePatch::from(patch.with_secrets_of(&known)?);
    if let Some(to) = given(patch.dead_letter_queue.as_deref()) {
        permit.allow_queue(Right::Operate, to)?;
        // Dead letters are ready there, as what is sent is.
        permit.allow_queue(Right::Send, to)?;
    }
    set(permit, patch, create).await
}

/// The secrets that the pushes of the queue are signed with by now.
async fn present_secrets(permit: &Permit<'_>) -> Result<PushSecrets, CallError> {
    match permit.node().queue(permit.namespace_id()?, permit.name()).await {
        Ok(queue) => Ok(queue.settings.push_secrets),
        Err(Error::QueueNotFound { .. }) => Ok(PushSecrets::default()),
        Err(error) => Err(error.into()),
    }
}

async fn set(permit: &Permit<'_>, patch: QueuePatch, create: bool) -> Result<Done<Queue>, CallError> {
    let set = permit.node().queue_set(permit.namespace_id()?, permit.name(), patch, create);
    let (queue, created) = set.await?;
    Ok(Done::made(Queue::new(permit, &queue), created))
}

/// A queue to pause or to resume.
// `PAUSED`: whether it is paused then.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Pause<const PAUSED: bool> {}

impl<const PAUSED: bool> Unary for Pause<PAUSED> {
    type Answer = Queue;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Queue>, CallError> {
        set(permit, QueuePatch { paused: Some(PAUSED), ..QueuePatch::default() }, false).await
    }
}

/// A queue to close or to open.
// `CLOSED`: whether it is closed then.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Close<const CLOSED: bool> {}

impl<const CLOSED: bool> Unary for Close<CLOSED> {
    type Answer = Queue;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Queue>, CallError> {
        set(permit, QueuePatch { closed: Some(CLOSED), ..QueuePatch::default() }, false).await
    }
}

/// A queue to delete, with everything in it.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueDeleteRequest")]
pub struct Delete {}

/// The number of messages that were deleted.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueDeleted")]
#[schemars(example = json!({"deleted": 13}))]
pub struct Deleted {
    /// Messages.
    deleted: u64,
}

impl Unary for Delete {
    type Answer = Deleted;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Deleted>, CallError> {
        let deleted = permit.node().queue_delete(permit.namespace_id()?, permit.name()).await?;
        Ok(Deleted { deleted }.into())
    }
}

/// A queue to purge of what waits: ready, delayed and held messages.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueuePurgeRequest")]
pub struct Purge {}

/// The number of messages that were dropped.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueuePurged")]
#[schemars(example = json!({"purged": 13}))]
pub struct Purged {
    /// Messages.
    purged: u64,
}

impl Unary for Purge {
    type Answer = Purged;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Purged>, CallError> {
        let purged = permit.node().queue_purge(permit.namespace_id()?, permit.name()).await?;
        Ok(Purged { purged }.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};
    use sluice_engine::query::State;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[test]
    fn counts_stand_under_the_names_of_the_states() {
        let states = [1, 2, 3, 4, 5, 6, 7];
        let counts = to_value(Counts::from(&Counters { states, ..Counters::default() })).unwrap();
        for (state, count) in State::ALL.into_iter().zip(states) {
            assert_eq!(counts[state.name()], count, "{}", state.name());
        }
    }

    #[tokio::test]
    async fn a_queue_is_set_looked_at_and_deleted() {
        let server = Open::new();
        let put = async |name, body: Value| {
            let permit = server.permit(Operation::QueuePut, name);
            from_value::<Put>(body).unwrap().run(&permit).await.unwrap()
        };
        let made = put("b", json!({"lease_ms": 9})).await;
        assert!(made.created() && !put("b", json!({"paused": true})).await.created());
        put("a", json!({})).await;
        let show = server.permit(Operation::QueueShow, "b");
        let shown = to_value(Show {}.run(&show).await.unwrap().answer).unwrap();
        assert_eq!((&shown["settings"]["lease_ms"], &shown["settings"]["paused"]), (&json!(9), &json!(true)));
        let names: Vec<&String> = shown.as_object().unwrap().keys().collect();
        assert!(!names.iter().any(|name| ["blocked_by", "redriving"].contains(&name.as_str())), "{names:?}");

        let resume = server.permit(Operation::QueueResume, "b");
        let resumed = to_value(Pause::<false> {}.run(&resume).await.unwrap().answer).unwrap();
        assert_eq!(resumed["settings"]["paused"], false);
        let patch = server.permit(Operation::QueuePatch, "c");
        let missing = Patch::default().run(&patch).await.unwrap_err();
        assert_eq!(missing.code(), "queue_not_found");

        let list = server.permit(Operation::QueueList, "");
        let page = from_value::<List>(json!({"limit": 1})).unwrap().run(&list).await.unwrap().answer;
        assert_eq!(
            (page.queues.len(), page.queues[0].name.as_str(), page.next.as_deref()),
            (1, "a", Some("a"))
        );
        let rest = from_value::<List>(json!({"after": "a"})).unwrap().run(&list).await.unwrap().answer;
        assert_eq!((rest.queues.len(), rest.next), (1, None));

        let purge = server.permit(Operation::QueuePurge, "b");
        assert_eq!(to_value(Purge {}.run(&purge).await.unwrap().answer).unwrap(), json!({"purged": 0}));
        let delete = server.permit(Operation::QueueDelete, "b");
        assert_eq!(to_value(Delete {}.run(&delete).await.unwrap().answer).unwrap(), json!({"deleted": 0}));
        assert_eq!(Show {}.run(&show).await.unwrap_err().code(), "queue_not_found");
    }

    #[tokio::test]
    async fn a_description_is_kept_and_bounded() {
        let server = Open::new();
        let permit = server.permit(Operation::QueuePut, "q");
        let put = async |text: &str| {
            let put = from_value::<Put>(json!({"description": text})).unwrap();
            put.run(&permit)
                .await
                .map(|done| to_value(done.answer).unwrap()["settings"]["description"].clone())
        };
        assert_eq!(put("Mail to customers, 8 — 18 h").await.unwrap(), "Mail to customers, 8 — 18 h");
        let longest = "a".repeat(255);
        assert_eq!(put(&longest).await.unwrap(), longest);
        let error = put(&format!("{longest}a")).await.unwrap_err();
        assert_eq!(error.code(), "invalid_argument");
        assert!(error.message().contains("256 bytes are too much: use at most 255"), "{}", error.message());
        assert_eq!(put("").await.unwrap(), Value::Null, "nothing is said");
    }
}
