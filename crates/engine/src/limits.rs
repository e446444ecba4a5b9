//! Every limit of the engine, named once, with its default. They ride in a `Configure` record, so that replay
//! applies the limits that were in force.

use crate::wire::{Put, Reader};

/// Longest name of a namespace, queue or consumer, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Longest ordering, fair, limit or unique key, and longest correlation id, in bytes.
pub const KEY_BYTES_MAX: usize = 128;
/// Most tags of a message.
pub const TAGS_MAX: usize = 16;
/// Longest tag, in bytes.
pub const TAG_BYTES_MAX: usize = 128;
/// Highest priority of a message; the lowest, and the default, is 0.
pub const PRIORITY_MAX: u8 = 9;
/// Longest delay, in milliseconds: ten years.
pub const DELAY_MS_MAX: u64 = 10 * 366 * 24 * 3600 * 1000;
/// Longest lease, in milliseconds: twelve hours.
pub const LEASE_MS_MAX: u64 = 12 * 3600 * 1000;
/// Most queues in one receive.
pub const RECEIVE_QUEUES_MAX: usize = 64;
/// Messages that a consumer may hold at a time.
pub const CREDIT_MAX: u32 = 10_000;
/// Ordering keys of a shard of which is known which consumer has them; those that were used last stay.
pub const STICKY_KEYS_MAX: u32 = 100_000;
/// Consumers of one shard, names under which messages are pulled included.
pub const CONSUMERS_MAX: u32 = 20_000;
/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
/// Longest error text of a nack or reject, in bytes; longer text is cut by the fronts.
pub const ERROR_TEXT_BYTES_MAX: usize = 4096;
/// Largest result of an ack, in bytes.
pub const RESULT_BYTES_MAX: usize = 256 << 10;
/// Largest checkpoint, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 256 << 10;
/// Longest note of a progress, in bytes.
pub const PROGRESS_NOTE_BYTES_MAX: usize = 1024;
/// Finished messages that a queue may keep by number.
pub const RETAIN_DONE_COUNT_MAX: u32 = 10_000_000;
/// Most schedules of one namespace.
pub const SCHEDULES_MAX: u32 = 10_000;
/// Most schedules of one shard.
pub const SHARD_SCHEDULES_MAX: u32 = 1_000_000;
/// Longest description of when a schedule fires, in bytes.
pub const SCHEDULE_SPEC_BYTES_MAX: usize = 1024;
/// Most patterns with settings of queues not yet made, in one namespace.
pub const QUEUE_DEFAULTS_MAX: usize = 1_000;
/// Fastest redrive at a rate, in messages per second.
pub const REDRIVE_PER_SECOND_MAX: u32 = 100_000;
/// Attempts that a message's history remembers; of more, the first and the latest stay.
pub const HISTORY_ATTEMPTS_MAX: usize = 32;
/// Attempts that a message may be allowed.
pub const ATTEMPTS_MAX: u16 = 10_000;
/// Unique keys of one shard that count to the end of their window although their message is gone; of more,
/// one that would end next is free before its time.
pub const UNIQUE_KEYS_LINGERING_MAX: u32 = 1_000_000;
/// Duplicates that one shard remembers with idempotency keys, so that a repeat gets the same ids.
pub const IDEMPOTENCY_DUPLICATES_MAX: u64 = 4_000_000;
/// Messages of one purge, delete, redrive or due timers that one apply handles.
pub const SLICE_ITEMS: usize = 1_000;

/// Messages that one message may depend on.
pub const PARENTS_MAX: usize = 100;
/// Messages that those of one send may depend on together.
pub const SEND_PARENTS_MAX: usize = 10_000;

/// Limits that an operator may set. All are inclusive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest payload, in bytes (default 1 MiB).
    pub payload_bytes: u32,
    /// Most headers of a message (default 64).
    pub headers: u32,
    /// Headers of a message together, in bytes, names and values (default 16 KiB).
    pub headers_bytes: u32,
    /// Most messages of one send, items of one settle or extend (default 10,000).
    pub batch_items: u32,
    /// Payloads and headers of one send together, in bytes (default 16 MiB).
    pub batch_bytes: u32,
    /// Most messages of one receive (default 1,000).
    pub receive_messages: u32,
    /// Most queues of one shard (default 100,000).
    pub queues: u32,
    /// Most namespaces (default 10,000).
    pub namespaces: u32,
    /// Most messages of one shard, in any state (default 200,000,000).
    pub messages: u64,
    /// Idempotency keys remembered by one shard; the oldest goes first (default 1,000,000).
    pub idempotency_keys: u32,
    /// Time for which an idempotency key is remembered, in milliseconds (default 10 minutes).
    pub idempotency_window_ms: u64,
    /// True if send and receive create a queue that does not exist (default true).
    pub auto_create: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload_bytes: 1 << 20,
            headers: 64,
            headers_bytes: 16 << 10,
            batch_items: 10_000,
            batch_bytes: 16 << 20,
            receive_messages: 1_000,
            queues: 100_000,
            namespaces: 10_000,
            messages: 200_000_000,
            idempotency_keys: 1_000_000,
            idempotency_window_ms: 10 * 60 * 1000,
            auto_create: true,
        }
    }
}

impl Limits {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.payload_bytes);
        out.u32(self.headers);
        out.u32(self.headers_bytes);
        out.u32(self.batch_items);
        out.u32(self.batch_bytes);
        out.u32(self.receive_messages);
        out.u32(self.queues);
        out.u32(self.namespaces);
        out.u64(self.messages);
        out.u32(self.idempotency_keys);
        out.u64(self.idempotency_window_ms);
        out.bool(self.auto_create);
    }

    /// Reads what [`Limits::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Limits> {
        Some(Limits {
            payload_bytes: reader.u32()?,
            headers: reader.u32()?,
            headers_bytes: reader.u32()?,
            batch_items: reader.u32()?,
            batch_bytes: reader.u32()?,
            receive_messages: reader.u32()?,
            queues: reader.u32()?,
            namespaces: reader.u32()?,
            messages: reader.u64()?,
            idempotency_keys: reader.u32()?,
            idempotency_window_ms: reader.u64()?,
            auto_create: reader.bool()?,
        })
    }
}
