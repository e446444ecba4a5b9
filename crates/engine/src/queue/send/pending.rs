//! Sends that follow the end of a message and cannot prevent it: the reply to an ack, and the step for a
//! failure.
//!
//! The message has ended and left its place before, so that what follows it may have that place.

use crate::core::Core;
use crate::id::{BlobRef, QueueId};
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::send::own::{Beside, OwnSend};
use crate::queue::state::chain::Chain;
use crate::queue::state::consequence::Consequence;
use crate::queue::state::message::Reason;
use crate::queue::state::origin::Origin;
use crate::queue::state::pending::{PendingKind, PendingSend};
use crate::queue::state::{FlowSlot, MessageSlot, PendingSlot};
use crate::store::slot::Slot;

impl QueueModule {
    /// Lists a pending send; returns its slot.
    pub(crate) fn list_send(&mut self, pending: PendingSend) -> PendingSlot {
        let slot = self.pending_sends.insert(pending);
        self.list(Consequence::Send(slot));
        slot
    }

    /// Lists the step for the failure of a dead letter, whose flow keeps the slot.
    pub(crate) fn list_failure(&mut self, message: MessageSlot, failure: PendingSend) {
        let pending = self.list_send(failure);
        let flow = self.enter_flow(message);
        self.flows.slots.get_mut(flow).pending = pending;
    }

    /// Takes the step for a message's failure out of its chain; `None`: it has none. List it when the message
    /// has left its place.
    #[inline]
    pub(crate) fn take_failure(
        &mut self,
        slot: MessageSlot,
        reason: Reason,
        core: &mut Core,
    ) -> Option<PendingSend> {
        let flow = self.flow_of(slot)?;
        self.take_failure_of(slot, flow, reason, core)
    }

    #[cold]
    fn take_failure_of(
        &mut self,
        slot: MessageSlot,
        flow: FlowSlot,
        reason: Reason,
        core: &mut Core,
    ) -> Option<PendingSend> {
        let chain = self.take_steps(flow, |chain| !chain.on_failure.is_empty())?;
        let message = self.messages.get(slot);
        let queue = self.queues.get(message.queue);
        let origin = Origin::new(queue.name.clone(), reason, core.now_us);
        let (from, content) = (queue.number, message.blob());
        let own_payload = chain.failure().is_some_and(|(step, ..)| step.own_payload);
        let blob = if own_payload { BlobRef::EMPTY } else { content };
        core.share_blob(blob);
        let correlation_id = self.correlation_id_of(slot, core);
        let kind = PendingKind::Failure(chain, origin);
        Some(PendingSend::new(self.id_of_slot(slot, core), from, &correlation_id, blob, kind))
    }

    /// Does [`Consequence::Send`].
    pub(crate) fn send_pending(&mut self, slot: PendingSlot, core: &mut Core, out: &mut Outcome) {
        let pending = self.pending_sends.remove(slot);
        if let Some(message) = self.find_listed(pending.follows, core)
            && let Some(flow) = self.flow_of(message)
            && self.flows.slots.get(flow).pending == slot
        {
            self.flows.slots.get_mut(flow).pending = Slot::NIL;
        }
        self.send_now(&pending, core, out);
    }

    /// Sends the step for a dead letter's failure, if it is still pending. Call it before a redrive: then the
    /// chain is over, or, if the step was refused, the message carries it again.
    pub(crate) fn settle_failure(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        let Some(flow) = self.flow_of(slot) else { return };
        let pending = std::mem::replace(&mut self.flows.slots.get_mut(flow).pending, Slot::NIL);
        if pending != Slot::NIL {
            let pending = std::mem::replace(self.pending_sends.get_mut(pending), PendingSend::sent());
            self.send_now(&pending, core, out);
        }
    }

    /// Sends a message. One that is refused counts as a lost reply, and a dead letter that is still there
    /// gets its steps back.
    fn send_now(&mut self, pending: &PendingSend, core: &mut Core, out: &mut Outcome) {
        let sent = match &pending.kind {
            PendingKind::Sent => true,
            PendingKind::Reply(to) => {
                let send = OwnSend::plain(to, pending.blob, &pending.correlation_id);
                self.send_of_engine(pending.follows.namespace, &send, None, core, out).is_ok()
            }
            PendingKind::Failure(chain, origin) => {
                self.send_failure(pending, chain, origin.clone(), core, out)
            }
        };
        if sent {
            return;
        }
        self.count_lost(pending.from, core);
        core.release_blob(pending.blob, out);
        if let PendingKind::Failure(chain, origin) = &pending.kind
            && !self.give_back_steps(pending, chain, origin.reason, core)
        {
            chain.blobs().for_each(|blob| core.release_blob(blob, out));
        }
    }

    fn send_failure(
        &mut self,
        pending: &PendingSend,
        chain: &Chain,
        origin: Origin,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        let Some((step, own, rest)) = chain.failure() else { return false };
        let blob = own.unwrap_or(pending.blob);
        let send =
            OwnSend { queue: step.queue, blob, item: step.item, correlation_id: &pending.correlation_id };
        let beside = Beside { chain: rest, origin: Some(origin) };
        let sent = self.send_of_engine(pending.follows.namespace, &send, Some(beside), core, out).is_ok();
        if sent {
            chain.blobs().filter(|blob| own != Some(*blob)).for_each(|blob| core.release_blob(blob, out));
        }
        sent
    }

    fn count_lost(&mut self, from: u32, core: &Core) {
        self.totals.replies_lost += 1;
        if let Some(queue) = self.queue_slot(QueueId(from), core) {
            self.queues.get_mut(queue).counters.replies_lost += 1;
        }
    }

    /// Gives a message back the steps of which that for its failure was refused. False if it is gone, carries
    /// other steps, or is in another queue than it failed in, unless it goes on there with its next step.
    fn give_back_steps(&mut self, pending: &PendingSend, chain: &Chain, reason: Reason, core: &Core) -> bool {
        let Some(slot) = self.find_listed(pending.follows, core) else { return false };
        let queue = self.queues.get(self.messages.get(slot).queue).number;
        let keeps_chain = queue == pending.from || reason == Reason::NextStepRefused;
        keeps_chain && self.restore_steps(slot, chain)
    }
}
