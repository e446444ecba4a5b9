//! The table of records: number, version of the layout, and fields of each kind.
//!
//! A command whose fields lie one behind the other is one row of `fields`, from which it is written and read.
//! A hot record is read apart, and one with a layout of its own names the functions that read it; both are
//! written by functions of their own, called from [`crate::Command::encode`].

use crate::attachments::{AttachmentCommit, AttachmentDelete, UploadBegin};
use crate::command::{Command, ScheduleFire};
use crate::core::field::{ReadField, WriteField};
use crate::document::attachment::record as attachment;
use crate::document::attachment::record::ChunkRecord;
use crate::document::index::record as index;
use crate::document::index::record::FillRecord;
use crate::document::record as document;
use crate::document::record::PutRecord;
use crate::documents::{DocumentCheck, DocumentDelete};
use crate::id::{BlobRef, ConsumerId, MessageId, NamespaceId, ReceiptKey, TransactionId, UploadId};
use crate::limit::LimitRules;
use crate::limits::Limits;
use crate::lock::record as lock;
use crate::lock::record::AcquireRecord;
use crate::locks::{LockTicket, LockToken};
use crate::queue::record::change::ChangeRecord;
use crate::queue::record::consumer::{AttachRecord, DetachRecord, ResumeRecord};
use crate::queue::record::dead::Ids;
use crate::queue::record::group::GroupRecord;
use crate::queue::record::report::ReportRecord;
use crate::queue::record::schedule::SchedulePutRecord;
use crate::queue::record::{change, consumer as consumers, group, report, schedule, search};
use crate::settings::{QueuePatch, Quotas};
use crate::transaction::record as transaction;
use crate::transaction::record::{DecideRecord, PrepareRecord, TransactionRecord};
use crate::wire::{Put, Reader};

macro_rules! records {
    (
        hot { $($hot:ident = $hot_number:literal, $hot_layout:literal;)* }
        own { $($own_head:ident $own:ident($own_type:ty) = $own_number:literal, $own_layout:literal, $read:path;)* }
        whole { $($whole:ident($whole_type:ty) = $whole_number:literal, $whole_layout:literal;)* }
        fields { $($name:ident { $($field:ident: $type:ty),* $(,)? } = $number:literal, $layout:literal;)* }
    ) => {
        /// The first two bytes of records that are written by functions of their own: the number of the kind,
        /// and the version of its layout.
        pub(crate) mod head {
            $(pub(crate) const $hot: [u8; 2] = [$hot_number, $hot_layout];)*
            $(pub(crate) const $own_head: [u8; 2] = [$own_number, $own_layout];)*
        }

        /// The version of a kind's layout.
        #[inline(always)]
        pub(crate) const fn layout(kind: u8) -> u8 {
            match kind {
                $($hot_number => $hot_layout,)*
                $($own_number => $own_layout,)*
                $($whole_number => $whole_layout,)*
                $($number => $layout,)*
                _ => 1,
            }
        }

        /// A record off the hot path. Its structure is sound; its values are what the writer gave.
        pub(crate) enum RareRecord<'a> {
            $($own($own_type),)*
            $($whole($whole_type),)*
            $($name { $($field: $type),* },)*
        }

        /// Reads what stands behind the first two bytes; `None`: it is no record of this kind.
        pub(crate) fn read_rare<'a>(kind: u8, reader: &mut Reader<'a>) -> Option<RareRecord<'a>> {
            Some(match kind {
                $($own_number => RareRecord::$own($read(reader)?),)*
                $($whole_number => RareRecord::$whole(ReadField::read(reader)?),)*
                $($number => RareRecord::$name { $($field: ReadField::read(reader)?),* },)*
                _ => return None,
            })
        }

        /// The commands of `whole` and `fields`, as a pattern.
        macro_rules! plain_commands {
            () => { $($crate::Command::$whole(_) |)* $($crate::Command::$name { .. })|* };
        }
        pub(crate) use plain_commands;

        /// The body of a command that [`plain_commands`] matches; of another one, nothing.
        #[cold]
        pub(crate) fn plain_body(command: &Command<'_>) -> Vec<u8> {
            let mut out = Vec::with_capacity(192);
            $(if let Command::$whole(value) = command {
                out.raw(&[$whole_number, $whole_layout]);
                value.write(&mut out);
            })*
            $(if let Command::$name { $($field),* } = command {
                out.raw(&[$number, $layout]);
                $($field.write(&mut out);)*
            })*
            out
        }
    };
}

records! {
    hot {
        TICK = 3, 1;
        SEND = 4, 1;
        RECEIVE = 5, 1;
        SETTLE = 6, 2;
        EXTEND = 7, 2;
    }
    own {
        REPORT Report(ReportRecord<'a>) = 28, 2, report::decode;
        CHANGE Change(ChangeRecord<'a>) = 34, 1, change::decode;
        ATTACH Attach(AttachRecord<'a>) = 45, 2, consumers::decode_attach;
        DETACH Detach(DetachRecord) = 47, 2, consumers::decode_detach;
        RESUME Resume(ResumeRecord<'a>) = 48, 2, consumers::decode_resume;
        SCHEDULE_PUT SchedulePut(SchedulePutRecord<'a>) = 50, 1, schedule::decode_put;
        GROUP Group(GroupRecord<'a>) = 55, 1, group::decode;
        LOCK_ACQUIRE LockAcquire(AcquireRecord<'a>) = 60, 1, lock::decode_acquire;
        DOCUMENT_PUT DocumentPut(PutRecord<'a>) = 66, 2, document::decode_put;
        INDEX_FILL IndexFill(FillRecord<'a>) = 72, 1, index::decode_fill;
        SEARCH_FILL SearchFill(search::FillRecord<'a>) = 82, 1, search::decode_fill;
        UPLOAD_CHUNK UploadChunk(ChunkRecord<'a>) = 74, 1, attachment::decode_chunk;
        TRANSACTION Transaction(TransactionRecord<'a>) = 68, 2, transaction::decode;
        PREPARE TransactionPrepare(PrepareRecord<'a>) = 78, 1, transaction::decode_prepare;
        DECIDE TransactionDecide(DecideRecord<'a>) = 79, 1, transaction::decode_decide;
    }
    whole {
        Configure(Limits) = 2, 1;
        ReceiptKey(ReceiptKey) = 17, 1;
        ScheduleFire(ScheduleFire) = 53, 1;
        DocumentDelete(DocumentDelete<'a>) = 67, 1;
        DocumentCheck(DocumentCheck<'a>) = 69, 1;
        UploadBegin(UploadBegin<'a>) = 73, 1;
        AttachmentCommit(AttachmentCommit<'a>) = 76, 1;
        AttachmentDelete(AttachmentDelete<'a>) = 77, 1;
    }
    fields {
        Epoch { number: u64, behaviour: u16 } = 1, 2;
        NamespaceCreate { number: Option<NamespaceId>, name: &'a str, shard: u32, quotas: Quotas } = 8, 1;
        NamespaceSet { namespace: NamespaceId, quotas: Quotas } = 9, 1;
        NamespaceDelete { namespace: NamespaceId, force: bool } = 10, 1;
        QueueSet { namespace: NamespaceId, queue: &'a str, create: bool, patch: QueuePatch } = 11, 2;
        QueuePurge { namespace: NamespaceId, queue: &'a str } = 12, 1;
        QueueDelete { namespace: NamespaceId, queue: &'a str } = 13, 1;
        DeadRedrive { namespace: NamespaceId, queue: &'a str, ids: Ids<'a> } = 14, 1;
        DeadDelete { namespace: NamespaceId, queue: &'a str, ids: Ids<'a> } = 15, 1;
        HoldDamaged { id: MessageId, blob: BlobRef } = 16, 1;
        LimitSet { namespace: NamespaceId, limit: &'a str, rules: LimitRules } = 20, 1;
        LimitDelete { namespace: NamespaceId, limit: &'a str } = 21, 1;
        DeadRedriveRate { namespace: NamespaceId, queue: &'a str, per_second: u32 } = 40, 1;
        DefaultsSet { namespace: NamespaceId, pattern: &'a str, patch: QueuePatch } = 41, 1;
        DefaultsDelete { namespace: NamespaceId, pattern: &'a str } = 42, 1;
        Credit { namespace: NamespaceId, consumer: ConsumerId, credit: u32 } = 46, 1;
        ScheduleDelete { namespace: NamespaceId, schedule: &'a str } = 51, 1;
        SchedulePause { namespace: NamespaceId, schedule: &'a str, paused: bool, next_at_us: u64 } = 52, 1;
        Consensus { entry: &'a [u8] } = 56, 1;
        Raise { behaviour: u16 } = 57, 1;
        LockRenew { namespace: NamespaceId, token: LockToken, ttl_ms: u32 } = 61, 1;
        LockRelease { namespace: NamespaceId, token: LockToken } = 62, 1;
        LockBreak { namespace: NamespaceId, key: &'a str } = 63, 1;
        LockWait { ticket: LockTicket, wait_ms: u32 } = 64, 1;
        LockLeave { claim: LockTicket, calls: u16 } = 65, 1;
        IndexPut { namespace: NamespaceId, name: &'a str, pointer: &'a str } = 70, 1;
        IndexDelete { namespace: NamespaceId, name: &'a str } = 71, 1;
        UploadEnd { namespace: NamespaceId, upload: UploadId } = 75, 1;
        TransactionFinish { namespace: NamespaceId, id: TransactionId, commit: bool } = 80, 1;
        TransactionAsk { id: TransactionId, until_us: u64 } = 81, 1;
        ScheduleTrigger { namespace: NamespaceId, schedule: &'a str } = 54, 1;
    }
}
