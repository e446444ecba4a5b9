//! Views of the state that are read between two batches. Each read takes bounded time; a long one is cut into
//! pages.

use crate::change::Verb;
use crate::id::{BlobRef, ConsumerId, MessageId, NamespaceId, QueueId, Receipt};
use crate::limit::{Cost, LimitRules, Spent};
use crate::settings::{Backoff, QueuePatch, QueueSettings, Quotas};
pub use crate::state::State;

/// Counters of a queue: kept with each transition, never counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages in each state, in the order of [`State::ALL`].
    pub states: [u64; State::COUNT],
    /// Bytes of content type, headers and payload, in all states.
    pub bytes: u64,
    /// Ever sent.
    pub sent: u64,
    /// Ever delivered.
    pub delivered: u64,
    /// Ever acked.
    pub acked: u64,
    /// Ever nacked.
    pub nacked: u64,
    /// Ever released.
    pub released: u64,
    /// Ever rejected.
    pub rejected: u64,
    /// Leases that ended by themselves.
    pub expired: u64,
    /// Ever turned into dead letters.
    pub died: u64,
    /// Ever redriven.
    pub redriven: u64,
    /// Ever dropped by purge or deletion, or at their end.
    pub dropped: u64,
    /// Results of its messages that could not be sent to the `reply_to` queue.
    pub replies_lost: u64,
    /// Ever cancelled; one that was leased counts when it is gone.
    pub cancelled: u64,
    /// Ever moved here from another queue.
    pub moved_in: u64,
    /// Ever moved to another queue.
    pub moved_out: u64,
}

impl Counters {
    /// Number of messages in a state; `None`: in all.
    pub fn in_state(&self, state: Option<State>) -> u64 {
        match state {
            Some(state) => self.states[state as usize],
            None => self.states.iter().sum(),
        }
    }

    /// Adds the counters of another queue.
    pub fn add(&mut self, other: &Counters) {
        let states = self.states.iter_mut().zip(other.states);
        states.for_each(|(sum, more)| *sum += more);
        for (sum, more) in [
            (&mut self.bytes, other.bytes),
            (&mut self.sent, other.sent),
            (&mut self.delivered, other.delivered),
            (&mut self.acked, other.acked),
            (&mut self.nacked, other.nacked),
            (&mut self.released, other.released),
            (&mut self.rejected, other.rejected),
            (&mut self.expired, other.expired),
            (&mut self.died, other.died),
            (&mut self.redriven, other.redriven),
            (&mut self.dropped, other.dropped),
            (&mut self.replies_lost, other.replies_lost),
            (&mut self.cancelled, other.cancelled),
            (&mut self.moved_in, other.moved_in),
            (&mut self.moved_out, other.moved_out),
        ] {
            *sum += more;
        }
    }
}

/// A queue as seen from outside.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueView {
    /// Its number.
    pub id: QueueId,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: QueueSettings,
    /// Its counters.
    pub counters: Counters,
    /// When it was created, in microseconds since the Unix epoch.
    pub created_at_us: u64,
    /// Blocked messages that wait for another one with their ordering key.
    pub blocked_by_ordering_key: u64,
    /// Blocked messages that wait for their limit key.
    pub blocked_by_limit: u64,
    /// Blocked messages that wait for messages that they depend on.
    pub blocked_by_parents: u64,
    /// Blocked messages that wait for the credit of the consumer that has their ordering key.
    pub blocked_by_consumer: u64,
    /// The redrive of its dead letters at a rate, if one runs.
    pub redriving: Option<Redriving>,
    /// When the message that stands first in line (highest priority) was sent, in microseconds since the Unix
    /// epoch.
    pub oldest_ready_at_us: Option<u64>,
}

/// Default settings of new queues whose names match a pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct DefaultsView {
    /// The pattern.
    pub pattern: String,
    /// The settings that it names; the others are those of any new queue.
    pub patch: QueuePatch,
}

/// Progress of a redrive at a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redriving {
    /// Dead letters that are yet to be redriven.
    pub left: u64,
    /// Rate in messages per second.
    pub per_second: u32,
}

/// A namespace as seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamespaceView {
    /// Its number.
    pub id: NamespaceId,
    /// Its name.
    pub name: String,
    /// The shard that it lives on.
    pub shard: u32,
    /// Quotas of the namespace.
    pub quotas: Quotas,
    /// Queues that it holds.
    pub queues: u64,
    /// Messages that it holds, in any state.
    pub messages: u64,
    /// Bytes of content types, headers and payloads that it holds.
    pub bytes: u64,
    /// When it was created, in microseconds since the Unix epoch.
    pub created_at_us: u64,
}

/// End of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum AttemptEnd {
    /// Nacked by its holder.
    Nacked,
    /// Given back by its holder; not counted.
    Released,
    /// Rejected by its holder.
    Rejected,
    /// The lease ended by itself.
    Expired,
}

/// One attempt of a message, as its history tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: u16,
    /// End of the attempt.
    pub end: AttemptEnd,
    /// When it was delivered, in microseconds since the Unix epoch.
    pub started_at_us: u64,
    /// When it ended, in microseconds since the Unix epoch.
    pub ended_at_us: u64,
    /// The error text, when one was given.
    pub error: Option<BlobRef>,
}

/// Progress reported by the holder of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// Note of the holder.
    pub note: Option<BlobRef>,
    /// When it said so, in microseconds since the Unix epoch.
    pub at_us: u64,
}

/// One change of a message for which somebody gave a name or a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    /// Kind of the change.
    pub verb: Verb,
    /// When, in microseconds since the Unix epoch.
    pub at_us: u64,
    /// By whom and why: the headers `by` and `why` of an empty payload.
    pub note: BlobRef,
}

/// Progress of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupView {
    /// Members that have not ended.
    pub pending: u32,
    /// Members that are done.
    pub done: u32,
    /// Members that have died, or are gone without being done.
    pub dead: u32,
    /// Where the callback stands.
    pub callback: State,
}

/// Fields of a delivery beside the plain ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryDetails {
    /// See [`MessageView::correlation_id`].
    pub correlation_id: Box<[u8]>,
    /// See [`MessageView::reply_to`].
    pub reply_to: Box<str>,
    /// See [`MessageView::checkpoint`].
    pub checkpoint: Option<BlobRef>,
    /// See [`MessageView::tags`].
    pub tags: Option<BlobRef>,
    /// See [`MessageView::from_queue`].
    pub from_queue: Box<str>,
    /// Why it died there, as in [`MessageView::reason`].
    pub reason: Option<&'static str>,
    /// Headers that the engine adds to those of the message.
    pub headers: Vec<(Box<str>, Box<str>)>,
}

/// A message as seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageView {
    /// Its id.
    pub id: MessageId,
    /// The queue that it is in.
    pub queue: QueueId,
    /// Where it stands.
    pub state: State,
    /// 0 to 9.
    pub priority: u8,
    /// Attempts begun.
    pub attempts: u16,
    /// Attempts allowed.
    pub max_attempts: u16,
    /// Deliveries, counted as attempts or not.
    pub deliveries: u16,
    /// When it was sent, in microseconds since the Unix epoch.
    pub sent_at_us: u64,
    /// Delayed: when it becomes ready. Blocked, and held once it is approved: when it may, if that is to
    /// come. Leased: when the lease ends.
    pub deadline_us: Option<u64>,
    /// Leased: proof of the running delivery, for operators.
    pub receipt: Option<Receipt>,
    /// Leased: in whose hands it is, if that has a number or a name.
    pub holder: Option<Holder>,
    /// The backoff that it follows.
    pub backoff: Backoff,
    /// Its ordering key; empty: none.
    pub ordering_key: Box<[u8]>,
    /// Its fair key; empty: none.
    pub fair_key: Box<[u8]>,
    /// Its limit key; empty: none.
    pub limit_key: Box<[u8]>,
    /// Share of its limit's rates that each of its deliveries takes.
    pub cost: Cost,
    /// When it ends if it still waits then, in microseconds since the Unix epoch.
    pub expires_at_us: Option<u64>,
    /// The unique key that it was sent with; empty: none.
    pub unique_key: Box<[u8]>,
    /// Blocked: by what, as a word: `ordering_key`, `limit`, `parents`.
    pub blocked_by: Option<&'static str>,
    /// The queue in which it died, if that was another one; it may be gone. Empty: none.
    pub from_queue: Box<str>,
    /// Why it is dead or held, or else why it died in `from_queue`, as an error code or state word:
    /// `max_attempts`, `max_deliveries`, `rejected`, `payload_damaged`, `parent_failed`.
    pub reason: Option<&'static str>,
    /// When that was, in microseconds since the Unix epoch.
    pub reason_at_us: Option<u64>,
    /// Correlation id set by the sender; empty: none.
    pub correlation_id: Box<[u8]>,
    /// The queue that gets the result; empty: none.
    pub reply_to: Box<str>,
    /// Progress reported by its holder.
    pub progress: Option<Progress>,
    /// Checkpoint for the next attempt; laid out as a payload.
    pub checkpoint: Option<BlobRef>,
    /// Done: what its ack gave, if that is kept; laid out as a payload.
    pub result: Option<BlobRef>,
    /// Done: when it was acked, in microseconds since the Unix epoch.
    pub done_at_us: Option<u64>,
    /// Done: until when it is kept at least, if that is known, in microseconds since the Unix epoch; it may
    /// go earlier by the queue's `retain_done_count`.
    pub kept_until_us: Option<u64>,
    /// Where content type, headers, tags and payload lie.
    pub blob: BlobRef,
    /// Its tags, if they are others than those in `blob`; laid out as a payload's.
    pub tags: Option<BlobRef>,
    /// Leased: whether it was cancelled, and is gone when its lease ends.
    pub cancelled: bool,
    /// Another one after each change of what it is and where it stands, so that a change can be made to
    /// depend on it; not 0.
    pub version: u64,
    /// Changes with their author and reason, oldest first; empty in lists.
    pub changes: Vec<Changed>,
    /// Ended attempts, oldest first; empty in lists.
    pub history: Vec<Attempt>,
}

/// Messages that an index has found.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchPage {
    /// By id.
    pub items: Vec<MessageView>,
    /// Cursor of the next page; `None`: there are no more messages. Behind [`SearchPage::until`] the index
    /// finds nothing.
    pub next: Option<u64>,
    /// Sequence up to which the index finds messages.
    pub until: u64,
}

/// In whose hands a leased message is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// Its number.
    pub consumer: ConsumerId,
    /// Its name; may be empty.
    pub name: Box<str>,
}

/// State of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConsumerState {
    /// Messages are given to it as they become ready, while it has credit.
    Attached,
    /// A consumer that gets nothing more; what it holds goes back when its grace period is over.
    Detached,
    /// A consumer that receives by itself, under a name; known while it holds messages.
    Pulling,
}

impl ConsumerState {
    /// The word used in every API.
    pub fn name(self) -> &'static str {
        match self {
            ConsumerState::Attached => "attached",
            ConsumerState::Detached => "detached",
            ConsumerState::Pulling => "pulling",
        }
    }
}

/// All consumers of a shard that are attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConsumerTotals {
    /// Number of attached consumers.
    pub attached: u64,
    /// Maximum number of messages that they hold at a time.
    pub credit: u64,
    /// Number of messages that they hold.
    pub in_flight: u64,
}

/// A consumer as seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsumerView {
    /// Its number.
    pub id: ConsumerId,
    /// Its name; may be empty.
    pub name: String,
    /// State of the consumer.
    pub state: ConsumerState,
    /// The queues that it is attached to.
    pub queues: Vec<String>,
    /// Maximum number of messages that it holds at a time.
    pub credit: u32,
    /// Number of messages that it holds.
    pub in_flight: u32,
    /// Its lease in milliseconds; 0: each queue's.
    pub lease_ms: u64,
    /// Since when it is known, in microseconds since the Unix epoch.
    pub since_us: u64,
    /// When it was given what it holds longest, in microseconds since the Unix epoch.
    pub oldest_lease_us: Option<u64>,
}

/// A message in the hands of a consumer, as seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldView {
    /// Id of the message.
    pub id: MessageId,
    /// Name of its queue.
    pub queue: String,
    /// Number of this attempt, from 1.
    pub attempt: u16,
    /// When it was given, in microseconds since the Unix epoch.
    pub leased_at_us: u64,
    /// When the lease ends, in microseconds since the Unix epoch.
    pub lease_until_us: u64,
}

/// A limit as seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitView {
    /// Its name.
    pub name: String,
    /// Rules of the limit.
    pub rules: LimitRules,
    /// The queues that follow it, by name.
    pub queues: Vec<String>,
    /// Leased messages of these queues.
    pub in_flight: u64,
    /// Messages that might be delivered but for the limit: those that wait for their key and, when the limit
    /// as a whole is used up, all that are ready.
    pub waiting: u64,
    /// When the overall rate lets the next one begin, if it lets none now; in microseconds since the Unix
    /// epoch.
    pub next_at_us: Option<u64>,
    /// Cost under the overall rate; `None`: there is no such rate.
    pub spent: Option<Spent>,
}

/// One key of a limit as seen from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitKeyView {
    /// The key.
    pub key: Box<[u8]>,
    /// Leased messages that have it.
    pub in_flight: u64,
    /// Messages that wait for it.
    pub waiting: u64,
    /// When its rate lets the next one begin, if it lets none now; in microseconds since the Unix epoch.
    pub next_at_us: Option<u64>,
    /// Cost under the rate per key; `None`: there is no such rate.
    pub spent: Option<Spent>,
}

/// A schedule as seen from outside.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleView {
    /// Its name.
    pub name: String,
    /// When it fires, as it was put.
    pub spec: Box<[u8]>,
    /// Name of the queue that it sends to.
    pub queue: String,
    /// Message that it sends, without the blob.
    pub message: MessageTemplate,
    /// Where content type, headers and payload lie.
    pub blob: BlobRef,
    /// When it fires next, in microseconds since the Unix epoch; `None`: it is paused, or has no instant
    /// left.
    pub next_at_us: Option<u64>,
    /// True if it is paused.
    pub paused: bool,
    /// When it was created, in microseconds since the Unix epoch.
    pub created_at_us: u64,
    /// Instants at which it sent its message.
    pub fired: u64,
    /// Instants at which a message with its unique key was there already.
    pub duplicates: u64,
    /// Instants at which its message was refused.
    pub refused: u64,
    /// The latest instant at which it sent, or was refused, in microseconds since the Unix epoch.
    pub last_at_us: Option<u64>,
    /// The latest message that it sent.
    pub last_id: Option<MessageId>,
    /// Code of the error with which its latest message was refused; `None`: it was sent.
    pub last_error: Option<String>,
}

/// The fields of what a schedule sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageTemplate {
    pub(crate) bytes: Box<[u8]>,
}

impl MessageTemplate {
    pub(crate) fn new(bytes: &[u8]) -> MessageTemplate {
        MessageTemplate { bytes: bytes.into() }
    }
}

/// A schedule that waits for an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueSchedule<'a> {
    /// Names it until it does something else.
    pub number: u64,
    /// The instant, in microseconds since the Unix epoch.
    pub instant_us: u64,
    /// When it fires, as it was put.
    pub spec: &'a [u8],
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// Items found.
    pub items: Vec<T>,
    /// Where to go on; `None`: this was the last page. A page may be empty and yet not be the last, since a
    /// page looks at a bounded number of messages.
    pub next: Option<u64>,
}
