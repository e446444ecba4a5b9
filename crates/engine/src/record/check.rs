//! Everything that can be refused without looking at the state. Each kind of command that has rules of its own keeps them in
//! a file: messages to send, what consumers ask and say, settings; `rules` is what all of them are made of.

mod rules;
mod send;
mod settings;
mod work;

use crate::command::Command;
use crate::error::Error;
use crate::limits::{LEASE_MS_MAX, Limits, REDRIVE_PER_SECOND_MAX};
pub(crate) use crate::record::check::rules::{at_most, between, check_tags, invalid};
pub(crate) use crate::record::check::rules::{backoff_rule, name_rule};
use crate::record::check::rules::{check_ids, check_items, pattern_rule};
pub(crate) use crate::record::check::send::check_send_item;
use crate::record::check::send::{check_group, check_schedule, check_send};
use crate::record::check::settings::{check_patch, check_rules};
use crate::record::check::work::{check_receive, check_report, check_settle};
use crate::record::consumers;

impl Command<'_> {
    /// Refuses what is wrong whatever the state is. Fronts and node call it before they propose.
    ///
    /// # Errors
    /// The error names the field, its value, and what would be right.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        match self {
            Command::Epoch { .. }
            | Command::ReceiptKey(_)
            | Command::Tick
            | Command::HoldDamaged { .. }
            | Command::ScheduleFire(_) => Ok(()),
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
            Command::Change(change) => crate::record::change::check(change),
            Command::Attach(attach) => consumers::check_attach(attach),
            Command::Credit { credit, .. } => consumers::check_credit(*credit),
            Command::Detach { grace_ms, .. } => consumers::check_grace(*grace_ms),
            Command::Resume { receipts, .. } => check_items("receipts", receipts.len(), limits),
            Command::NamespaceCreate { name, .. } => name_rule("namespace", name),
            Command::NamespaceSet { .. } | Command::NamespaceDelete { .. } => Ok(()),
            Command::QueueSet { queue, patch, .. } => {
                name_rule("queue", queue)?;
                check_patch(patch)
            }
            Command::LimitSet { limit, rules, .. } => {
                name_rule("limit", limit)?;
                check_rules(rules)
            }
            Command::DeadRedriveRate { queue, per_second, .. } => {
                name_rule("queue", queue)?;
                at_most("per_second", (*per_second).into(), REDRIVE_PER_SECOND_MAX.into())
            }
            Command::DefaultsSet { pattern, patch, .. } => {
                pattern_rule(pattern)?;
                check_patch(patch)
            }
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
