//! The one table of errors: each has a stable code, and a group that tells who has to act.

use std::fmt;

use crate::carried::Carried;

/// The party that has to act on an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The caller sent something that cannot be done.
    Caller,
    /// The operator has to give room, change a setting, or repair.
    Operator,
    /// We have a bug.
    Us,
}

/// The value of an error's field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldValue<'a> {
    /// Text.
    Text(&'a str),
    /// A number, its unit in the field's name.
    Number(u64),
}

/// Path of the field that an error is in, such as `messages[3].payload`; empty: the rest of the error tells.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldPath(pub String);

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

impl Carried for FieldPath {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        String::take(bytes).map(FieldPath)
    }
}

impl<'a> From<&'a String> for FieldValue<'a> {
    fn from(text: &'a String) -> Self {
        FieldValue::Text(text)
    }
}

impl<'a> From<&'a FieldPath> for FieldValue<'a> {
    fn from(path: &'a FieldPath) -> Self {
        FieldValue::Text(&path.0)
    }
}

impl<'a> From<&'a &'static str> for FieldValue<'a> {
    fn from(text: &'a &'static str) -> Self {
        FieldValue::Text(text)
    }
}

impl From<&u64> for FieldValue<'_> {
    fn from(number: &u64) -> Self {
        FieldValue::Number(*number)
    }
}

/// A number with its noun, which is given in the plural.
fn counted(count: u64, plural: &str) -> String {
    let noun = if count == 1 { plural.strip_suffix('s').unwrap_or(plural) } else { plural };
    format!("{count} {noun}")
}

fn held(owner: &str, waiting: u64) -> String {
    let holder = if owner.is_empty() { "held".to_owned() } else { format!("held by {owner:?}") };
    match waiting {
        0 => holder,
        // Perhaps nobody holds it, and the next in line waits for another lock.
        _ if owner.is_empty() => format!("not free, and {} for it", waits(waiting)),
        _ => format!("{holder}, and {} for it", waits(waiting)),
    }
}

fn waits(count: u64) -> String {
    if count == 1 { "1 waits".to_owned() } else { format!("{count} wait") }
}

fn versioned(version: u64) -> String {
    if version == 0 { "does not exist".to_owned() } else { format!("is there with version {version}") }
}

fn too_many(more: u64) -> String {
    format!("{more} more {} too many", if more == 1 { "is" } else { "are" })
}

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident { $($field:ident : $ty:ty),* }
        $code:literal $blame:ident $message:literal $(, $part:ident = $text:expr)*;)*) => {
        /// Everything that can go wrong in a command.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Error { $($(#[$doc])* $name { $(#[allow(missing_docs)] $field: $ty),* },)* }

        impl Error {
            /// The stable snake_case code, part of every protocol's contract.
            pub fn code(&self) -> &'static str {
                match self { $(Error::$name { .. } => $code,)* }
            }

            /// The party that has to act.
            pub fn blame(&self) -> Blame {
                match self { $(Error::$name { .. } => Blame::$blame,)* }
            }

            /// Gives each field by name, for the structured details of a protocol's error.
            pub fn fields(&self, mut give: impl FnMut(&'static str, FieldValue<'_>)) {
                match self {
                    $(Error::$name { $($field),* } => {
                        $(give(stringify!($field), $field.into());)*
                        let _ = &mut give;
                    })*
                }
            }

            /// The error as bytes, which [`Error::decode`] reads on another node.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Error::$name { $($field),* } => {
                        stringify!($name).put(out);
                        $($field.put(out);)*
                    })*
                }
            }

            /// The error that another node has encoded; `None`: this program does not know it.
            pub fn decode(bytes: &[u8]) -> Option<Error> {
                let mut rest = bytes;
                let name = String::take(&mut rest)?;
                $(if name == stringify!($name) {
                    return Some(Error::$name { $($field: Carried::take(&mut rest)?),* });
                })*
                None
            }

            /// Every code there is, in the order of declaration; protocol tables are tested against it.
            pub const CODES: &'static [&'static str] = &[$($code),*];
        }

        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Error::$name { $($field),* } => write!(f, $message $(, $part = $text)*),)* }
            }
        }
    };
}

errors! {
    /// A name breaks the rules for names.
    InvalidName { field: FieldPath, what: &'static str, name: String } "invalid_name" Caller
        "{field}{what} name {name:?} is not valid: use 1 to 128 of A-Z a-z 0-9 . _ -, but not . or .. alone";
    /// A field has a value outside its range.
    InvalidArgument { field: String, reason: String } "invalid_argument" Caller "{field}: {reason}";
    /// Text that is not a message id.
    InvalidMessageId { id: String } "invalid_message_id" Caller
        "{id:?} is not a message id: expected 20 characters of 0-9 a-v";
    /// Text that is not a receipt.
    InvalidReceipt { receipt: String } "invalid_receipt" Caller
        "{receipt:?} is not a receipt: expected 45 characters of 0-9 a-v, as given with the delivery";
    /// No such namespace.
    NamespaceNotFound { namespace: String } "namespace_not_found" Caller
        "namespace {namespace:?} does not exist: create it first";
    /// The namespace exists already.
    NamespaceExists { namespace: String } "namespace_exists" Caller "namespace {namespace:?} exists already";
    /// The namespace still holds queues or documents.
    NamespaceNotEmpty { namespace: String, queues: u64, documents: u64 } "namespace_not_empty" Caller
        "namespace {namespace:?} still holds {queues} and {documents}: delete them first, or delete with force",
        queues = counted(*queues, "queues"), documents = counted(*documents, "documents");
    /// No such queue.
    QueueNotFound { queue: String } "queue_not_found" Caller "queue {queue:?} does not exist";
    /// The queue takes no sends.
    QueueClosed { queue: String } "queue_closed" Caller
        "queue {queue:?} is closed: open it, or send to another queue";
    /// No such limit.
    LimitNotFound { limit: String } "limit_not_found" Caller
        "limit {limit:?} does not exist in this namespace: create it first";
    /// No settings for this pattern.
    DefaultsNotFound { pattern: String } "defaults_not_found" Caller
        "there are no queue defaults for pattern {pattern:?} in this namespace";
    /// The limit is followed by queues.
    LimitInUse { limit: String, queues: String } "limit_in_use" Caller
        "limit {limit:?} is followed by queues: {queues}: give them another limit, or none, first";
    /// No such schedule.
    ScheduleNotFound { schedule: String } "schedule_not_found" Caller
        "schedule {schedule:?} does not exist in this namespace";
    /// No message with this id: it was never sent, or has left the queue.
    MessageNotFound { id: String } "message_not_found" Caller
        "message {id} is not here: it was never sent, or was settled, purged or deleted";
    /// No consumer with this number is attached.
    ConsumerNotFound { consumer: String } "consumer_not_found" Caller
        "consumer {consumer} is not attached: it pulls, was detached, or the server has restarted since: attach again";
    /// No bulk with this id.
    BulkNotFound { bulk: String } "bulk_not_found" Caller
        "bulk {bulk} does not exist: it was never started, or ended more than an hour ago, or before a restart or \
         another leader: start it again, which does the rest";
    /// A message that another one is to wait for is not here.
    ParentNotFound { field: String, id: String } "parent_not_found" Caller
        "{field}: message {id} is not here: it was never sent, or is gone; a finished one counts while it is kept, see \
         retain_done_ms of its queue and result_ttl_ms";
    /// The message is not in a state that allows this.
    WrongState { id: String, state: &'static str, expected: &'static str } "wrong_state" Caller
        "message {id} is {state}, expected {expected}";
    /// Another message has the unique key by now.
    UniqueKeyTaken { id: String, key: String, holder: String } "unique_key_taken" Caller
        "message {id} is not changed: its unique key {key:?} belongs to message {holder} by now";
    /// The lease has ended or has gone to another holder.
    LeaseLost { receipt: String } "lease_lost" Caller
        "the lease behind receipt {receipt} is over: the message was or will be given to another consumer, or is gone";
    /// The grant of a lock has ended.
    LockLost { token: String } "lease_lost" Caller
        "the lock behind token {token} is not held any more: its time is over, or it was broken or released";
    /// A lock is held, or others wait for it.
    LockHeld { key: String, owner: String, waiting: u64 } "lock_held" Caller
        "lock {key:?} is {held}: wait for it, or come back later",
        held = held(owner, *waiting);
    /// A token is that of a lock of other keys.
    LockOfOther { token: String, key: String } "lease_lost" Caller
        "token {token} is not that of a lock of {key:?}: give the token of a lock of this key";
    /// No document of this key.
    DocumentNotFound { key: String } "document_not_found" Caller
        "there is no document {key:?} in this namespace: it was never written, was deleted, or its time is over";
    /// No version with this number is kept.
    DocumentVersionNotFound { key: String, version: u64, latest: u64 } "document_not_found" Caller
        "version {version} of document {key:?} is not here: the latest one is {latest}, and as many before it are kept as \
         its history says";
    /// No index of documents has this name.
    IndexNotFound { index: String } "index_not_found" Caller
        "there is no index {index:?} of the documents of this namespace";
    /// Ends of documents that a reader of changes has not heard of are not remembered any more.
    ChangesForgotten {} "changes_forgotten" Caller
        "the changes after this place are not all known any more: begin again without a place";
    /// A prepared transaction holds what a command is about.
    InDoubt { what: String } "in_doubt" Operator
        "{what} is part of a transaction over several namespaces that is being decided: try again in a moment";
    /// A transaction over several namespaces took too long.
    TransactionAborted {} "transaction_aborted" Caller
        "the transaction took too long and was aborted: nothing happened, make it again";
    /// A document is not as its writer expects.
    DocumentChanged { key: String, version: u64 } "version_mismatch" Caller
        "document {key:?} is not changed, since it {is}: read it, and decide again",
        is = versioned(*version);
    /// No attachment of a document has this name.
    AttachmentNotFound { key: String, name: String } "attachment_not_found" Caller
        "document {key:?} has no attachment {name:?}: it was never attached, or was deleted";
    /// An attachment is not as its writer expects.
    AttachmentChanged { key: String, name: String, version: u64 } "version_mismatch" Caller
        "attachment {name:?} of document {key:?} is not changed, since it {is}: look at it, and decide again",
        is = versioned(*version);
    /// No upload with this id.
    UploadNotFound { upload: String } "upload_not_found" Caller
        "there is no upload {upload} for this attachment: it was never begun, was committed or ended, or no chunk came \
         within an hour: begin another one";
    /// A chunk does not follow the bytes that are there.
    UploadOffset { offset: u64, expected: u64 } "upload_offset" Caller
        "a chunk at offset {offset} does not follow: the upload has {expected} bytes, go on with offset {expected}";
    /// An upload has another length than its commit tells.
    UploadIncomplete { bytes: u64, expected: u64 } "upload_incomplete" Caller
        "the upload has {bytes} bytes, and {expected} are expected: send what is missing, or begin again if it is too much";
    /// The bytes of an upload are others than its commit tells.
    DigestMismatch { found: String, expected: String } "digest_mismatch" Caller
        "the SHA-256 of the bytes that came is {found}, and {expected} is expected: nothing was attached, upload again";
    /// The message was cancelled while it was leased: stop working on it, and settle it in any way.
    Cancelled { receipt: String } "cancelled" Caller
        "the message behind receipt {receipt} was cancelled: stop working on it and settle it in any way";
    /// The message has changed since its version was looked at.
    VersionMismatch { id: String } "version_mismatch" Caller
        "message {id} has changed since its version was seen: look at it again";
    /// This receipt has settled its message before; callers take it as success.
    AlreadySettled { receipt: String } "already_settled" Caller "receipt {receipt} has settled its message already";
    /// The same idempotency key came with another request.
    IdempotencyMismatch { key: String } "idempotency_mismatch" Caller
        "idempotency key {key:?} was used for a different request within its window: use a new key";
    /// Payload over the limit.
    PayloadTooLarge { field: FieldPath, size: u64, limit: u64 } "payload_too_large" Caller
        "{field}the payload is {size} bytes, the limit is {limit}";
    /// Headers over the limit.
    HeadersTooLarge { field: FieldPath, what: &'static str, size: u64, limit: u64 } "headers_too_large" Caller
        "{field}message headers: {size} {what}, the limit is {limit}";
    /// Too many items, or too many bytes in one request.
    BatchTooLarge { what: &'static str, size: u64, limit: u64 } "batch_too_large" Caller
        "the batch has {size} {what}, the limit is {limit}";
    /// A quota of the namespace is used up.
    QuotaExceeded { what: &'static str, limit: u64, held: u64, more: u64 } "quota_exceeded" Operator
        "the namespace may hold {most}: it holds {held}, and {over}: consume, delete, or raise the quota",
        most = counted(*limit, what), over = too_many(*more);
    /// A queue holds as much as it may.
    QueueFull { queue: String, what: &'static str, limit: u64, held: u64, how: &'static str, more: u64 } "queue_full" Operator
        "queue {queue:?} may hold {most}: {held} {how}, and {over}: consume, or raise its max_{what}",
        most = counted(*limit, what), over = too_many(*more);
    /// A limit of the server is reached.
    LimitExceeded { what: &'static str, limit: u64 } "limit_exceeded" Operator
        "the server holds its limit of {limit} {what}: use fewer, or raise the limit if `sluice config` has a setting for it";
    /// Too much is waiting already; come back later.
    Overloaded { what: &'static str, retry_after_ms: u64 } "overloaded" Operator
        "too many {what} at present: retry in {retry_after_ms} ms";
    /// No room on the disk.
    DiskFull { free_bytes: u64, needed_bytes: u64 } "disk_full" Operator
        "the disk is full ({free_bytes} bytes free, {needed_bytes} needed): settling still works, sending resumes when there is room";
    /// The server is stopping.
    ShuttingDown {} "shutting_down" Operator "the server is shutting down: reconnect and retry";
    /// Another node leads the shard. Nothing was done.
    NotLeader { leader: u64 } "not_leader" Operator
        "this node does not lead the shard: nothing was done; ask node {leader}, which leads it";
    /// No node is known to lead the shard, or its leader changed before the command was in the log. Nothing
    /// was done.
    NoLeader {} "no_leader" Operator "no node leads the shard at present: nothing was done; retry";
    /// Leaders of shards have changed while a backup held decisions, or it took too long.
    EndsNotFixed {} "no_leader" Operator
        "the shards could not be held at one moment, since leaders have changed or were slow: nothing was copied; make \
         the backup again";
    /// The command belongs to a behaviour version that is not in force yet.
    NotInForce { in_force: u64, since: u64 } "not_in_force" Operator
        "this needs behaviour version {since}, and version {in_force} is in force: when all nodes run a program that \
         knows it, run `sluice cluster finalize`";
    /// Unknown outcome: the command may or may not have taken effect. Repeating it does no harm, except a
    /// send without an idempotency key.
    OutcomeUnknown {} "outcome_unknown" Operator
        "the server could not learn whether the call took effect: repeat it, with the idempotency key or the \
         request_id of the first; a call that has none may take effect twice then";
    /// The journal has failed; nothing is accepted any more.
    JournalFailed { reason: String } "journal_failed" Operator "the journal has failed and the server is stopping: {reason}";
    /// A payload did not verify when it was read back.
    PayloadDamaged { id: String } "payload_damaged" Operator
        "the stored payload of message {id} is damaged: the message is held; run `sluice check`";
    /// A document's content did not verify when it was read back.
    DocumentDamaged { key: String, version: u64 } "payload_damaged" Operator
        "the stored content of version {version} of document {key:?} is damaged: write it anew, and run `sluice check`";
    /// A chunk of an attachment did not verify when it was read back.
    AttachmentDamaged { key: String, name: String } "payload_damaged" Operator
        "a stored chunk of attachment {name:?} of document {key:?} is damaged: upload it anew, and run `sluice check`";
    /// A bug of ours, caught.
    Internal { reason: String } "internal" Us "internal error: {reason}: please report it";
}

impl Error {
    /// Adds the path of the message that the field is in, such as `messages[3].`; empty: it is the only one.
    #[cold]
    pub(crate) fn within(mut self, prefix: &str) -> Error {
        let (path, name) = match &mut self {
            Error::InvalidArgument { field, .. } => {
                field.insert_str(0, prefix);
                return self;
            }
            Error::InvalidName { field, what, .. } => (field, *what),
            Error::PayloadTooLarge { field, .. } => (field, "payload"),
            Error::HeadersTooLarge { field, .. } => (field, "headers"),
            _ => return self,
        };
        if !prefix.is_empty() {
            let name = if path.0.is_empty() { name } else { &path.0 };
            path.0 = format!("{prefix}{name}");
        }
        self
    }
}

impl std::error::Error for Error {}
