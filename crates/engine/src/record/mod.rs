//! The bytes of a command in the log.
//!
//! Every body begins with a kind and the version of that kind's layout. A layout that changes gets the next
//! version; only that one is read, and others are refused.
//!
//! Blobs of a record: a send has one per item (see [`crate::blob`]), then one for each step of their chains
//! that has a payload of its own, a settle for each item its error text and its result (laid out like a
//! message's), each if there is one, a report for each item its note and its checkpoint in the same way, a
//! change one for who and why and one for tags, a schedule what it sends, the others have none.

mod chain;
mod change;
mod check;
mod consumers;
pub(crate) mod decode;
mod encode;
mod fields;
mod group;
mod known;
mod options;
mod report;
mod schedule;

pub(crate) use crate::record::chain::{
    StepRecord, chain_is_sound, read_headers, read_step, read_steps, split_chain, step_blobs,
};
pub(crate) use crate::record::change::{ChangeRecord, ChangeStep, SetFields};
pub(crate) use crate::record::check::{backoff_rule, name_rule};
pub(crate) use crate::record::consumers::{AttachRecord, ResumeRecord};
pub(crate) use crate::record::decode::{
    ExtendRecord, Ids, Kind, RareRecord, ReceiveRecord, SendItemRecord, SendRecord, SettleRecord, id_at,
    kind_of,
};
pub(crate) use crate::record::encode::settle_without_blobs;
pub(crate) use crate::record::fields::{
    read_backoff, read_limits, read_quotas, write_backoff, write_limits, write_quotas,
};
pub(crate) use crate::record::group::GroupRecord;
pub use crate::record::known::{check_behaviour, check_known};
use crate::record::options::are_options;
pub(crate) use crate::record::options::{ItemOptions, read_options, unique_of};
pub(crate) use crate::record::report::{ReportItemRecord, ReportRecord, report_without_notes};
pub(crate) use crate::record::schedule::{SchedulePutRecord, read_template};

/// The version of a kind's layout.
#[inline(always)]
const fn layout(kind: u8) -> u8 {
    match kind {
        kind::EPOCH
        | kind::QUEUE_SET
        | kind::DETACH
        | kind::SETTLE
        | kind::EXTEND
        | kind::REPORT
        | kind::RESUME => 2,
        _ => 1,
    }
}

/// The first two bytes of a body of this kind: the kind, and the version of its layout.
#[inline(always)]
const fn first_bytes(kind: u8) -> [u8; 2] {
    [kind, layout(kind)]
}

/// A receipt: namespace, sequence, token and tag.
const RECEIPT_BYTES: usize = 28;
/// An item of a settle record: a receipt, the settlement, whether there is a result, the length of the error
/// text, and a delay, or the length of the result.
const SETTLE_ITEM_BYTES: usize = RECEIPT_BYTES + 12;
/// An item of an extend record: a receipt and a lease.
const EXTEND_ITEM_BYTES: usize = RECEIPT_BYTES + 8;
/// What stands before the items of a record that is a list: kind, layout, namespace, number of items.
const LIST_HEAD_BYTES: usize = 10;

/// The first byte of each body.
mod kind {
    pub(crate) const EPOCH: u8 = 1;
    pub(crate) const CONFIGURE: u8 = 2;
    pub(crate) const TICK: u8 = 3;
    pub(crate) const SEND: u8 = 4;
    pub(crate) const RECEIVE: u8 = 5;
    pub(crate) const SETTLE: u8 = 6;
    pub(crate) const EXTEND: u8 = 7;
    pub(crate) const NAMESPACE_CREATE: u8 = 8;
    pub(crate) const NAMESPACE_SET: u8 = 9;
    pub(crate) const NAMESPACE_DELETE: u8 = 10;
    pub(crate) const QUEUE_SET: u8 = 11;
    pub(crate) const QUEUE_PURGE: u8 = 12;
    pub(crate) const QUEUE_DELETE: u8 = 13;
    pub(crate) const DEAD_REDRIVE: u8 = 14;
    pub(crate) const DEAD_DELETE: u8 = 15;
    pub(crate) const HOLD_DAMAGED: u8 = 16;
    pub(crate) const RECEIPT_KEY: u8 = 17;
    pub(crate) const REPORT: u8 = 28;
    pub(crate) const CHANGE: u8 = 34;
    pub(crate) const SCHEDULE_PUT: u8 = 50;
    pub(crate) const SCHEDULE_DELETE: u8 = 51;
    pub(crate) const SCHEDULE_PAUSE: u8 = 52;
    pub(crate) const SCHEDULE_FIRE: u8 = 53;
    pub(crate) const SCHEDULE_TRIGGER: u8 = 54;
    pub(crate) const DEAD_REDRIVE_RATE: u8 = 40;
    pub(crate) const DEFAULTS_SET: u8 = 41;
    pub(crate) const DEFAULTS_DELETE: u8 = 42;
    pub(crate) const ATTACH: u8 = 45;
    pub(crate) const CREDIT: u8 = 46;
    pub(crate) const DETACH: u8 = 47;
    pub(crate) const RESUME: u8 = 48;
    pub(crate) const LIMIT_SET: u8 = 20;
    pub(crate) const LIMIT_DELETE: u8 = 21;
    pub(crate) const GROUP: u8 = 55;
}

/// How an item of a send or settle record spells its choices.
mod tag {
    pub(crate) const DELIVER_NOW: u8 = 0;
    pub(crate) const DELIVER_AFTER: u8 = 1;
    pub(crate) const DELIVER_AT: u8 = 2;
    pub(crate) const DELIVER_MASK: u8 = 3;
    pub(crate) const HAS_BACKOFF: u8 = 4;
    pub(crate) const HAS_OPTIONS: u8 = 8;

    pub(crate) const ACK: u8 = 0;
    pub(crate) const NACK: u8 = 1;
    pub(crate) const NACK_DELAY: u8 = 2;
    pub(crate) const RELEASE: u8 = 3;
    pub(crate) const REJECT: u8 = 4;
    /// Beside `ACK`: a result, whose length stands where others have their delay.
    pub(crate) const HAS_RESULT: u8 = 1;
}
