//! Comparison of the events so far with what the engine lists and counts.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Engine;
use sluice_engine::id::{MessageId, QueueId};
use sluice_engine::query::{Counters, MessageView, QueueView, State};

use super::life::Stage;
use super::{Lives, ensure};
use crate::model::Checked;

/// Number of messages in a page of the listing.
const PAGE: usize = 50;
/// Number of queues in a listing: more than a namespace has.
const QUEUES_MAX: usize = 1_000;

impl Lives {
    /// Checks that the engine lists and counts what the events say: each message that has not ended, in a
    /// state that fits, and nothing else.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, engine: &Engine) -> Checked {
        let mut here: BTreeSet<MessageId> = BTreeSet::new();
        for namespace in engine.namespaces() {
            let queues = engine.queues(namespace.id, "", None, QUEUES_MAX);
            for queue in &queues {
                self.compare_queue(queue, engine, &mut here)?;
            }
            self.compare_lost(&queues)?;
        }
        let missing = self
            .lives
            .iter()
            .find(|(id, life)| !matches!(life.stage, Stage::Acked { .. }) && !here.contains(id));
        ensure!(missing.is_none(), "{missing:?} has not ended, and is not listed");
        Ok(())
    }

    fn compare_queue(&self, queue: &QueueView, engine: &Engine, here: &mut BTreeSet<MessageId>) -> Checked {
        let listed = list(queue.id, engine);
        let mut counted = BTreeMap::new();
        for view in &listed {
            *counted.entry(view.state as usize).or_insert(0u64) += 1;
            self.compare_message(view).map_err(|wrong| format!("{view:?} is listed: {wrong}"))?;
            ensure!(here.insert(view.id), "{} is listed twice", view.id);
        }
        let Counters { states, bytes, .. } = queue.counters;
        for state in State::ALL {
            let listed = counted.get(&(state as usize)).copied().unwrap_or(0);
            let counted = states[state as usize];
            ensure!(listed == counted, "{:?} lists {listed} and counts {counted} {state:?}", queue.name);
        }
        let listed_bytes: u64 = listed.iter().map(|view| u64::from(view.blob.len)).sum();
        ensure!(bytes == listed_bytes, "{:?} counts {bytes} bytes, {listed_bytes} are listed", queue.name);
        let Counters { replies_lost, .. } = queue.counters;
        let told = Counters { states, bytes, replies_lost, ..self.told_of(queue) };
        ensure!(told == queue.counters, "{:?} counts {:?}, told was {told:?}", queue.name, queue.counters);
        Ok(())
    }

    fn told_of(&self, queue: &QueueView) -> Counters {
        self.told.get(&queue.id).copied().unwrap_or_default()
    }

    /// Checks the number of lost replies of a namespace, as a sum over its queues: of several replies to the
    /// same queue with the same correlation id, it is not known which one came.
    fn compare_lost(&self, queues: &[QueueView]) -> Checked {
        if !self.to_come.is_empty() {
            return Ok(());
        }
        let counted: u64 = queues.iter().map(|queue| queue.counters.replies_lost).sum();
        let missing: u64 = queues.iter().map(|queue| self.told_of(queue).replies_lost).sum();
        ensure!(counted == missing, "{counted} replies count as lost, {missing} did not come: {queues:?}");
        Ok(())
    }

    fn compare_message(&self, view: &MessageView) -> Checked {
        let Some(life) = self.lives.get(&view.id) else {
            return Err(format!("it is gone: {}", self.gone.contains(&view.id)));
        };
        let same = match life.stage {
            Stage::Waits => {
                matches!(view.state, State::Delayed | State::Ready | State::Held | State::Blocked)
            }
            Stage::Leased { token, .. } => {
                view.state == State::Leased && view.receipt.is_some_and(|receipt| receipt.token == token)
            }
            Stage::Dead => view.state == State::Dead,
            Stage::Acked { .. } => view.state == State::Done,
            Stage::Gone => false,
        };
        ensure!(same && view.queue == life.queue, "told was {life:?}");
        Ok(())
    }
}

fn list(queue: QueueId, engine: &Engine) -> Vec<MessageView> {
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = engine.messages(queue, None, cursor, PAGE);
        listed.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return listed;
        }
    }
}
