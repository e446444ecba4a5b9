//! Decoding of records that the node makes by itself. Clients' requests are known without decoding. A second
//! decoder of the few others costs little and shares no mistake with the engine's.

use sluice_engine::command::{ScheduleFire, Settlement};
use sluice_engine::id::{BlobRef, ConsumerId, MessageId, NamespaceId, Receipt, ReceiptKey};
use sluice_engine::limits::Limits;
use sluice_engine::settings::{QueuePatch, Quotas};

use super::consumers::ConsumerOp;
use super::{NodeOp, Op, Settled};

const EPOCH: u8 = 1;
const SETTLE: u8 = 6;
const QUEUE_SET: u8 = 11;
const DETACH: u8 = 47;

/// The command in a record's body; `None`: not one that the node makes.
pub fn decode(body: &[u8], limits: &Limits) -> Option<Op> {
    let mut bytes = Bytes(body);
    let (kind, layout) = (bytes.u8()?, bytes.u8()?);
    let newest = if matches!(kind, EPOCH | SETTLE | QUEUE_SET | DETACH) { 2 } else { 1 };
    if layout != newest {
        return None;
    }
    let op = match kind {
        EPOCH => Op::Node(NodeOp::Epoch { number: bytes.u64()?, behaviour: bytes.u16()? }),
        // The limits that the simulator has set; comparing behaviour shows that they are stored right.
        2 => return Some(Op::Node(NodeOp::Configure(limits.clone()))),
        3 => Op::Node(NodeOp::Tick),
        5 => Op::Node(receive(&mut bytes)?),
        SETTLE => releases(&mut bytes)?,
        8 => namespace_followed(&mut bytes)?,
        9 => Op::NamespaceSet { namespace: NamespaceId(bytes.u32()?), quotas: bytes.quotas()? },
        10 => Op::NamespaceDelete { namespace: NamespaceId(bytes.u32()?), force: bytes.u8()? == 1 },
        QUEUE_SET => queue_created(&mut bytes)?,
        17 => Op::Node(NodeOp::ReceiptKey(ReceiptKey(bytes.take(16)?.try_into().ok()?))),
        16 => {
            let id = bytes.id()?;
            let blob = BlobRef { index: bytes.u64()?, item: bytes.u32()?, len: bytes.u32()? };
            Op::Node(NodeOp::HoldDamaged { id, blob })
        }
        DETACH => Op::Consumer(detached(&mut bytes)?),
        53 => Op::Node(NodeOp::Fire(fire(&mut bytes)?)),
        _ => return None,
    };
    bytes.0.is_empty().then_some(op)
}

fn receive(bytes: &mut Bytes<'_>) -> Option<NodeOp> {
    let namespace = NamespaceId(bytes.u32()?);
    let (max_messages, max_bytes, lease_ms) = (bytes.u32()?, bytes.u32()?, bytes.u64()?);
    let (count, consumer) = (bytes.u8()?, bytes.u8()?);
    bytes.take(usize::from(consumer))?;
    let mut queues = Vec::new();
    for _ in 0..count {
        let weight = bytes.u16()?;
        queues.push((bytes.name()?, weight));
    }
    Some(NodeOp::Receive { namespace, queues, max_messages, max_bytes, lease_ms })
}

/// A detachment by the node: of a consumer whose reader has gone or does not read; of all, before a stop.
fn detached(bytes: &mut Bytes<'_>) -> Option<ConsumerOp> {
    let (namespace, consumer) = (NamespaceId(bytes.u32()?), ConsumerId(bytes.u64()?));
    let (grace_ms, reached) = (bytes.u64()?, bytes.u64()?);
    Some(ConsumerOp::Detach { namespace, consumer, grace_ms, reached })
}

fn fire(bytes: &mut Bytes<'_>) -> Option<ScheduleFire> {
    let (number, instant_us) = (bytes.u64()?, bytes.u64()?);
    let send = bytes.u8()? == 1;
    Some(ScheduleFire { number, instant_us, send, next_at_us: bytes.u64()? })
}

/// A return by the node of what a caller that has gone was to get.
fn releases(bytes: &mut Bytes<'_>) -> Option<Op> {
    let namespace = NamespaceId(bytes.u32()?);
    let mut items = Vec::new();
    for _ in 0..bytes.u32()? {
        let receipt = Receipt { id: bytes.id()?, token: bytes.u64()?, tag: bytes.u64()? };
        let (how, error_len, delay_ms) = (bytes.u16()?, bytes.u16()?, bytes.u64()?);
        if (how, error_len) != (5, 0) {
            return None;
        }
        items.push(Settled::plain(receipt, Settlement::GiveBack { delay_ms }));
    }
    Some(Op::Settle { namespace, items })
}

/// The creation of a namespace on the shard on which shard 0 has placed it.
fn namespace_followed(bytes: &mut Bytes<'_>) -> Option<Op> {
    let (numbered, number) = (bytes.u8()?, NamespaceId(bytes.u32()?));
    let (name, shard) = (bytes.name()?, bytes.u32()?);
    let quotas = bytes.quotas()?;
    (numbered == 1).then_some(Op::NamespaceCreate { number: Some(number), name, shard, quotas })
}

/// The creation of a queue that a pull names.
fn queue_created(bytes: &mut Bytes<'_>) -> Option<Op> {
    let namespace = NamespaceId(bytes.u32()?);
    let queue = bytes.name()?;
    let (create, patched) = (bytes.u8()?, bytes.u8()?);
    let patch = QueuePatch::default();
    (create == 1 && patched == 0).then_some(Op::QueueSet { namespace, queue, patch, create: true })
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, len: usize) -> Option<u64> {
        Some(self.take(len)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.number(1)? as u8)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(self.number(2)? as u16)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(self.number(4)? as u32)
    }

    fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }

    fn id(&mut self) -> Option<MessageId> {
        Some(MessageId { namespace: NamespaceId(self.u32()?), sequence: self.u64()? })
    }

    fn quotas(&mut self) -> Option<Quotas> {
        Some(Quotas { queues: self.u64()?, messages: self.u64()?, bytes: self.u64()? })
    }

    fn name(&mut self) -> Option<String> {
        let len = self.u8()?;
        String::from_utf8(self.take(usize::from(len))?.to_vec()).ok()
    }
}
