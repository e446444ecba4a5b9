//! State of chains: the steps that messages carry.

use crate::id::BlobRef;
use crate::queue::record::chain::{StepRecord, read_step, read_steps, split_chain};
use crate::queue::state::ChainSlot;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// The steps and headers that one message carries, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The steps that follow it, as they lay in the record that brought them.
    pub(crate) steps: Box<[u8]>,
    /// The one that follows its failure; empty: none.
    pub(crate) on_failure: Box<[u8]>,
    /// Its own headers beside those in its blob, laid out like a step's.
    pub(crate) headers: Box<[u8]>,
    /// The record with the payloads of the steps, the place of the next step's, and that of the one for a
    /// failure.
    index: u64,
    next_item: u32,
    failure_item: u32,
    next_vacant: Option<ChainSlot>,
}

/// The chains of all messages that carry one.
pub(crate) type AllChains = Slab<Chain, 1024>;

impl Chain {
    /// The steps of a message as they lie in the record of this index, which has their payloads from `item`
    /// on.
    pub(crate) fn new(laid: &[u8], index: u64, item: u32) -> Chain {
        let (on_failure, steps) = split_chain(laid).unwrap_or_default();
        let before = read_steps(on_failure).filter(|step| step.own_payload).count() as u32;
        Chain {
            steps: steps.into(),
            on_failure: on_failure.into(),
            index,
            next_item: item + before,
            failure_item: item,
            next_vacant: None,
            ..Chain::vacant(Slot::NIL)
        }
    }

    /// The step that follows when the message is done, the payload that is its own, and what it will carry
    /// itself.
    pub(crate) fn next(&self) -> Option<(StepRecord<'_>, Option<BlobRef>, Chain)> {
        let mut reader = Reader::new(&self.steps);
        let step = read_step(&mut reader)?;
        let own = self.own_payload(&step, self.next_item);
        let next_item = self.next_item + u32::from(own.is_some());
        let chain = Chain {
            steps: reader.rest().into(),
            on_failure: self.on_failure.clone(),
            headers: step.headers.into(),
            index: self.index,
            next_item,
            failure_item: self.failure_item,
            next_vacant: None,
        };
        Some((step, own, chain))
    }

    /// The same of what follows when it fails.
    pub(crate) fn failure(&self) -> Option<(StepRecord<'_>, Option<BlobRef>, Chain)> {
        let step = read_steps(&self.on_failure).next()?;
        let own = self.own_payload(&step, self.failure_item);
        Some((
            step,
            own,
            Chain { headers: step.headers.into(), next_vacant: None, ..Chain::vacant(Slot::NIL) },
        ))
    }

    fn own_payload(&self, step: &StepRecord<'_>, item: u32) -> Option<BlobRef> {
        step.own_payload.then_some(BlobRef { index: self.index, item, len: step.item.blob_len })
    }

    /// The payloads of the steps.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let own = |laid, first: u32| {
            let with_payload = read_steps(laid).filter(|step| step.own_payload);
            let index = self.index;
            (first..).zip(with_payload).map(move |(item, step)| BlobRef {
                index,
                item,
                len: step.item.blob_len,
            })
        };
        own(&self.on_failure, self.failure_item).chain(own(&self.steps, self.next_item))
    }

    /// Takes out all steps; what is left are the message's own headers.
    pub(crate) fn take_steps(&mut self) -> Chain {
        let (steps, on_failure) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.on_failure));
        Chain { steps, on_failure, headers: Box::default(), ..*self }
    }

    /// Puts back steps that were taken out; false, and nothing is changed, if there are others by now.
    pub(crate) fn give_back_steps(&mut self, taken: &Chain) -> bool {
        if !self.steps.is_empty() || !self.on_failure.is_empty() {
            return false;
        }
        *self = Chain { headers: std::mem::take(&mut self.headers), ..taken.clone() };
        true
    }

    /// True if it carries nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.on_failure.is_empty() && self.headers.is_empty()
    }
}

impl PlainItem for Chain {
    const BLOCK: usize = 16;

    fn vacant(next: ChainSlot) -> Self {
        Chain {
            steps: Box::default(),
            on_failure: Box::default(),
            headers: Box::default(),
            index: 0,
            next_item: 0,
            failure_item: 0,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<ChainSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        [&self.steps, &self.on_failure, &self.headers].into_iter().for_each(|bytes| out.bytes16(bytes));
        out.u64(self.index);
        out.u32(self.next_item);
        out.u32(self.failure_item);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Chain {
            steps: reader.bytes16()?.into(),
            on_failure: reader.bytes16()?.into(),
            headers: reader.bytes16()?.into(),
            index: reader.u64()?,
            next_item: reader.u32()?,
            failure_item: reader.u32()?,
            next_vacant: None,
        })
    }
}
