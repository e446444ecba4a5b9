//! Every limit of the engine, named once, with its default. They ride in a `Configure` record, so that replay
//! applies the limits that were in force.

use crate::wire::{Put, Reader};

/// Time by which a timer fires late at most, in microseconds; it never fires early.
pub const TIMER_LATE_US_MAX: u64 = 1_000;
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
/// Longest key of a lock, in bytes.
pub const LOCK_KEY_BYTES_MAX: usize = 255;
/// Most keys of one claim to locks.
pub const LOCK_KEYS_MAX: usize = 64;
/// Most holders of a lock that is shared or counts.
pub const LOCK_HOLDERS_MAX: u16 = 1_000;
/// Most claims to locks of one shard, those that wait included.
pub const LOCK_CLAIMS_MAX: u32 = 1_000_000;
/// Longest time for which a lock is held without renewal, in milliseconds: half an hour.
pub const LOCK_TTL_MS_MAX: u32 = 30 * 60 * 1000;
/// Longest time for which a claim waits unless it is said that it still does, in milliseconds.
pub const LOCK_WAIT_MS_MAX: u32 = 30_000;
/// Time within which a grant that was waited for has to be renewed, in milliseconds; it ends then.
pub const LOCK_TAKE_MS: u32 = 10_000;
/// Longest key of a document, in bytes: that of a lock.
pub const DOCUMENT_KEY_BYTES_MAX: usize = LOCK_KEY_BYTES_MAX;
/// Largest content of a document, in bytes: 4 MiB.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// Most attributes of a document.
pub const DOCUMENT_ATTRIBUTES_MAX: usize = 64;
/// Most bytes of the names and values of a document's attributes together.
pub const DOCUMENT_ATTRIBUTES_BYTES_MAX: usize = 16 << 10;
/// Most former versions of a document that are kept.
pub const DOCUMENT_HISTORY_MAX: u16 = 100;
/// Longest time after which a document is gone, in milliseconds: ten years.
pub const DOCUMENT_TTL_MS_MAX: u64 = DELAY_MS_MAX;
/// Most former versions of documents that one shard keeps.
pub const DOCUMENT_FORMERS_MAX: u32 = 1_000_000_000;
/// Most documents of one shard.
pub const DOCUMENTS_MAX: u32 = 100_000_000;
/// Ends of documents of one shard that are remembered, for those who watch; of more, the first is forgotten.
pub const DOCUMENT_ENDS_MAX: u32 = 100_000;
/// Time for which the end of a document is remembered, in milliseconds: an hour.
pub const DOCUMENT_ENDS_MS: u64 = 3_600_000;
/// Most indexes of documents in a namespace.
pub const NAMESPACE_INDEXES_MAX: usize = 16;
/// Most indexes of documents in a shard.
pub const INDEXES_MAX: usize = 1_000;
/// Longest pointer of an index, in bytes.
pub const INDEX_POINTER_BYTES_MAX: usize = 255;
/// Most terms that a write tells of its document, in all indexes together, and [`crate::indexes::IndexFill`]
/// in one.
pub const DOCUMENT_TERMS_MAX: usize = 256;
/// Most documents of one [`crate::indexes::IndexFill`].
pub const FILLED_DOCUMENTS_MAX: usize = 200;
/// Most terms of one [`crate::indexes::IndexFill`].
pub const FILLED_TERMS_MAX: usize = 1_024;
/// Most terms in a shard.
pub const TERMS_MAX: u32 = 100_000_000;
/// Most messages of one [`crate::search::SearchFill`].
pub const FILLED_MESSAGES_MAX: usize = 500;
/// Most terms of a message in the index of its queue: its tags, and an error.
pub const MESSAGE_TERMS_MAX: usize = TAGS_MAX + 1;
/// Most terms of messages in a shard.
pub const POSTINGS_MAX: u64 = 500_000_000;
/// Longest name of an attachment, in bytes: that of a key.
pub const ATTACHMENT_NAME_BYTES_MAX: usize = DOCUMENT_KEY_BYTES_MAX;
/// Largest attachment, in bytes: 5 GiB.
pub const ATTACHMENT_BYTES_MAX: u64 = 5 << 30;
/// Most attachments of a document.
pub const DOCUMENT_ATTACHMENTS_MAX: u32 = 1_000;
/// Most attachments of one shard.
pub const ATTACHMENTS_MAX: u32 = 10_000_000;
/// Most uploads of one shard at a time.
pub const UPLOADS_MAX: u32 = 10_000;
/// Most uploads of one namespace at a time: three quarters of those of a shard.
pub const NAMESPACE_UPLOADS_MAX: u32 = UPLOADS_MAX / 4 * 3;
/// Time after which an upload to which no chunk comes is gone, in milliseconds: an hour.
pub const UPLOAD_IDLE_MS: u64 = 3_600_000;
/// Largest chunk of an upload, in bytes: 1 MiB.
pub const UPLOAD_CHUNK_BYTES_MAX: usize = 1 << 20;
/// Most chunks of an upload: three times as many as the largest attachment needs.
pub const UPLOAD_CHUNKS_MAX: u32 = 15_360;
/// Longest state of the hash of an upload, in bytes.
pub const UPLOAD_HASH_BYTES_MAX: usize = 128;
/// Most chunks of all attachments and uploads of one shard.
pub const CHUNKS_MAX: u32 = 20_000_000;
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
/// Operations of one transaction.
pub const TRANSACTION_OPERATIONS_MAX: usize = 1_000;
/// Operations whose outcomes one shard remembers with the idempotency keys of transactions; of more, the
/// oldest are forgotten before their window ends.
pub const TRANSACTION_OUTCOMES_MAX: u64 = 500_000;
/// Parts of transactions over several namespaces that are prepared on one shard at a time, and transactions
/// decided there that are not known to be finished.
pub const TRANSACTIONS_PREPARED_MAX: usize = 1_000;
/// Bytes of the operations of prepared parts on one shard, without payloads, contents and results.
pub const TRANSACTIONS_PREPARED_BYTES_MAX: usize = 16 << 20;
/// Bytes of payloads, contents and results of the part of a transaction that is about another namespace than
/// its coordinator's.
pub const TRANSACTION_PART_BYTES_MAX: u64 = 4 << 20;
/// Namespaces of one transaction, the coordinator's included.
pub const TRANSACTION_NAMESPACES_MAX: usize = 16;
/// Messages of one purge, delete, redrive or due timers that one apply handles.
pub const SLICE_ITEMS: usize = 1_000;

/// Messages that one message may depend on.
pub const PARENTS_MAX: usize = 100;
/// Messages that those of one send may depend on together.
pub const SEND_PARENTS_MAX: usize = 10_000;

/// A value of the table of limits, as a number: a flag is 1 or 0.
trait Number: Copy {
    fn number(self) -> u64;
    /// The value that is nearest to a number.
    fn nearest(number: u64) -> Self;
}

impl Number for u32 {
    fn number(self) -> u64 {
        self.into()
    }

    fn nearest(number: u64) -> u32 {
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }

    fn nearest(number: u64) -> u64 {
        number
    }
}

impl Number for bool {
    fn number(self) -> u64 {
        self.into()
    }

    fn nearest(number: u64) -> bool {
        number > 0
    }
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident $setting:literal: $type:ident = $default:expr;)*) => {
        /// Limits that an operator may set. All are inclusive.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Limits {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)* }
            }
        }

        impl Limits {
            /// Number of limits.
            pub const COUNT: usize = [$($setting),*].len();

            /// Names of the server's settings, in the order of [`Limits::numbers`].
            pub const SETTINGS: [&'static str; Limits::COUNT] = [$($setting),*];

            pub(crate) fn write(&self, out: &mut Vec<u8>) {
                $(out.$type(self.$name);)*
            }

            /// Reads what [`Limits::write`] wrote.
            pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Limits> {
                Some(Limits { $($name: reader.$type()?,)* })
            }

            /// The limits as numbers: sizes in bytes, times in milliseconds, a flag as 1 or 0.
            pub fn numbers(&self) -> [u64; Limits::COUNT] {
                [$(self.$name.number()),*]
            }

            /// Limits with these numbers. What is too large becomes the largest value, which
            /// [`Limits::check`] refuses, and a flag above 1 is set.
            #[inline]
            pub fn of_numbers(numbers: [u64; Limits::COUNT]) -> Limits {
                let [$($name),*] = numbers;
                Limits { $($name: <$type>::nearest($name),)* }
            }
        }
    };
}

limits! {
    /// Largest payload, in bytes (default 1 MiB).
    payload_bytes "limits.payload": u32 = 1 << 20;
    /// Most headers of a message (default 64).
    headers "limits.headers": u32 = 64;
    /// Headers of a message together, in bytes, names and values (default 16 KiB).
    headers_bytes "limits.headers_bytes": u32 = 16 << 10;
    /// Most messages of one send, items of one settle or extend (default 10,000).
    batch_items "limits.batch_items": u32 = 10_000;
    /// Payloads and headers of one send together, in bytes (default 16 MiB).
    batch_bytes "limits.batch_bytes": u32 = 16 << 20;
    /// Most messages of one receive (default 1,000).
    receive_messages "limits.receive_messages": u32 = 1_000;
    /// Most queues of one shard (default 100,000).
    queues "limits.queues": u32 = 100_000;
    /// Most namespaces (default 10,000).
    namespaces "limits.namespaces": u32 = 10_000;
    /// Most messages of one shard, in any state (default 200,000,000).
    messages "limits.messages": u64 = 200_000_000;
    /// Idempotency keys remembered by one shard; the oldest goes first (default 1,000,000).
    idempotency_keys "limits.idempotency_keys": u32 = 1_000_000;
    /// Time for which an idempotency key is remembered, in milliseconds (default 10 minutes).
    idempotency_window_ms "limits.idempotency_window": u64 = 10 * 60 * 1000;
    /// True if send and receive create a queue that does not exist (default true).
    auto_create "limits.auto_create": bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_back_from_their_numbers_and_those_out_of_range_do_not() {
        let limits = Limits { headers: 7, messages: 1 << 40, auto_create: false, ..Limits::default() };
        assert_eq!(Limits::of_numbers(limits.numbers()), limits);
        for (place, number) in [(0, 1 << 32), (11, 2)] {
            let mut numbers = limits.numbers();
            numbers[place] = number;
            assert_ne!(Limits::of_numbers(numbers).numbers(), numbers, "{}", Limits::SETTINGS[place]);
        }
    }
}
