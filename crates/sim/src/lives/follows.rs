//! What the server sends by itself: steps of chains, replies, and what follows a failure; each once.

use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::outcome::Outcome;

use super::life::{Carried, Life};
use super::{Lives, Record};
use crate::model::Checked;

/// A message that is to be sent.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// What it follows, and the queue of that.
    follows: (MessageId, QueueId),
    /// Where it is to go, and with which correlation id.
    queue: String,
    correlation_id: Vec<u8>,
    /// What follows it in turn.
    carried: Carried,
    /// Whether it must come; others may be refused, which is counted.
    surely: bool,
}

/// What one record has to bring, and what it has brought.
#[derive(Debug, Default)]
pub(super) struct Demands {
    demands: Vec<Demand>,
    sent: Vec<(MessageId, QueueId)>,
}

impl Demands {
    /// The server has sent a message by itself.
    pub(super) fn sent_by_engine(&mut self, id: MessageId, queue: QueueId) {
        self.sent.push((id, queue));
    }

    /// This happens to a message, by the event with this number.
    pub(super) fn note(&mut self, outcome: &Outcome, number: usize, life: &Life, id: MessageId) {
        let demand = |queue: &String, carried: Carried, surely: bool| Demand {
            follows: (id, life.queue),
            queue: queue.clone(),
            correlation_id: life.correlation_id_of(id),
            carried,
            surely,
        };
        let Event { kind, detail, .. } = &outcome.events[number];
        match kind {
            // The dead letter has failed before.
            EventKind::Dropped if *detail == EventDetail::Why("deleted") => {}
            EventKind::Acked => {
                // One whose next step was refused dies at once, and is not done.
                let mut rest = outcome.events[number + 1..].iter().filter(|event| event.id == Some(id));
                if rest.any(|event| event.kind == EventKind::Died) {
                    return;
                }
                if let Some((queue, rest)) = life.carried.steps.split_first() {
                    let carried = Carried { steps: rest.to_vec(), ..life.carried.clone() };
                    self.demands.push(demand(queue, carried, true));
                }
                let reply = life.reply_to.iter().map(|queue| demand(queue, Carried::default(), false));
                self.demands.extend(reply);
            }
            EventKind::Died | EventKind::Cancelled | EventKind::Dropped => {
                let step = life.carried.on_failure.iter();
                self.demands.extend(step.map(|queue| demand(queue, Carried::default(), false)));
            }
            _ => {}
        }
    }

    /// The demand that a message meets, and is the only one to meet from now on.
    fn take(&mut self, record: &Record<'_>, id: MessageId, queue: &str) -> Option<Demand> {
        let shown = record.engine.flow_view(id).ok();
        let correlation_id = record.engine.message(id).ok().map(|view| view.correlation_id.to_vec());
        let meets = |demand: &Demand| {
            let Some(view) = &shown else { return true };
            let Carried { steps, on_failure } = &demand.carried;
            view.node.chain == *steps && view.node.on_failure == *on_failure
        };
        let to_queue = |demand: &Demand| {
            demand.queue == queue
                && demand.follows.0.namespace == id.namespace
                && correlation_id.as_ref().is_none_or(|shown| *shown == demand.correlation_id)
        };
        let at = self.demands.iter().position(|demand| to_queue(demand) && meets(demand));
        // It may have ended, or have been forwarded, since.
        let at = at.or_else(|| {
            let more = record.outcome.events.iter().filter(|event| event.id == Some(id)).count() > 1;
            self.demands.iter().position(to_queue).filter(|_| more)
        });
        at.map(|at| self.demands.remove(at))
    }
}

impl Lives {
    /// What the server has sent by itself is what had to follow, each once. What did not come although the server has nothing left
    /// to do at once was refused, and is counted.
    pub(super) fn meet(&mut self, record: &Record<'_>, mut demands: Demands) -> Checked {
        let before = std::mem::take(&mut self.to_come);
        demands.demands.splice(0..0, before);
        for (id, queue) in std::mem::take(&mut demands.sent) {
            let name = record.engine.queue_name(queue).unwrap_or_default();
            let Some(demand) = demands.take(record, id, name) else {
                return Err(format!("{id} was sent to {name:?} by nobody, and follows nothing"));
            };
            self.carries(demand, id);
        }
        if let Some(missing) = demands.demands.iter().find(|demand| demand.surely) {
            return Err(format!("{missing:?} was not sent"));
        }
        self.to_come = demands.demands;
        if !record.goes_on() {
            for demand in std::mem::take(&mut self.to_come) {
                self.told.entry(demand.follows.1).or_default().replies_lost += 1;
            }
        }
        Ok(())
    }

    /// What followed a message no longer follows it.
    fn carries(&mut self, demand: Demand, id: MessageId) {
        if let Some(before) = self.lives.get_mut(&demand.follows.0) {
            before.carried = Carried::default();
        }
        if let Some(life) = self.lives.get_mut(&id) {
            life.carried = demand.carried;
            life.correlation_id = demand.correlation_id;
        }
    }

    /// Nothing is to come any more to a namespace that is deleted.
    pub(super) fn forget_demands(&mut self, namespace: NamespaceId) {
        self.to_come.retain(|demand| demand.follows.0.namespace != namespace);
    }
}
