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
mod field;
mod fields;
mod group;
mod known;
mod options;
mod report;
pub(crate) mod schedule;
mod table;

pub(crate) use crate::record::chain::{
    StepRecord, chain_is_sound, read_headers, read_step, read_steps, split_chain, step_blobs,
};
pub(crate) use crate::record::change::{ChangeRecord, ChangeStep, SetFields};
pub(crate) use crate::record::check::{backoff_rule, name_rule};
pub(crate) use crate::record::consumers::{AttachRecord, DetachRecord, ResumeRecord};
pub(crate) use crate::record::decode::{
    ExtendRecord, Ids, Kind, ReceiveRecord, SendItemRecord, SendRecord, SettleRecord, id_at, kind_of,
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
pub(crate) use crate::record::table::RareRecord;

/// A receipt: namespace, sequence, token and tag.
const RECEIPT_BYTES: usize = 28;
/// An item of a settle record: a receipt, the settlement, whether there is a result, the length of the error
/// text, and a delay, or the length of the result.
const SETTLE_ITEM_BYTES: usize = RECEIPT_BYTES + 12;
/// An item of an extend record: a receipt and a lease.
const EXTEND_ITEM_BYTES: usize = RECEIPT_BYTES + 8;
/// What stands before the items of a record that is a list: kind, layout, namespace, number of items.
const LIST_HEAD_BYTES: usize = 10;

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
