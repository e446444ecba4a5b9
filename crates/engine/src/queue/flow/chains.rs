//! Chains: a message carries the steps that follow it. When it is acked, the first of them is sent, with its
//! result as the payload, and carries the others; when it fails, what stands for that is sent in their place.
//!
//! Decided here:
//!
//! - The ack and the next step are one record, so each step is sent exactly once. The step has the place of
//!   the acked message, unless that stays for a while.
//! - A step that is refused (its queue is closed or full, a quota is used up) must not be lost: the message
//!   that was acked is a dead letter then, with the rest of its chain, and goes on from there when it is
//!   redriven, or acked in the queue for dead letters.
//! - A message fails when it dies, for whatever reason, is cancelled, or expires. Purged and deleted it takes
//!   its chain along. What stands for its failure is sent as a consequence, when the message has left its
//!   place.
//! - A dead letter keeps its chain, unless the step for its failure was sent, or it has gone to another
//!   queue for another reason than a step that was refused.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::BlobRef;
use crate::item::{Chain as Given, SendOptions};
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::message::lookup::queue_not_found;
use crate::queue::record::chain::{chain_is_sound, read_headers, read_steps};
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::read_options;
use crate::queue::send::own::{Admitted, Beside, OwnSend, Room};
use crate::queue::state::chain::Chain;
use crate::queue::state::{FlowSlot, MessageSlot};
use crate::store::slot::Slot;

/// The next step of a chain: admitted, with an id and a place, and not yet sent.
pub(crate) struct NextStep {
    /// All that the acked message carried.
    chain: Chain,
    blob: BlobRef,
    correlation_id: Box<[u8]>,
    admitted: Admitted,
}

impl QueueModule {
    /// Refuses steps that could never be sent, before anything is done.
    #[cold]
    pub(crate) fn admit_chain(
        &self,
        namespace_slot: NamespaceSlot,
        laid: &[u8],
        core: &Core,
    ) -> Result<(), Error> {
        if !chain_is_sound(laid) {
            return Err(Error::Internal { reason: "the steps of a send record cannot be read".into() });
        }
        for step in read_steps(&laid[1..]) {
            let options = self.admit_item(namespace_slot, &step.item, core)?.unwrap_or_default();
            let alone = options.unique.is_none() && options.depends_on.is_none();
            if !alone || options.chain != Given::None {
                return Err(Error::Internal { reason: "a step that cannot belong to a chain".into() });
            }
            crate::rules::name_rule("queue", step.queue).map_err(crate::core::internal)?;
            if !core.limits.auto_create && self.find_queue(namespace_slot, step.queue).is_none() {
                return Err(queue_not_found(step.queue));
            }
        }
        Ok(())
    }

    /// A message that is being sent carries the steps in its record.
    #[cold]
    pub(crate) fn enter_chain(&mut self, slot: MessageSlot, laid: &[u8], core: &Core) {
        let chain = Chain::new(laid, core.applied_index, self.flows.next_blob);
        self.flows.next_blob += chain.blobs().count() as u32;
        self.attach_chain(slot, chain);
    }

    pub(crate) fn attach_chain(&mut self, slot: MessageSlot, chain: Chain) {
        if chain.is_empty() {
            return;
        }
        let flow = self.enter_flow(slot);
        let chain = self.flows.chains.insert(chain);
        self.flows.slots.get_mut(flow).chain = chain;
    }

    /// A message is not sent, being the duplicate of another one; nor are its steps.
    pub(crate) fn skip_chain(&mut self, item: &SendItemRecord<'_>, core: &mut Core, out: &mut Outcome) {
        let Some(SendOptions { chain: Given::Laid(laid), .. }) = item.options.and_then(read_options) else {
            return;
        };
        let chain = Chain::new(laid, core.applied_index, self.flows.next_blob);
        self.flows.next_blob += chain.blobs().count() as u32;
        chain.blobs().for_each(|blob| core.release_blob(blob, out));
    }

    /// True if the result of a message would be the payload of its next step.
    pub(crate) fn hands_on_result(&self, slot: MessageSlot) -> bool {
        let chain = self.flow_of(slot).map_or(Slot::NIL, |flow| self.flows.slots.get(flow).chain);
        chain != Slot::NIL && self.flows.chains.get(chain).next().is_some_and(|(_, own, _)| own.is_none())
    }

    /// Admits the next step of an acked message's chain; `None`: it has none. The message leaves its state,
    /// and its place counts as free for the step unless it `stays` for a while. `result`: the payload of a
    /// step without one of its own.
    ///
    /// # Errors
    /// Why the step is refused. The message keeps its chain, and is in no state.
    #[cold]
    pub(crate) fn take_next_step(
        &mut self,
        slot: MessageSlot,
        stays: bool,
        result: Option<BlobRef>,
        core: &mut Core,
    ) -> Result<Option<NextStep>, Error> {
        let Some(flow) = self.flow_of(slot) else { return Ok(None) };
        let Some(chain) = self.take_steps(flow, |chain| !chain.steps.is_empty()) else { return Ok(None) };
        self.leave(slot);
        self.messages.get_mut(slot).state = None;
        match self.admit_next_step(slot, stays, result, &chain, core) {
            Ok((admitted, blob)) => {
                let correlation_id = self.correlation_id_of(slot, core);
                Ok(Some(NextStep { chain, blob, correlation_id, admitted }))
            }
            Err(error) => {
                self.restore_steps(slot, &chain);
                Err(error)
            }
        }
    }

    fn admit_next_step(
        &mut self,
        slot: MessageSlot,
        stays: bool,
        result: Option<BlobRef>,
        chain: &Chain,
        core: &mut Core,
    ) -> Result<(Admitted, BlobRef), Error> {
        let Some((step, own, _)) = chain.next() else {
            return Err(Error::Internal { reason: "the steps of a message cannot be read".into() });
        };
        let handed = if own.is_none() { result } else { None };
        let blob = own.or(handed).unwrap_or(BlobRef::EMPTY);
        let message = self.messages.get(slot);
        let (messages, bytes) = if stays { (0, 0) } else { (1, u64::from(message.blob_len)) };
        let namespace_slot = self.queues.get(message.queue).namespace;
        let send = OwnSend { queue: step.queue, blob, item: step.item, correlation_id: &[] };
        let place = core.namespaces.get_mut(namespace_slot);
        (place.messages, place.bytes) = (place.messages - messages, place.bytes - bytes);
        let admitted = self.admit_own(namespace_slot, &send, Room::Needed, 1 - messages, core);
        let place = core.namespaces.get_mut(namespace_slot);
        (place.messages, place.bytes) = (place.messages + messages, place.bytes + bytes);
        let admitted = admitted?;
        if own.is_none() {
            core.share_blob(blob);
        }
        Ok((admitted, blob))
    }

    /// Sends an admitted step; the acked message has left its place before.
    #[cold]
    pub(crate) fn send_next_step(&mut self, next: NextStep, core: &mut Core, out: &mut Outcome) {
        let NextStep { chain, blob, correlation_id, admitted } = next;
        let Some((step, _, rest)) = chain.next() else { return };
        let send = OwnSend { queue: step.queue, blob, item: step.item, correlation_id: &correlation_id };
        self.place_own(admitted, &send, Some(Beside { chain: rest, origin: None }), core, out);
    }

    /// The correlation id of a message's reply and of the steps that follow it: its own, or its id as text.
    pub(crate) fn correlation_id_of(&self, slot: MessageSlot, core: &Core) -> Box<[u8]> {
        let asked = self.extras.results(self.messages.get(slot).extras);
        match asked.map(|asked| &*asked.correlation_id) {
            None | Some([]) => self.id_of_slot(slot, core).to_text().into(),
            Some(given) => given.into(),
        }
    }

    /// Takes the steps out of a flow's chain; `None`: there is no chain, or it is not `wanted`. The message's
    /// own headers stay, for a redrive.
    pub(crate) fn take_steps(&mut self, flow: FlowSlot, wanted: impl Fn(&Chain) -> bool) -> Option<Chain> {
        let slot = self.flows.slots.get(flow).chain;
        if slot == Slot::NIL || !wanted(self.flows.chains.get(slot)) {
            return None;
        }
        let taken = self.flows.chains.get_mut(slot).take_steps();
        if self.flows.chains.get(slot).is_empty() {
            self.flows.slots.get_mut(flow).chain = Slot::NIL;
            self.flows.chains.remove(slot);
        }
        Some(taken)
    }

    /// Gives a message back the steps that [`QueueModule::take_steps`] took; false, and nothing is changed,
    /// if it carries other steps by now.
    pub(crate) fn restore_steps(&mut self, slot: MessageSlot, steps: &Chain) -> bool {
        let flow = self.enter_flow(slot);
        let known = self.flows.slots.get(flow).chain;
        if known == Slot::NIL {
            self.attach_chain(slot, steps.clone());
            return true;
        }
        self.flows.chains.get_mut(known).give_back_steps(steps)
    }

    /// Removes the steps of a message, which are not sent any more. Its own headers stay.
    pub(crate) fn shed_chain(&mut self, flow: FlowSlot, core: &mut Core, out: &mut Outcome) {
        if let Some(steps) = self.take_steps(flow, |_| true) {
            steps.blobs().for_each(|blob| core.release_blob(blob, out));
        }
    }

    /// A message is gone, and what it carries with it.
    pub(crate) fn drop_chain(&mut self, flow: FlowSlot, core: &mut Core, out: &mut Outcome) {
        let chain = std::mem::replace(&mut self.flows.slots.get_mut(flow).chain, Slot::NIL);
        if chain != Slot::NIL {
            self.flows.chains.remove(chain).blobs().for_each(|blob| core.release_blob(blob, out));
        }
    }

    /// Headers of a message beside those in its blob.
    pub(crate) fn headers_of_step(&self, flow: FlowSlot) -> Vec<(Box<str>, Box<str>)> {
        let chain = if flow == Slot::NIL { Slot::NIL } else { self.flows.slots.get(flow).chain };
        if chain == Slot::NIL {
            return Vec::new();
        }
        let headers = read_headers(&self.flows.chains.get(chain).headers);
        headers.map(|(name, value)| (name.into(), value.into())).collect()
    }
}
