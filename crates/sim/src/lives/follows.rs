//! Messages that the server sends by itself: steps of chains, replies, and steps for failures. Each must come
//! once.

use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::{MessageId, NamespaceId, QueueId};

use super::life::{Carried, Life};
use super::{Lives, Record};
use crate::model::Checked;

/// A message that the server has to send.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// The message that it follows, and that message's queue.
    follows: (MessageId, QueueId),
    /// Name of its queue; its correlation id.
    queue: String,
    correlation_id: Vec<u8>,
    /// The rest of the chain that it carries.
    carried: Carried,
    /// True when it must come with the record; another one may be refused, which counts as a lost reply.
    required: bool,
}

/// Messages that the server has to send and has not sent yet, in order.
#[derive(Debug, Default)]
pub(super) struct Demands {
    demands: Vec<Demand>,
}

impl Demands {
    /// Demands left by earlier records.
    pub(super) fn of(demands: Vec<Demand>) -> Demands {
        Demands { demands }
    }

    /// Adds the demands that follow from the event with this number, about this message.
    pub(super) fn note(&mut self, record: &Record<'_>, number: usize, life: &Life, id: MessageId) {
        let demand = |queue: &String, carried: Carried, required: bool| Demand {
            follows: (id, life.queue),
            queue: queue.clone(),
            correlation_id: life.correlation_id_of(id),
            carried,
            required,
        };
        let Event { kind, detail, .. } = &record.outcome.events[number];
        match kind {
            // A dead letter has failed before.
            EventKind::Dropped if *detail == EventDetail::Why("deleted") => {}
            EventKind::Acked if !record.is_done(number, id) => {}
            EventKind::Acked => {
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
            EventKind::Sent
            | EventKind::Delayed
            | EventKind::Due
            | EventKind::Delivered
            | EventKind::Nacked
            | EventKind::Released
            | EventKind::Rejected
            | EventKind::Expired
            | EventKind::Redriven
            | EventKind::Retried
            | EventKind::Held
            | EventKind::Approved
            | EventKind::Changed
            | EventKind::Moved => {}
        }
    }

    /// Takes out the demand that a new message meets; `None`: it meets none.
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
        // If more has happened to the message since, its chain may be gone: then, if none has its chain, take
        // the first demand that fits otherwise.
        let more = record.outcome.events.iter().filter(|event| event.id == Some(id)).count() > 1;
        // A reply may look like the last step of the chain, and be refused where the step was sent.
        let step =
            self.demands.iter().position(|demand| demand.required && to_queue(demand) && meets(demand));
        let any = || self.demands.iter().position(|demand| to_queue(demand) && meets(demand));
        let exact = step.or_else(any);
        let at = exact.or_else(|| self.demands.iter().position(|demand| more && to_queue(demand)));
        at.map(|at| self.demands.remove(at))
    }
}

impl Lives {
    /// The life of a message that the server has sent by itself. The chain of the message before it ends.
    ///
    /// # Errors
    /// The message meets no demand.
    pub(super) fn follows(
        &mut self,
        record: &Record<'_>,
        demands: &mut Demands,
        id: MessageId,
        queue: QueueId,
    ) -> Result<Life, String> {
        let name = record.engine.queue_name(queue).unwrap_or_default();
        let Some(demand) = demands.take(record, id, name) else {
            return Err(format!("it was sent to {name:?} by nobody, and follows nothing"));
        };
        if let Some(before) = self.lives.get_mut(&demand.follows.0) {
            before.carried = Carried::default();
        }
        Ok(Life { carried: demand.carried, correlation_id: demand.correlation_id, ..Life::default() })
    }

    /// Ends a record: keeps open demands. Those left when the engine has no work to do at once were refused,
    /// and count as lost replies.
    ///
    /// # Errors
    /// A message that must come with the record has not come.
    pub(super) fn are_met(&mut self, record: &Record<'_>, demands: Demands) -> Checked {
        self.to_come = demands.demands;
        if let Some(missing) = self.to_come.iter().find(|demand| demand.required) {
            return Err(format!("{missing:?} was not sent"));
        }
        if !record.goes_on() {
            for demand in std::mem::take(&mut self.to_come) {
                self.told.entry(demand.follows.1).or_default().replies_lost += 1;
            }
        }
        Ok(())
    }

    /// Drops the demands of a deleted namespace.
    pub(super) fn forget_demands(&mut self, namespace: NamespaceId) {
        self.to_come.retain(|demand| demand.follows.0.namespace != namespace);
    }
}
