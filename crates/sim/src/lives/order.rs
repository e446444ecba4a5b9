//! Ordering keys: one message is leased at a time, and first deliveries are in the order of sending.

use sluice_engine::command::Command;
use sluice_engine::id::MessageId;
use sluice_engine::settings::OrderingRetry;

use super::life::{Life, Stage};
use super::{Lives, Record, ensure};
use crate::model::Checked;

impl Lives {
    /// Checks a delivery: no other message with its ordering key is leased, and none that was sent before it
    /// waits for its first delivery.
    pub(super) fn keeps_order(&self, record: &Record<'_>, id: MessageId) -> Checked {
        let life = &self.lives[&id];
        if life.ordering.is_empty() {
            return Ok(());
        }
        let others = self
            .lives
            .iter()
            .filter(|(other, of)| **other != id && of.queue == life.queue && of.ordering == life.ordering);
        for (other_id, other) in others {
            let held = matches!(other.stage, Stage::Leased { .. });
            ensure!(!held, "it is delivered while {other_id} with its ordering key is held: {other:?}");
            let passed = !life.strayed && self.is_before(record, *other_id, other, life);
            ensure!(!passed, "it is delivered before {other_id} with its ordering key: {other:?}");
        }
        Ok(())
    }

    /// True when the other message had to be delivered before.
    fn is_before(&self, record: &Record<'_>, other_id: MessageId, other: &Life, life: &Life) -> bool {
        let waits = other.stage == Stage::Waits && other.is_new() && !other.strayed;
        // Its time may be over, with the event of its end still to come.
        let over = || {
            let view = record.engine.message(other_id);
            view.is_ok_and(|view| view.expires_at_us.is_some_and(|end_us| end_us <= record.now_us))
        };
        waits
            && other.number < life.number
            && other.parents.is_empty()
            && !self.steps_aside.contains(&other_id.namespace)
            && !over()
    }

    /// Notes the namespaces in which delayed messages step aside: there the order is not that of sending.
    pub(super) fn look_at_settings(&mut self, record: &Record<'_>) {
        let (namespace, patch) = match record.command {
            Command::QueueSet { namespace, patch, .. } | Command::DefaultsSet { namespace, patch, .. } => {
                (namespace, patch)
            }
            _ => return,
        };
        if patch.ordering_retry == Some(OrderingRetry::StepAside) {
            self.steps_aside.insert(*namespace);
        }
    }
}
