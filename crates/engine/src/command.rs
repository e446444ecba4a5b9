//! Commands of the engine. A command is borrowed from its caller, written once into the log by
//! [`Command::encode`], and read back from the log's bytes, without copying, when it is applied.

pub use crate::attachments::{AttachmentCommit, AttachmentDelete, UploadBegin, UploadChunk};
use crate::change::Change;
pub use crate::documents::{DocumentCheck, DocumentDelete, DocumentPut};
use crate::id::{BlobRef, ConsumerId, MessageId, NamespaceId, Receipt, ReceiptKey, TransactionId, UploadId};
pub use crate::indexes::IndexFill;
pub use crate::item::{Deliver, SendItem};
use crate::limit::LimitRules;
use crate::limits::Limits;
pub use crate::locks::LockAcquire;
use crate::locks::{LockTicket, LockToken};
pub use crate::search::{FilledMessage, SearchFill};
use crate::settings::{QueuePatch, Quotas};
pub use crate::settling::{Content, Progress, ReportItem, SettleItem, Settlement};

/// Takes the bytes of a record: first the body in any number of pieces, then the blobs in order.
pub trait RecordSink {
    /// Appends to the record's body.
    fn body(&mut self, bytes: &[u8]);
    /// Appends one blob, given in pieces. No body may follow.
    fn blob(&mut self, pieces: &[&[u8]]);
}

/// One command; the whole of what one record holds.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Command<'a> {
    /// A new start, or later a new leadership: `number` is the high part of every id and token until the
    /// next.
    Epoch {
        /// Larger than every epoch before, and above every id and token given; less than 2^42.
        number: u64,
        /// The behaviour version in force; in a new log [`crate::BEHAVIOUR_VERSION`] of the writer.
        behaviour: u16,
    },
    /// A behaviour version comes into force: later records apply by its rules. It never becomes lower.
    Raise {
        /// From [`crate::BEHAVIOUR_OLDEST`] to [`crate::BEHAVIOUR_VERSION`].
        behaviour: u16,
    },
    /// The secret that the tags of receipts are made with; once, at the first start of a log.
    ReceiptKey(ReceiptKey),
    /// An entry by which replicas agree on their own affairs, such as the first one of a term or a change of
    /// members. The engine passes over it: nothing but time goes on.
    Consensus {
        /// Content, which the engine does not read; at most [`CONSENSUS_BYTES_MAX`] bytes.
        entry: &'a [u8],
    },
    /// The limits in force from here on.
    Configure(Limits),
    /// Time has passed: due timers fire and long work goes on, one slice.
    Tick,
    /// See [`Send`].
    Send(Send<'a>),
    /// See [`Group`].
    Group(Group<'a>),
    /// See [`Receive`].
    Receive(Receive<'a>),
    /// Settles messages; each item has its own result.
    Settle {
        /// The namespace that all receipts belong to.
        namespace: NamespaceId,
        /// Deliveries to settle, each with its outcome.
        items: &'a [SettleItem<'a>],
    },
    /// Extends leases; each item has its own result.
    Extend {
        /// The namespace that all receipts belong to.
        namespace: NamespaceId,
        /// Receipt, and the new lease from now in milliseconds (0: the queue's `lease_ms`).
        items: &'a [(Receipt, u64)],
    },
    /// Extends leases and takes down progress and checkpoints; each item has its own result.
    Report {
        /// The namespace that all receipts belong to.
        namespace: NamespaceId,
        /// Deliveries to extend, each with its report.
        items: &'a [ReportItem<'a>],
    },
    /// See [`Change`].
    Change(Change<'a>),
    /// See [`Attach`].
    Attach(Attach<'a>),
    /// Sets how many messages a consumer may hold at a time; what it holds beyond stays its own.
    Credit {
        /// The namespace that it belongs to.
        namespace: NamespaceId,
        /// The consumer.
        consumer: ConsumerId,
        /// The new total; 0: it gets nothing for now.
        credit: u32,
    },
    /// Gives a consumer nothing more. What it holds goes back after a while.
    Detach {
        /// The namespace that it belongs to.
        namespace: NamespaceId,
        /// The consumer.
        consumer: ConsumerId,
        /// Time for which its receipts stay valid, in milliseconds, if their leases do not end before; see
        /// [`DETACH_GRACE_MS`].
        grace_ms: u64,
        /// The fencing token up to which deliveries had reached the consumer when it was lost: these count as
        /// attempts when they go back, like a lease that ends by itself. What it got later does not. 0: none
        /// counts.
        reached: u64,
    },
    /// Gives a consumer what others hold or held before it, of which it knows the receipts: mostly its own,
    /// from before its connection broke. Each lease begins anew. It may so hold more than its credit, and
    /// gets nothing until that is settled. One result per receipt.
    Resume {
        /// The namespace that it belongs to.
        namespace: NamespaceId,
        /// The consumer.
        consumer: ConsumerId,
        /// Receipts of the deliveries that it takes over.
        receipts: &'a [Receipt],
    },
    /// Creates the namespace with this number; idempotent for the same name and number.
    NamespaceCreate {
        /// `None`: the engine gives the next number (on shard 0, where placement is decided).
        number: Option<NamespaceId>,
        /// Its name.
        name: &'a str,
        /// The shard that it lives on.
        shard: u32,
        /// Its quotas.
        quotas: Quotas,
    },
    /// Replaces the quotas of a namespace.
    NamespaceSet {
        /// The namespace.
        namespace: NamespaceId,
        /// The new quotas.
        quotas: Quotas,
    },
    /// Deletes a namespace; with `force` its queues and messages too.
    NamespaceDelete {
        /// The namespace.
        namespace: NamespaceId,
        /// True if queues in it are deleted as well.
        force: bool,
    },
    /// Creates a queue if it does not exist, and changes its settings.
    QueueSet {
        /// Namespace of the queue.
        namespace: NamespaceId,
        /// Name of the queue.
        queue: &'a str,
        /// Settings to change.
        patch: QueuePatch,
        /// True if a missing queue is created; else `queue_not_found`.
        create: bool,
    },
    /// Drops what waits (ready, delayed, held); leased messages and dead letters stay.
    QueuePurge {
        /// Namespace of the queue.
        namespace: NamespaceId,
        /// Name of the queue.
        queue: &'a str,
    },
    /// Deletes a queue and everything in it.
    QueueDelete {
        /// Namespace of the queue.
        namespace: NamespaceId,
        /// Name of the queue.
        queue: &'a str,
    },
    /// Makes dead letters ready again, attempts counted from 0, history kept.
    DeadRedrive {
        /// Namespace of the queue.
        namespace: NamespaceId,
        /// Name of the queue whose dead letters they are.
        queue: &'a str,
        /// Dead letters; empty: all that are dead at this moment, done in slices.
        ids: &'a [MessageId],
    },
    /// Makes those ready again that are dead at this moment, oldest first and so many per second, instead of
    /// what was being redriven.
    DeadRedriveRate {
        /// Namespace of the queue.
        namespace: NamespaceId,
        /// Name of the queue whose dead letters they are.
        queue: &'a str,
        /// Rate in messages per second; 0 ends the redrive that runs: the rest stays dead.
        per_second: u32,
    },
    /// Deletes dead letters.
    DeadDelete {
        /// Namespace of the queue.
        namespace: NamespaceId,
        /// Name of the queue whose dead letters they are.
        queue: &'a str,
        /// Dead letters; empty: all that are dead at this moment, done in slices.
        ids: &'a [MessageId],
    },
    /// Sets all that queues begin with which are made from here on with a name that matches a pattern.
    DefaultsSet {
        /// Namespace of the queues.
        namespace: NamespaceId,
        /// A name in which `*` stands for any number of characters.
        pattern: &'a str,
        /// The settings; those not named are those of any new queue.
        patch: QueuePatch,
    },
    /// Forgets a pattern. Queues that were made by it stay as they are.
    DefaultsDelete {
        /// Namespace of the queues.
        namespace: NamespaceId,
        /// As it was set.
        pattern: &'a str,
    },
    /// Creates a limit, or replaces what it allows.
    LimitSet {
        /// Namespace of the limit.
        namespace: NamespaceId,
        /// Name of the limit.
        limit: &'a str,
        /// Rules from now on.
        rules: LimitRules,
    },
    /// Deletes a limit that no queue follows.
    LimitDelete {
        /// Namespace of the limit.
        namespace: NamespaceId,
        /// Name of the limit.
        limit: &'a str,
    },
    /// See [`SchedulePut`].
    SchedulePut(SchedulePut<'a>),
    /// Deletes a schedule; what it has sent stays.
    ScheduleDelete {
        /// Namespace of the schedule.
        namespace: NamespaceId,
        /// Name of the schedule.
        schedule: &'a str,
    },
    /// Pauses a schedule, or resumes it; nothing changes if it is so already.
    SchedulePause {
        /// Namespace of the schedule.
        namespace: NamespaceId,
        /// Name of the schedule.
        schedule: &'a str,
        /// True if it is to be paused.
        paused: bool,
        /// Resumed: when it fires next, in microseconds since the Unix epoch; 0: not at all.
        next_at_us: u64,
    },
    /// See [`ScheduleFire`]; proposed by the node.
    ScheduleFire(ScheduleFire),
    /// Sends a schedule's message now; its instants stay as they are.
    ScheduleTrigger {
        /// Namespace of the schedule.
        namespace: NamespaceId,
        /// Name of the schedule.
        schedule: &'a str,
    },
    /// See [`LockAcquire`].
    LockAcquire(LockAcquire<'a>),
    /// Begins the time of a grant anew.
    LockRenew {
        /// Namespace of the keys.
        namespace: NamespaceId,
        /// Token of the grant.
        token: LockToken,
        /// Time for which it holds its keys from now on and by later renewals, in milliseconds; 0: as before.
        ttl_ms: u32,
    },
    /// Ends a grant; one that its holder has released before is no error.
    LockRelease {
        /// Namespace of the keys.
        namespace: NamespaceId,
        /// Token of the grant.
        token: LockToken,
    },
    /// Ends all grants of a key.
    LockBreak {
        /// Namespace of the key.
        namespace: NamespaceId,
        /// The key.
        key: &'a str,
    },
    /// Lets a claim wait on; proposed by the node. Nothing happens if it does not wait any more.
    LockWait {
        /// The claim.
        ticket: LockTicket,
        /// Time for which it waits from now on, in milliseconds.
        wait_ms: u32,
    },
    /// Ends a claim whose caller has gone: it leaves its lines, or gives back what it was granted; proposed
    /// by the node. Nothing happens if the same request was made again since, by a caller who may be there.
    LockLeave {
        /// The claim.
        claim: LockTicket,
        /// Number of times that it was asked for when that caller did.
        calls: u16,
    },
    /// See [`DocumentPut`].
    DocumentPut(DocumentPut<'a>),
    /// See [`DocumentDelete`].
    DocumentDelete(DocumentDelete<'a>),
    /// See [`DocumentCheck`].
    DocumentCheck(DocumentCheck<'a>),
    /// Declares an index of the documents of a namespace, in the place of one with this name and another
    /// pointer.
    IndexPut {
        /// The namespace.
        namespace: NamespaceId,
        /// Its name.
        name: &'a str,
        /// JSON pointer (RFC 6901) of the values.
        pointer: &'a str,
    },
    /// Deletes an index of documents.
    IndexDelete {
        /// Its namespace.
        namespace: NamespaceId,
        /// Its name.
        name: &'a str,
    },
    /// See [`IndexFill`].
    IndexFill(IndexFill<'a>),
    /// See [`SearchFill`].
    SearchFill(SearchFill<'a>),
    /// See [`UploadBegin`].
    UploadBegin(UploadBegin<'a>),
    /// See [`UploadChunk`].
    UploadChunk(UploadChunk<'a>),
    /// Ends an upload; its bytes are let go of.
    UploadEnd {
        /// Namespace of the upload.
        namespace: NamespaceId,
        /// The upload.
        upload: UploadId,
    },
    /// See [`AttachmentCommit`].
    AttachmentCommit(AttachmentCommit<'a>),
    /// See [`AttachmentDelete`].
    AttachmentDelete(AttachmentDelete<'a>),
    /// See [`Transaction`].
    Transaction(Transaction<'a>),
    /// See [`TransactionPrepare`].
    TransactionPrepare(TransactionPrepare<'a>),
    /// See [`TransactionDecide`].
    TransactionDecide(TransactionDecide<'a>),
    /// Does what a transaction has prepared in a namespace, or lets go of it; in the coordinator's, once all
    /// others are finished, forgets the decision.
    TransactionFinish {
        /// Namespace of the part.
        namespace: NamespaceId,
        /// The transaction.
        id: TransactionId,
        /// True if it is committed.
        commit: bool,
    },
    /// Asks the coordinator's shard for the decision: from `until_us` on it decides to commit no more.
    TransactionAsk {
        /// The transaction.
        id: TransactionId,
        /// As of [`TransactionPrepare`].
        until_us: u64,
    },
    /// Holds a message whose payload could not be read back; proposed by the node.
    HoldDamaged {
        /// Id of the message.
        id: MessageId,
        /// The blob that did not verify; nothing happens if the message has another by now.
        blob: BlobRef,
    },
}

impl<'a> Command<'a> {
    /// The send, if it is one.
    pub fn as_send(&self) -> Option<&Send<'a>> {
        if let Command::Send(send) = self { Some(send) } else { None }
    }
}

/// Operations that are done together: all of them, as one record, or none.
///
/// Each is admitted by the state before the transaction, so none depends on another, but an attachment on its
/// document, which may be put with it: what one would make room for, another does not get; and nothing is
/// named by two of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transaction<'a> {
    /// Namespace of all that they are about.
    pub namespace: NamespaceId,
    /// A repeat with the same key within the window gets the first outcome. Empty: none.
    pub idempotency_key: &'a [u8],
    /// A digest of the request, to tell a repeat from a misuse of the key.
    pub request_digest: u64,
    /// The operations, at most [`crate::limits::TRANSACTION_OPERATIONS_MAX`]: [`Command::Send`] and
    /// [`Command::Settle`] with one item, [`Command::DocumentPut`], [`Command::DocumentDelete`],
    /// [`Command::DocumentCheck`], [`Command::AttachmentCommit`], [`Command::AttachmentDelete`],
    /// [`Command::LockAcquire`] without a wait, and [`Command::LockRelease`].
    pub operations: &'a [Command<'a>],
}

/// Admits the part of a transaction in another namespace than its coordinator's, and pins what it is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransactionPrepare<'a> {
    /// The transaction.
    pub id: TransactionId,
    /// Shard of the coordinator.
    pub shard: u32,
    /// As of [`PreparedView::until_us`](crate::transactions::PreparedView::until_us).
    pub until_us: u64,
    /// Operations of the namespace: all but those on attachments, and messages that wait for no others.
    pub part: Transaction<'a>,
}

/// Does the part of a transaction in its coordinator's namespace, and decides by it that all is committed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransactionDecide<'a> {
    /// The transaction.
    pub id: TransactionId,
    /// As of [`TransactionPrepare`].
    pub until_us: u64,
    /// Namespaces in which it is prepared, each once, with their shards.
    pub participants: &'a [(NamespaceId, u32)],
    /// Operations of the coordinator's namespace; it may have none.
    pub part: Transaction<'a>,
}

/// Sends one or many messages to a queue, all or nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Send<'a> {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// Name of the queue.
    pub queue: &'a str,
    /// A repeat with the same key within the window gets the first outcome. Empty: none.
    pub idempotency_key: &'a [u8],
    /// A digest of the request, to tell a repeat from a misuse of the key.
    pub request_digest: u64,
    /// The messages, in order.
    pub items: &'a [SendItem<'a>],
}

/// Sends messages, and one more that follows when all of them have ended; all or nothing. Ids run through the
/// members, and then to the callback.
#[derive(Clone, PartialEq, Debug)]
pub struct Group<'a> {
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// As that of [`Send`], in the callback's queue.
    pub idempotency_key: &'a [u8],
    /// A digest of the request, to tell a repeat from a misuse of the key.
    pub request_digest: u64,
    /// The members, in order.
    pub members: &'a [QueueItem<'a>],
    /// Message that is delivered when all members have ended.
    pub callback: &'a QueueItem<'a>,
}

/// One message to send, and where to.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueItem<'a> {
    /// Name of the queue.
    pub queue: &'a str,
    /// The message.
    pub item: SendItem<'a>,
}

/// Creates a schedule, or replaces what it does. Its counters stay; it stays paused, if it is; and with the
/// same `spec` its next instant stays.
#[derive(Clone, PartialEq, Debug)]
pub struct SchedulePut<'a> {
    /// Namespace of the schedule, and of the queue.
    pub namespace: NamespaceId,
    /// Name of the schedule.
    pub schedule: &'a str,
    /// Name of the queue that it sends to; created by the first message, like by any send.
    pub queue: &'a str,
    /// When it fires, in the words of who computes the instants; opaque here.
    pub spec: &'a [u8],
    /// Its first instant, in microseconds since the Unix epoch; 0: it never fires.
    pub next_at_us: u64,
    /// Message that it sends; not at a fixed time.
    pub item: &'a SendItem<'a>,
}

/// An instant of a schedule has come. Nothing happens unless it is the one that the schedule waits for, so it
/// may be proposed more than once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduleFire {
    /// Number of the schedule, as [`crate::Engine::schedules_by_time`] tells.
    pub number: u64,
    /// The instant, in microseconds since the Unix epoch.
    pub instant_us: u64,
    /// True if the message is sent; else the instant goes by.
    pub send: bool,
    /// The next instant, after this one; 0: there is none.
    pub next_at_us: u64,
}

/// Takes ready messages under a lease. Nothing is created by it: an unknown queue yields nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Receive<'a> {
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// Queues and their weights; weight 0 everywhere: in the order given, else in proportion to the weights.
    pub queues: &'a [(&'a str, u16)],
    /// Most messages to take.
    pub max_messages: u32,
    /// Most payload bytes to take; at least one message is taken.
    pub max_bytes: u32,
    /// The lease in milliseconds; 0: each queue's `lease_ms`.
    pub lease_ms: u64,
    /// Name of the consumer, for those who look; may be empty.
    pub consumer: &'a str,
}

/// Upper limit of the content of [`Command::Consensus`], in bytes.
pub const CONSENSUS_BYTES_MAX: usize = u16::MAX as usize;

/// Time for which a consumer that has vanished may still settle its deliveries, in milliseconds, where it did
/// not ask for another.
pub const DETACH_GRACE_MS: u64 = 30_000;
/// Longest such time that a consumer may be given, in milliseconds.
pub const DETACH_GRACE_MS_MAX: u64 = 3_600_000;

/// Lets a consumer have messages of some queues as they become ready. A queue that does not exist is followed
/// from its creation on, where queues are created by use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attach<'a> {
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// Name of the consumer, for those who look; may be empty, and need not be its alone.
    pub name: &'a str,
    /// Names of the queues, at most [`crate::limits::RECEIVE_QUEUES_MAX`].
    pub queues: &'a [&'a str],
    /// Maximum number of messages that it holds at a time.
    pub credit: u32,
    /// The lease in milliseconds; 0: each queue's `lease_ms`.
    pub lease_ms: u64,
    /// Time for which it may still settle what it holds after a new epoch has detached it, in milliseconds;
    /// at most [`DETACH_GRACE_MS_MAX`].
    pub grace_ms: u64,
}
