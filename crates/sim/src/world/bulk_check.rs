//! Checks of a bulk that do not depend on the engine's rules. Each look of the bulk also takes a snapshot of
//! the whole queue, which shows the messages that match its filter and those that it must not pass over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sluice_engine::Engine;
use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::query::MessageView;
use sluice_node::bulk::{BulkState, BulkView};
use sluice_node::shard::request::Answer;

use super::history::History;
use crate::model::Checked;
use crate::workload::{BulkOp, Seen};

/// The queue of a bulk at one moment.
#[derive(Debug)]
pub(super) struct QueueSnapshot {
    /// True when both the queue and the target of a move exist.
    pub(super) has_queues: bool,
    messages: Vec<MessageView>,
    /// The last sequence number of the namespace.
    last: u64,
}

/// Expectations of one bulk.
pub(super) struct BulkCheck {
    op: Arc<BulkOp>,
    /// Number of messages in the queue at the bulk's begin that it counts; last sequence number then.
    total: u64,
    last: u64,
    /// The messages at the last look.
    latest: BTreeMap<MessageId, MessageView>,
    /// Messages counted, and those matched, at any look.
    counted: BTreeSet<MessageId>,
    matched: BTreeSet<MessageId>,
    /// Messages that matched and could be changed at every look.
    steady: BTreeSet<MessageId>,
    /// Messages that the bulk has last asked to change.
    asked: Vec<MessageId>,
    /// Messages of its records that were answered item by item.
    acted_on: BTreeSet<MessageId>,
    /// Number of them that were changed.
    changed: u64,
    /// Times of the messages that it has asked to change within the last second, in microseconds.
    rated: VecDeque<u64>,
}

impl QueueSnapshot {
    pub(super) fn of(op: &BulkOp, engine: &Engine) -> QueueSnapshot {
        let has = |queue: &str| engine.queue_id(op.namespace, queue).is_some();
        QueueSnapshot {
            has_queues: has(&op.wanted.queue) && op.target().is_none_or(has),
            messages: Seen(engine).in_queue(op.namespace, &op.wanted.queue),
            last: engine.last_sequence(op.namespace).unwrap_or(0),
        }
    }
}

impl BulkCheck {
    pub(super) fn begin(op: &Arc<BulkOp>, sight: &QueueSnapshot, history: &History) -> BulkCheck {
        let can_change = |view: &&MessageView| takes_in(op, view, history) && op.applies_to(view.state);
        BulkCheck {
            op: Arc::clone(op),
            total: sight.messages.iter().filter(|view| op.counts(view.state)).count() as u64,
            last: sight.last,
            latest: BTreeMap::new(),
            counted: BTreeSet::new(),
            matched: BTreeSet::new(),
            steady: sight.messages.iter().filter(can_change).map(|view| view.id).collect(),
            asked: Vec::new(),
            acted_on: BTreeSet::new(),
            changed: 0,
            rated: VecDeque::new(),
        }
    }

    /// Takes in a look of the bulk at its queue.
    pub(super) fn look(&mut self, sight: &QueueSnapshot, history: &History) {
        let here = sight.messages.iter().filter(|view| view.id.sequence <= self.last);
        self.latest = here.map(|view| (view.id, view.clone())).collect();
        let mut can_change = BTreeSet::new();
        for view in self.latest.values() {
            if self.op.counts(view.state) {
                self.counted.insert(view.id);
            }
            if takes_in(&self.op, view, history) {
                self.matched.insert(view.id);
                can_change.extend(self.op.applies_to(view.state).then_some(view.id));
            }
        }
        self.steady.retain(|id| can_change.contains(id));
    }

    /// Checks the messages that the bulk is about to change: each was sent before the bulk began, matched at
    /// the last look, has the version that it had then, and was not changed before; and there are no more of
    /// them than its rate allows.
    pub(super) fn asks(&mut self, items: &[(MessageId, u64)], now_us: u64, history: &History) -> Checked {
        self.keeps_its_rate(items, now_us)?;
        let op = &self.op;
        let may = |id: &MessageId, version: u64| {
            !op.dry_run
                && !self.acted_on.contains(id)
                && self
                    .latest
                    .get(id)
                    .is_some_and(|view| view.version == version && takes_in(op, view, history))
        };
        if let Some((id, _)) = items.iter().find(|(id, version)| !may(id, *version)) {
            return Err(format!("{op:?} asks to change {id}, which is {:?}", self.latest.get(id)));
        }
        self.asked = items.iter().map(|(id, _)| *id).collect();
        Ok(())
    }

    /// Checks that in any second no more messages are asked for than the rate says, and two records besides:
    /// one of them may be late, and the other is that of now.
    fn keeps_its_rate(&mut self, items: &[(MessageId, u64)], now_us: u64) -> Checked {
        let Some(per_second) = self.op.per_second else { return Ok(()) };
        // What was refused for a while is asked for once more.
        if items.iter().map(|(id, _)| id).eq(&self.asked) {
            return Ok(());
        }
        self.rated.extend(items.iter().map(|_| now_us));
        while self.rated.front().is_some_and(|at_us| at_us + 1_000_000 <= now_us) {
            self.rated.pop_front();
        }
        let most = per_second as usize + 2 * (per_second as usize / 100).max(1);
        if self.rated.len() > most {
            return Err(format!(
                "{:?} asks to change {} messages within a second",
                self.op,
                self.rated.len()
            ));
        }
        Ok(())
    }

    /// Takes in the answer to what the bulk has asked for last.
    pub(super) fn answered(&mut self, answer: &Answer) {
        if answer.result.is_err() {
            return;
        }
        let refused = answer.results.iter().filter(|result| result.is_err()).count();
        self.changed += (self.asked.len() - refused) as u64;
        self.acted_on.extend(self.asked.drain(..));
    }

    /// Checks the result that the bulk reports at its end.
    pub(super) fn end(&self, view: &BulkView, cancelled: bool, engine: &Engine, tainted: bool) -> Checked {
        let says = |ok: bool, what: &str| if ok { Ok(()) } else { Err(what.to_owned()) };
        says(view.total == self.total, "the total is another")?;
        says(view.scanned <= self.counted.len() as u64, "fewer could be looked at")?;
        says(view.matched <= self.matched.len() as u64, "fewer match")?;
        says(self.op.dry_run || view.changed == self.changed, "it was answered otherwise")?;
        match (view.state, &view.error) {
            (BulkState::Failed, Some(error)) => says(may_fail(error), "nothing was in its way"),
            (BulkState::Cancelled, None) => says(cancelled, "nobody has cancelled it"),
            (BulkState::Done, None) if tainted && self.op.needs_bytes() => Ok(()),
            (BulkState::Done, None) => self.passed_over_none(view, engine),
            _ => Err("it has not ended".to_owned()),
        }?;
        let all = view.matched == view.changed + view.skipped;
        says(all, "some are neither changed nor skipped")
    }

    /// Checks that every message that matched at each look was acted on; in a dry run, counted.
    fn passed_over_none(&self, view: &BulkView, engine: &Engine) -> Checked {
        // A message that was read after a look may have changed meanwhile.
        let is_as_it_was = |id: &&MessageId| {
            !self.op.needs_bytes()
                || engine.message(**id).is_ok_and(|now| self.latest[*id].version == now.version)
        };
        let steady: Vec<&MessageId> = self.steady.iter().filter(is_as_it_was).collect();
        if self.op.dry_run {
            let counted = steady.len() as u64 <= view.changed;
            return if counted { Ok(()) } else { Err(format!("it has passed over some of {steady:?}")) };
        }
        match steady.iter().find(|id| !self.acted_on.contains(id)) {
            None => Ok(()),
            Some(id) => Err(format!("it has passed over {id}")),
        }
    }
}

fn takes_in(op: &BulkOp, view: &MessageView, history: &History) -> bool {
    op.wants(view, |blob| history.sent(blob))
}

/// True for an error by which a bulk may fail.
fn may_fail(error: &Error) -> bool {
    matches!(
        error,
        Error::Overloaded { .. }
            | Error::DiskFull { .. }
            | Error::QueueNotFound { .. }
            | Error::NamespaceNotFound { .. }
            | Error::QueueClosed { .. }
            | Error::OutcomeUnknown {}
            | Error::JournalFailed { .. }
            | Error::ShuttingDown {}
    )
}
