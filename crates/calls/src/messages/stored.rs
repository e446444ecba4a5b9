//! A message as those see it who look at it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sluice_engine::blob::MessageBlob;
use sluice_engine::change::Verb;
use sluice_engine::limits::PRIORITY_MAX;
use sluice_engine::query::{Attempt as EngineAttempt, AttemptEnd, Changed, State};
use sluice_node::Stored;
use sluice_node::api::ProgressSeen;

use crate::changes::Version;
use crate::consumers::Holder;
use crate::hot::{AT_MS_EXAMPLE, ID_EXAMPLE};
use crate::payload::{Content, Headers, Octets, Tags, Text};
use crate::settings::Backoff;
use crate::value::{True, Word, other_cost, text, words};

words! {
    State:
        "delayed" = State::Delayed,
        "ready" = State::Ready,
        "leased" = State::Leased,
        "held" = State::Held,
        "dead" = State::Dead,
        "blocked" = State::Blocked,
        "done" = State::Done;
    AttemptEnd:
        "nacked" = AttemptEnd::Nacked,
        "released" = AttemptEnd::Released,
        "rejected" = AttemptEnd::Rejected,
        "expired" = AttemptEnd::Expired;
}

/// A message that was looked at, not taken. Fields that do not apply are absent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StoredMessage")]
#[schemars(example = example())]
pub struct Message {
    /// Its id.
    id: String,
    /// Name of its queue.
    queue: String,
    /// Its state.
    state: Word<State>,
    /// Its priority, 0 to 9: higher first.
    #[schemars(range(max = PRIORITY_MAX))]
    priority: u8,
    /// Attempts begun.
    attempts: u16,
    /// Attempts before it becomes a dead letter.
    max_attempts: u16,
    /// Deliveries, counted as attempts or not.
    deliveries: u16,
    /// When it was sent, in milliseconds since the Unix epoch.
    sent_at_ms: u64,
    /// Delayed: when it becomes ready; held: when it may at the earliest, once it is approved; leased: when
    /// the lease ends. In milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    /// Leased: proof of the running delivery, for those who may receive from the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
    /// Its ordering key, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    ordering_key: Option<String>,
    /// Its fair key, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    fair_key: Option<String>,
    /// Its limit key, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_key: Option<String>,
    /// Share of its limit's rates that each of its deliveries takes; absent when it is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u32>,
    /// Its unique key, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<String>,
    /// When it ends if it still waits then, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    /// Blocked: what it waits for: `ordering_key`, `limit`, `parents`, or `consumer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ordering_key", "limit", "parents", "consumer"]))]
    blocked_by: Option<&'static str>,
    /// Leased: who holds it, if that has a name or is attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<Holder>,
    /// Name of the queue in which it died, if that was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_queue: Option<String>,
    /// Why it is dead or held, or why it died in `from_queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// When that was, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_at_ms: Option<u64>,
    /// Leased: whether it was cancelled, and is gone when its lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<True>,
    /// Its version: another one after each change.
    version: Version,
    /// The backoff that it follows.
    backoff: Backoff,
    /// Its payload, if that is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Text>,
    /// Its payload as standard base64, if that is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<Octets>,
    /// Media type of the payload, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<Text>,
    /// Its headers, in the order sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Headers>,
    /// True when its payload was asked for and is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_damaged: Option<True>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Tags>,
    /// Correlation id set by the sender; a reply carries it.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    /// Name of the queue that gets its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// Progress reported by its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// Checkpoint for the next attempt, if it is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Text>,
    /// Checkpoint for the next attempt, as standard base64, if it is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_base64: Option<Octets>,
    /// Media type of the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_content_type: Option<Text>,
    /// Done: its result, if that is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Text>,
    /// Done: its result as standard base64, if that is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_base64: Option<Octets>,
    /// Media type of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_content_type: Option<Text>,
    /// Done: when it was acked, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    done_at_ms: Option<u64>,
    /// Done: until when it is kept at least, if that is known, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_until_ms: Option<u64>,
    /// Bytes of content type, headers, tags and payload.
    size_bytes: u32,
    /// Attempts that are over, oldest first; of more than 32, the first and the latest.
    history: Vec<Attempt>,
    /// Changes for which somebody gave a name or a reason, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<PastChange>,
}

pub(super) fn example() -> Value {
    json!({
        "id": ID_EXAMPLE, "queue": "mail", "state": "dead", "priority": 0, "attempts": 5, "max_attempts": 5,
        "deliveries": 5, "sent_at_ms": AT_MS_EXAMPLE, "reason": "max_attempts",
        "reason_at_ms": AT_MS_EXAMPLE + 9_000, "version": "00a3f19b2c4d5e6f", "backoff": {"kind": "none"},
        "payload": "hello", "size_bytes": 7, "history": [{
            "attempt": 1, "end": "nacked", "started_at_ms": AT_MS_EXAMPLE,
            "ended_at_ms": AT_MS_EXAMPLE + 1_200, "error": "smtp: 451",
        }],
    })
}

/// An attempt that is over.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Attempt {
    /// Its number, from 1.
    attempt: u16,
    /// End of the attempt.
    end: Word<AttemptEnd>,
    /// When it began, in milliseconds since the Unix epoch.
    started_at_ms: u64,
    /// When it ended, in milliseconds since the Unix epoch.
    ended_at_ms: u64,
    /// The error, as the consumer gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A change that a message remembers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PastChange {
    /// Kind of the change.
    change: Word<Verb>,
    /// When, in milliseconds since the Unix epoch.
    at_ms: u64,
    /// By whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Progress reported by the holder of a message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// 0 to 100.
    #[schemars(range(max = 100))]
    percent: u8,
    /// A note on it, as the holder gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// When it said so, in milliseconds since the Unix epoch.
    at_ms: u64,
}

impl Message {
    /// The message; with the receipt of its delivery if `receipts`.
    pub(super) fn of(mut stored: Stored, receipts: bool) -> Message {
        let ms = |at_us: u64| at_us / 1_000;
        let (history, changes, progress) = (history(&mut stored), changes(&stored), progress(&mut stored));
        let view = stored.view;
        let payload = Content::of(stored.blob.as_ref());
        let checkpoint = Content::of(stored.checkpoint.as_ref());
        let result = Content::of(stored.result.as_ref());
        Message {
            id: view.id.to_string(),
            queue: stored.queue.to_string(),
            state: Word(view.state),
            priority: view.priority,
            attempts: view.attempts,
            max_attempts: view.max_attempts,
            deliveries: view.deliveries,
            sent_at_ms: ms(view.sent_at_us),
            deadline_ms: view.deadline_us.map(ms),
            receipt: view.receipt.filter(|_| receipts).map(|receipt| receipt.to_string()),
            ordering_key: text(&view.ordering_key),
            fair_key: text(&view.fair_key),
            limit_key: text(&view.limit_key),
            cost: other_cost(view.cost),
            unique_key: text(&view.unique_key),
            expires_at_ms: view.expires_at_us.map(ms),
            blocked_by: view.blocked_by,
            holder: view.holder.as_ref().map(Holder::from),
            from_queue: text(view.from_queue.as_bytes()),
            reason: view.reason,
            reason_at_ms: view.reason_at_us.map(ms),
            cancelled: True::when(view.cancelled),
            version: Version(view.version),
            backoff: view.backoff.into(),
            payload: payload.text,
            payload_base64: payload.octets,
            content_type: payload.content_type,
            headers: stored.blob.as_ref().and_then(Headers::of),
            payload_damaged: True::when(stored.damaged),
            tags: stored.tags.as_ref().or(stored.blob.as_ref()).and_then(Tags::of),
            correlation_id: text(&view.correlation_id),
            reply_to: text(view.reply_to.as_bytes()),
            progress,
            checkpoint: checkpoint.text,
            checkpoint_base64: checkpoint.octets,
            checkpoint_content_type: checkpoint.content_type,
            result: result.text,
            result_base64: result.octets,
            result_content_type: result.content_type,
            done_at_ms: view.done_at_us.map(ms),
            kept_until_ms: view.kept_until_us.map(ms),
            size_bytes: view.blob.len,
            history,
            changes,
        }
    }
}

fn history(stored: &mut Stored) -> Vec<Attempt> {
    let mut errors = std::mem::take(&mut stored.errors).into_iter();
    let with_error = |attempt: &EngineAttempt| Attempt {
        attempt: attempt.number,
        end: Word(attempt.end),
        started_at_ms: attempt.started_at_us / 1_000,
        ended_at_ms: attempt.ended_at_us / 1_000,
        error: errors.next().flatten(),
    };
    stored.view.history.iter().map(with_error).collect()
}

fn changes(stored: &Stored) -> Vec<PastChange> {
    let with_note = |(changed, note): (&Changed, &Option<bytes::Bytes>)| {
        let note = note.as_deref().and_then(MessageBlob::parse);
        let given = |wanted: &str| {
            let mut headers = note.iter().flat_map(MessageBlob::headers);
            headers
                .find(|(name, value)| *name == wanted && !value.is_empty())
                .map(|(_, value)| value.to_owned())
        };
        PastChange {
            change: Word(changed.verb),
            at_ms: changed.at_us / 1_000,
            by: given("by"),
            why: given("why"),
        }
    };
    stored.view.changes.iter().zip(&stored.notes).map(with_note).collect()
}

fn progress(stored: &mut Stored) -> Option<Progress> {
    let note = stored.note.take();
    let seen = |progress: sluice_engine::query::Progress| ProgressSeen {
        percent: progress.percent,
        note,
        at_us: progress.at_us,
    };
    stored.view.progress.map(seen).map(Progress::from)
}

impl From<ProgressSeen> for Progress {
    fn from(progress: ProgressSeen) -> Progress {
        Progress { percent: progress.percent, note: progress.note, at_ms: progress.at_us / 1_000 }
    }
}
