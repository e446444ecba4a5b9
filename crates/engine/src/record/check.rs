//! Checks of commands that do not look at the state: ranges, names, sizes. Rules of one concern lie in the
//! `check` of its room; [`crate::rules`] has what they are made of.

use crate::command::{CONSENSUS_BYTES_MAX, Command};
use crate::document::attachment::check as attachment;
use crate::document::check as document;
use crate::error::Error;
use crate::limits::{LEASE_MS_MAX, Limits, REDRIVE_PER_SECOND_MAX};
use crate::lock::check::{check_acquire, check_key, check_renewal, check_wait};
use crate::queue::change::check::check_change;
use crate::queue::check::check_rules;
use crate::queue::consumer::check::{check_attach, check_credit, check_grace};
use crate::queue::delivery::check::{check_receive, check_report, check_settle};
use crate::queue::search::check::check_fill;
use crate::queue::send::check::{check_group, check_schedule, check_send};
use crate::rules::{at_most, at_most_of, check_ids, check_items, name_rule, pattern_rule};
use crate::transaction::check as transaction;

impl Command<'_> {
    /// Refuses what is wrong whatever the state is. Fronts and node call it before they propose.
    ///
    /// # Errors
    /// The error names the field, its value, and what would be right.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        match self {
            Command::Epoch { .. } | Command::Raise { .. } | Command::ReceiptKey(_) => Ok(()),
            Command::Tick | Command::HoldDamaged { .. } | Command::ScheduleFire(_) => Ok(()),
            Command::Consensus { entry } => {
                at_most_of("bytes", "entry", entry.len() as u64, CONSENSUS_BYTES_MAX as u64)
            }
            Command::SchedulePut(put) => check_schedule(put, limits),
            Command::ScheduleDelete { schedule, .. }
            | Command::SchedulePause { schedule, .. }
            | Command::ScheduleTrigger { schedule, .. } => name_rule("schedule", schedule),
            Command::Configure(limits) => limits.check(),
            Command::Send(send) => check_send(send, limits),
            Command::Group(group) => check_group(group, limits),
            Command::Receive(receive) => check_receive(receive, limits),
            Command::Settle { items, .. } => check_settle(items, limits),
            Command::Extend { items, .. } => {
                check_items("items", items.len(), limits)?;
                items.iter().try_for_each(|(_, lease_ms)| at_most("lease_ms", *lease_ms, LEASE_MS_MAX))
            }
            Command::Report { items, .. } => check_report(items, limits),
            Command::Change(change) => check_change(change),
            Command::Attach(attach) => check_attach(attach),
            Command::Credit { credit, .. } => check_credit(*credit),
            Command::Detach { grace_ms, .. } => check_grace(*grace_ms),
            Command::LockAcquire(acquire) => check_acquire(acquire),
            Command::LockRenew { ttl_ms, .. } => check_renewal(*ttl_ms),
            Command::LockBreak { key, .. } => check_key("key", key),
            Command::LockWait { wait_ms, .. } => check_wait(*wait_ms),
            Command::DocumentPut(put) => document::check_put(put),
            Command::Transaction(whole) => transaction::check(whole, limits),
            Command::TransactionPrepare(prepare) => transaction::check_prepare(prepare, limits),
            Command::TransactionDecide(decide) => transaction::check_decide(decide, limits),
            Command::TransactionFinish { .. } | Command::TransactionAsk { .. } => Ok(()),
            Command::DocumentDelete(delete) => document::check_key(delete.key),
            Command::IndexPut { name, pointer, .. } => document::check_index(name, pointer),
            Command::IndexDelete { name, .. } => name_rule("index", name),
            Command::IndexFill(fill) => document::check_fill(fill),
            Command::SearchFill(fill) => check_fill(fill),
            Command::DocumentCheck(check) => document::check_condition(check),
            Command::UploadBegin(begin) => attachment::check_begin(begin),
            Command::UploadChunk(chunk) => attachment::check_chunk(chunk),
            Command::AttachmentCommit(commit) => attachment::check_commit(commit),
            Command::AttachmentDelete(delete) => attachment::check_names(delete.key, delete.name),
            Command::Resume { receipts, .. } => check_items("receipts", receipts.len(), limits),
            Command::NamespaceCreate { name, .. } => name_rule("namespace", name),
            Command::LockRelease { .. } | Command::LockLeave { .. } | Command::UploadEnd { .. } => Ok(()),
            Command::NamespaceSet { .. } | Command::NamespaceDelete { .. } => Ok(()),
            Command::QueueSet { queue, patch, .. } => name_rule("queue", queue).and_then(|()| patch.check()),
            Command::LimitSet { limit, rules, .. } => {
                name_rule("limit", limit).and_then(|()| check_rules(rules))
            }
            Command::DeadRedriveRate { queue, per_second, .. } => {
                name_rule("queue", queue)?;
                at_most("per_second", (*per_second).into(), REDRIVE_PER_SECOND_MAX.into())
            }
            Command::DefaultsSet { pattern, patch, .. } => pattern_rule(pattern).and_then(|()| patch.check()),
            Command::DefaultsDelete { pattern, .. } => pattern_rule(pattern),
            Command::LimitDelete { limit, .. } => name_rule("limit", limit),
            Command::QueuePurge { queue, .. } | Command::QueueDelete { queue, .. } => {
                name_rule("queue", queue)
            }
            Command::DeadRedrive { queue, ids, .. } | Command::DeadDelete { queue, ids, .. } => {
                name_rule("queue", queue)?;
                check_ids(ids, limits)
            }
        }
    }
}
