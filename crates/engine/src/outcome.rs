//! Outcome of a command. One [`Outcome`] is reused for every apply, so the hot path allocates nothing.

use crate::documents::DocumentVersion;
use crate::error::Error;
use crate::event::Event;
use crate::id::{BlobRef, ConsumerId, MessageId, NamespaceId, QueueId, Receipt, UploadId};
use crate::locks::{LockGrant, LockNotice, LockTicket};
use crate::state::State;
use crate::transactions::{Decision, OperationDone};

/// Everything that one apply brought about. Cleared by the engine at the start of each apply.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Why the command as a whole was refused. `released` has its blobs then; whatever else is filled comes
    /// from consequences of earlier records.
    pub error: Option<Error>,
    /// Reply to the command as a whole.
    pub reply: Reply,
    /// Settle, extend and resume: one result per item, in order.
    pub results: Vec<Result<(), Error>>,
    /// Send, if some items are duplicates by their unique key: the id of each item's message, in order.
    pub ids: Vec<MessageId>,
    /// Send: which items these are, in order; their ids are those of the first messages with their keys.
    pub duplicates: Vec<u32>,
    /// Receive: the messages that were leased, in order.
    pub deliveries: Vec<Delivery>,
    /// Messages that were leased to consumers with credit, in order.
    pub pushed: Vec<(ConsumerId, Delivery)>,
    /// Consumers that get nothing more.
    pub detached: Vec<ConsumerId>,
    /// Messages that were cancelled while a consumer that is attached holds them: it may drop its work.
    pub cancelled: Vec<(ConsumerId, Receipt)>,
    /// Blobs that the engine has let go of.
    pub released: Vec<BlobRef>,
    /// Messages that are finished, dead or gone, some of them more than once; filled while the node watches:
    /// see [`crate::Engine::watch_ends`].
    pub ended: Vec<Ended>,
    /// Events of messages, in order; filled while the node watches: see
    /// [`crate::Engine::watch_events`].
    pub events: Vec<Event>,
    /// Claims to locks that waited and do not any more, in order.
    pub locks: Vec<LockNotice>,
    /// Keys of locks whose holders or line have changed, some of them more than once; filled while the node
    /// watches: see [`crate::Engine::watch_locks`].
    pub changed_locks: Vec<(NamespaceId, String)>,
    /// Transaction: what came of each operation, in order.
    pub operations: Vec<OperationDone>,
    /// Transaction that was refused: the place of the operation that is to blame, if it is one of them.
    pub refused_at: Option<u32>,
    /// Queues in which messages became ready, each at most once in a row; the node wakes waiting receives.
    pub ready: Vec<QueueId>,
}

impl Outcome {
    /// Forgets what the apply before brought about, and keeps the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.error = None;
        self.reply = Reply::None;
        self.results.clear();
        self.ids.clear();
        self.duplicates.clear();
        self.deliveries.clear();
        self.released.clear();
        self.ready.clear();
        self.refused_at = None;
        let of_others = self.pushed.len() | self.detached.len() | self.cancelled.len();
        let told = self.ended.len() | self.events.len() | self.locks.len() | self.changed_locks.len();
        if of_others | told | self.operations.len() > 0 {
            self.clear_rare();
        }
    }

    #[inline(never)]
    fn clear_rare(&mut self) {
        self.pushed.clear();
        self.detached.clear();
        self.cancelled.clear();
        self.ended.clear();
        self.events.clear();
        self.locks.clear();
        self.changed_locks.clear();
        self.operations.clear();
    }

    /// True if there is anything to tell consumers that are attached.
    pub fn concerns_consumers(&self) -> bool {
        !(self.pushed.is_empty() && self.detached.is_empty() && self.cancelled.is_empty())
    }
}

/// The end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Id of the message.
    pub id: MessageId,
    /// Done (and perhaps gone by now) or dead; `None`: gone in another way.
    pub state: Option<State>,
}

/// Reply to a command as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reply {
    /// Nothing beyond the lists of [`Outcome`].
    #[default]
    None,
    /// Send: ids run from `first`, one per item, unless [`Outcome::ids`] lists them; `duplicate` if an
    /// earlier send with this idempotency key gave them. What a schedule sends: `duplicate` if `first` had
    /// its unique key already.
    Sent {
        /// Id of the first message; the others follow in sequence.
        first: MessageId,
        /// Number of messages.
        count: u32,
        /// True if this was a repeat.
        duplicate: bool,
    },
    /// Queue set: which queue, and whether it is new.
    Queue {
        /// Its number.
        queue: QueueId,
        /// True if this command created it.
        created: bool,
    },
    /// Limit set: whether it is new.
    Limit {
        /// True if this command created it.
        created: bool,
    },
    /// Defaults set: whether the pattern is new.
    Defaults {
        /// True if this command created it.
        created: bool,
    },
    /// Schedule put: whether it is new.
    Schedule {
        /// True if this command created it.
        created: bool,
    },
    /// Namespace create: which number it has.
    Namespace {
        /// Its number.
        namespace: NamespaceId,
    },
    /// Attach: which consumer it is.
    Consumer {
        /// Its number.
        consumer: ConsumerId,
    },
    /// Lock acquire and renew: the grant.
    LockGranted {
        /// Token and end.
        grant: LockGrant,
    },
    /// Lock acquire: it waits, see [`Outcome::locks`].
    LockWaits {
        /// The claim.
        ticket: LockTicket,
        /// Number of times that it was asked for by the same request; wraps around.
        calls: u16,
    },
    /// Document put and delete, attachment commit and delete: the version that was written, or deleted.
    DocumentWritten {
        /// The version.
        version: DocumentVersion,
        /// True if there was none before.
        created: bool,
    },
    /// Upload begin: the upload.
    UploadBegun {
        /// Its id.
        upload: UploadId,
    },
    /// Transaction: what came of its operations is in [`Outcome::operations`].
    Committed {
        /// True if this was a repeat.
        duplicate: bool,
    },
    /// Transaction prepare: it is, or was before.
    Prepared,
    /// Transaction finish: what came of its operations is in [`Outcome::operations`], unless it was finished
    /// before.
    Finished {
        /// True if it was prepared until now.
        known: bool,
    },
    /// Transaction ask: what has become of it.
    Decided {
        /// The decision.
        decision: Decision,
    },
    /// Lock break: how many held it.
    LockBroken {
        /// Holders whose grants have ended.
        holders: u32,
    },
    /// Purge, delete, redrive: how many messages it concerns, counted at once even if done in slices.
    Count {
        /// Messages.
        messages: u64,
    },
}

/// One message given to a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The message and its fencing token.
    pub receipt: Receipt,
    /// The queue that it came from.
    pub queue: QueueId,
    /// Where content type, headers and payload lie: see [`crate::blob`].
    pub blob: BlobRef,
    /// When the lease ends, in microseconds since the Unix epoch.
    pub lease_until_us: u64,
    /// When it was sent, in microseconds since the Unix epoch.
    pub sent_at_us: u64,
    /// Number of this attempt, from 1.
    pub attempt: u16,
    /// Attempts in all before it becomes a dead letter.
    pub max_attempts: u16,
    /// Deliveries so far, this one included, whether they counted or not.
    pub deliveries: u16,
    /// 0 to 9.
    pub priority: u8,
    /// True if there may be more to it: see [`crate::Engine::delivery_details`].
    pub has_details: bool,
}
