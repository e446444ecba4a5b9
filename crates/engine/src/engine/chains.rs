//! Chains: a message carries the steps that follow it. When it is acked, the first of them is sent, with its result as the
//! payload, and carries the others; when it fails, what stands for that is sent in their place.
//!
//! Decided here:
//!
//! - The ack and the next step are one record, so each step is sent exactly once.
//! - A step that is refused (its queue is closed or full, a quota is used up) must not be lost: the message that was acked
//!   is a dead letter then, with the rest of its chain, and goes on from there when it is redriven.
//! - A message fails when it dies, for whatever reason, is cancelled, or expires. Purged and deleted it takes its chain along.
//! - A dead letter keeps its chain, unless the step for its failure was sent, or it has gone to another queue.

use super::Engine;
use super::lookup::queue_not_found;
use super::own_sends::{Beside, OwnSend};
use crate::chain::Chain as Given;
use crate::error::Error;
use crate::id::BlobRef;
use crate::options::SendOptions;
use crate::outcome::Outcome;
use crate::record::{SendItemRecord, StepRecord, chain_is_sound, read_headers, read_options, read_steps};
use crate::state::chains::Chain;
use crate::state::message::Reason;
use crate::state::origin::Origin;
use crate::store::NIL;

impl Engine {
    /// Refuses steps that could never be sent, before anything is done.
    #[cold]
    pub(super) fn admit_chain(&self, namespace_slot: u32, laid: &[u8]) -> Result<(), Error> {
        if !chain_is_sound(laid) {
            return Err(Error::Internal { reason: "the steps of a send record cannot be read".into() });
        }
        for step in read_steps(&laid[1..]) {
            let options = self.admit_item(namespace_slot, &step.item)?.unwrap_or_default();
            let alone = options.unique.is_none() && options.depends_on.is_none();
            if !alone || options.chain != Given::None {
                return Err(Error::Internal { reason: "a step that cannot belong to a chain".into() });
            }
            crate::record::name_rule("queue", step.queue).map_err(super::internal)?;
            if !self.limits.auto_create && self.find_queue(namespace_slot, step.queue).is_none() {
                return Err(queue_not_found(step.queue));
            }
        }
        Ok(())
    }

    /// A message that is being sent carries the steps in its record.
    #[cold]
    pub(super) fn enter_chain(&mut self, slot: u32, laid: &[u8]) {
        let chain = Chain::new(laid, self.applied_index, self.flows.next_blob);
        self.flows.next_blob += chain.blobs().count() as u32;
        self.attach_chain(slot, chain);
    }

    pub(super) fn attach_chain(&mut self, slot: u32, chain: Chain) {
        if chain.is_empty() {
            return;
        }
        let flow = self.enter_flow(slot);
        let chain = self.flows.chains.insert(chain);
        self.flows.slots.get_mut(flow).chain = chain;
    }

    /// A message is not sent, being the duplicate of another one; nor are its steps.
    pub(super) fn skip_chain(&mut self, item: &SendItemRecord<'_>, out: &mut Outcome) {
        let Some(SendOptions { chain: Given::Laid(laid), .. }) = item.options.and_then(read_options) else {
            return;
        };
        let chain = Chain::new(laid, self.applied_index, self.flows.next_blob);
        self.flows.next_blob += chain.blobs().count() as u32;
        chain.blobs().for_each(|blob| self.release_blob(blob, out));
    }

    /// A message is acked: the next step of its chain, if there is one, is sent, and has its place unless it stays for a
    /// while. False if the step is refused; then the message is dead.
    #[cold]
    pub(super) fn go_on(
        &mut self,
        slot: u32,
        stays: bool,
        result: Option<BlobRef>,
        out: &mut Outcome,
    ) -> bool {
        let Some(flow) = self.flow_of(slot).filter(|&flow| self.flows.slots.get(flow).chain != NIL) else {
            return true;
        };
        let chain = self.flows.chains.get(self.flows.slots.get(flow).chain).clone();
        let Some((step, own, rest)) = chain.next() else { return true };
        self.leave(slot);
        let message = self.messages.get_mut(slot);
        message.state = None;
        let (messages, bytes) = if stays { (0, 0) } else { (1, u64::from(message.blob_len)) };
        let namespace = self.queues.get(message.queue).namespace;
        let place = self.namespaces.get_mut(namespace);
        (place.messages, place.bytes) = (place.messages - messages, place.bytes - bytes);
        let beside = Beside { chain: rest, origin: None };
        let handed = if own.is_none() { result } else { None };
        let sent = self.send_step(slot, &step, own.or(handed), beside, out);
        let place = self.namespaces.get_mut(namespace);
        (place.messages, place.bytes) = (place.messages + messages, place.bytes + bytes);
        if sent {
            self.take_chain(flow);
            return true;
        }
        if let Some(result) = result {
            self.release_blob(result, out);
        }
        self.make_dead(slot, Reason::NextStepRefused, out);
        false
    }

    /// A message fails: what stands for that in its chain is sent, and the rest of the chain is no more.
    #[cold]
    pub(super) fn fail_chain(&mut self, slot: u32, reason: Reason, out: &mut Outcome) {
        let Some(flow) = self.flow_of(slot).filter(|&flow| self.flows.slots.get(flow).chain != NIL) else {
            return;
        };
        let chain = self.flows.chains.get(self.flows.slots.get(flow).chain).clone();
        let Some((step, own, rest)) = chain.failure() else { return };
        let message = self.messages.get(slot);
        let (queue_slot, blob) = (message.queue, message.blob());
        let origin = Origin::new(self.queues.get(queue_slot).name.clone(), reason, self.now_us);
        let beside = Beside { chain: rest, origin: Some(origin) };
        if !self.send_step(slot, &step, own.or(Some(blob)), beside, out) {
            self.queues.get_mut(queue_slot).counters.replies_lost += 1;
            self.totals.replies_lost += 1;
            return;
        }
        self.spend_chain(flow);
        let sent = own.unwrap_or(BlobRef::EMPTY);
        chain.blobs().filter(|blob| *blob != sent).for_each(|blob| self.release_blob(blob, out));
    }

    /// Sends a step of a message's chain; false if it is refused. A blob which is not the step's own is shared with it.
    fn send_step(
        &mut self,
        slot: u32,
        step: &StepRecord<'_>,
        blob: Option<BlobRef>,
        beside: Beside,
        out: &mut Outcome,
    ) -> bool {
        let blob = blob.unwrap_or(BlobRef::EMPTY);
        if !step.own_payload {
            self.share_blob(blob);
        }
        let id = self.id_of_slot(slot);
        let asked = self.extras.results(self.messages.get(slot).extras);
        let correlation_id = asked.map(|asked| asked.correlation_id.clone()).unwrap_or_default();
        let text = id.to_text();
        let correlation_id = if correlation_id.is_empty() { &text[..] } else { &correlation_id[..] };
        let send = OwnSend { queue: step.queue, blob, item: step.item, correlation_id };
        let sent = self.send_of_engine(id.namespace, &send, Some(beside), out).is_ok();
        if !sent && !step.own_payload {
            self.release_blob(blob, out);
        }
        sent
    }

    /// A message no longer carries anything; returns what it was.
    fn take_chain(&mut self, flow: u32) -> Option<Chain> {
        let chain = std::mem::replace(&mut self.flows.slots.get_mut(flow).chain, NIL);
        (chain != NIL).then(|| self.flows.chains.remove(chain))
    }

    /// What a message carries has been sent. Its own headers stay: it may be redriven.
    fn spend_chain(&mut self, flow: u32) {
        let slot = self.flows.slots.get(flow).chain;
        if self.flows.chains.get(slot).headers.is_empty() {
            self.take_chain(flow);
        } else {
            let chain = self.flows.chains.get_mut(slot);
            (chain.steps, chain.on_failure) = Default::default();
        }
    }

    /// What a message carries is not sent any more. Its own headers stay.
    pub(super) fn shed_chain(&mut self, flow: u32, out: &mut Outcome) {
        let slot = self.flows.slots.get(flow).chain;
        if slot == NIL {
            return;
        }
        let blobs: Vec<BlobRef> = self.flows.chains.get(slot).blobs().collect();
        blobs.into_iter().for_each(|blob| self.release_blob(blob, out));
        self.spend_chain(flow);
    }

    /// A message is gone, and what it carries with it.
    pub(super) fn drop_chain(&mut self, flow: u32, out: &mut Outcome) {
        if let Some(chain) = self.take_chain(flow) {
            chain.blobs().for_each(|blob| self.release_blob(blob, out));
        }
    }

    /// Headers of a message beside those in its blob.
    pub(super) fn headers_of_step(&self, flow: u32) -> Vec<(Box<str>, Box<str>)> {
        let chain = if flow == NIL { NIL } else { self.flows.slots.get(flow).chain };
        if chain == NIL {
            return Vec::new();
        }
        let headers = read_headers(&self.flows.chains.get(chain).headers);
        headers.map(|(name, value)| (name.into(), value.into())).collect()
    }
}
