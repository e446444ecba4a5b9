//! Draws the next operation.

use std::collections::VecDeque;

use sluice_engine::command::{Deliver, Settlement};
use sluice_engine::id::{MessageId, NamespaceId, Receipt};
use sluice_engine::item::SendOptions;
use sluice_engine::settings::{Backoff, BackoffKind};

use super::attachments::AttachmentsKnown;
use super::documents::DocumentsKnown;
use super::flows::Relations;
use super::keys::KEYED_QUEUES;
use super::locks::LocksKnown;
use super::names::QUEUES;
use super::seen::Seen;
use super::{Generator, Wanted};
use super::{Item, Op};
use crate::rng::Rng;

/// Number of used receipts that are kept in order to use them again, too late.
const SPENT_MAX: usize = 64;
/// Number of sends with an idempotency key that may be repeated.
const KEYED_MAX: usize = 32;

/// Draws one kind of operation.
type Draw = fn(&mut Generator, &Seen<'_>) -> Op;

impl Generator {
    /// Clients that hold nothing; those of `others` are the draws about locks, documents, transactions,
    /// indexes and attachments.
    pub fn new(shard: u32, mixes: bool, mut rng: Rng, others: [Rng; 5]) -> Generator {
        let [of_locks, of_documents, of_transactions, of_indexes, of_attachments] = others;
        let mut of_searches = of_indexes.clone().fork();
        let payload_bytes_max = *rng.pick(&[16, 64, 400, 3_000]);
        let fair_only = rng.chance(1, 3);
        let relates = !fair_only && rng.chance(1, 2);
        let bounded = !relates && rng.chance(2, 3);
        let attaches = rng.chance(1, 2);
        Generator {
            shard,
            rng,
            held: Vec::new(),
            spent: VecDeque::new(),
            keyed: VecDeque::new(),
            payloads: 0,
            payload_bytes_max,
            fair_only: fair_only && !mixes,
            relates: relates || mixes,
            bounded: bounded || mixes,
            attaches,
            mixes,
            locks: Some(of_locks).and_then(|mut rng| rng.chance(1, 2).then(|| LocksKnown::new(rng))),
            documents: Some(of_documents)
                .and_then(|mut rng| rng.chance(1, 2).then(|| DocumentsKnown::new(rng, of_indexes))),
            // The model of other runs knows no bytes of attachments.
            attachments: Some(of_attachments)
                .and_then(|mut rng| (mixes && rng.chance(2, 3)).then(|| AttachmentsKnown::new(rng))),
            transactions: Some(of_transactions).and_then(|mut rng| rng.chance(1, 2).then_some(rng)),
            searches: of_searches.chance(1, 2).then_some(of_searches),
        }
    }

    /// Notes a delivery to a client.
    pub fn delivered(&mut self, receipt: Receipt) {
        self.held.push(receipt);
    }

    /// True when people change messages in this run.
    pub fn changes(&self) -> bool {
        self.mixes || !self.relates
    }

    /// Number of deliveries that clients hold.
    pub fn holds(&self) -> usize {
        self.held.len()
    }

    /// Takes all receipts that clients hold.
    pub fn take_held(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.held)
    }

    /// The next request of a client.
    pub fn op(&mut self, seen: &Seen<'_>) -> Op {
        if let Some(op) = self.lock(seen) {
            return op;
        }
        if let Some(op) = self.document(seen) {
            return op;
        }
        if let Some(op) = self.attachment(seen) {
            return op;
        }
        if let Some(op) = self.transaction(seen) {
            return op;
        }
        if let Some(op) = self.index(seen).or_else(|| self.search(seen)) {
            return op;
        }
        let settle = 2 + self.held.len().min(30) as u64;
        let mut kinds: Vec<(u64, Draw)> = vec![
            (20, Generator::send),
            (2, Generator::repeat),
            (settle, Generator::settle),
            (3, Generator::extend),
            (3, Generator::report),
            (2, Generator::queue_set),
            (1, Generator::drop_messages),
            (3, Generator::redrive),
            (1, Generator::delete_dead),
            (1, Generator::namespace),
            (2, Generator::limit),
            (2, Generator::schedule),
        ];
        if self.relates {
            kinds.push((2, Generator::group));
        }
        if self.changes() {
            kinds.extend([
                (5, Generator::change as Draw),
                (2, Generator::rule_queue),
                (1, Generator::queue_defaults),
                (2, Generator::redrive_rate),
            ]);
        }
        if self.attaches {
            kinds.push((3, Generator::consumer));
        }
        self.rng.weighted(&kinds)(self, seen)
    }

    /// The next pull.
    pub fn pull(&mut self, seen: &Seen<'_>) -> Wanted {
        let namespace = self.a_namespace(seen);
        let weighted = self.rng.chance(1, 4);
        let mut queues = Vec::new();
        for queue in QUEUES {
            if queues.is_empty() || self.rng.chance(1, 3) {
                let weight = if weighted { self.rng.between(1, 4) as u16 } else { 0 };
                queues.push((Box::from(queue), weight));
            }
        }
        let first = self.rng.index(queues.len());
        queues.rotate_left(first);
        if self.rng.chance(1, 3) {
            queues = vec![(Box::from(*self.rng.pick(&QUEUES)), 0)];
        }
        Wanted {
            namespace,
            queues,
            max_messages: self.rng.weighted(&[(4, 1), (3, 5), (1, 100)]),
            max_bytes: self.rng.weighted(&[(6, 16 << 20), (1, 1_000), (1, 1)]),
            lease_ms: self.rng.weighted(&[(4, 0), (2, 50), (2, 1_000), (1, 60_000)]),
            wait_us: self.rng.weighted(&[(3, 0), (2, 200_000), (1, 20_000_000)]),
        }
    }

    pub(super) fn a_namespace(&mut self, seen: &Seen<'_>) -> NamespaceId {
        let known = seen.namespaces(self.shard);
        if self.shard == 0 && self.rng.chance(3, 5) {
            NamespaceId::DEFAULT
        } else if known.is_empty() || self.rng.chance(1, 40) {
            NamespaceId(77)
        } else {
            *self.rng.pick(&known)
        }
    }

    pub(super) fn a_queue(&mut self) -> String {
        match self.rng.below(60) {
            0 => "not a name".to_owned(),
            1 => "$reserved".to_owned(),
            _ => (*self.rng.pick(&QUEUES)).to_owned(),
        }
    }

    fn send(&mut self, seen: &Seen<'_>) -> Op {
        let count = self.rng.weighted(&[(12, 1), (4, 3), (2, 20), (1, 150)]);
        let queue = self.a_queue();
        let namespace = self.a_namespace(seen);
        let mut items: Vec<Item> = (0..count).map(|_| self.item(&queue)).collect();
        if self.relates {
            self.relate(&mut items, &queue, namespace, seen);
        }
        items.iter_mut().for_each(|item| self.bound_item(item));
        let keyed = self.rng.chance(1, 4);
        let key = if keyed { format!("key-{}", self.rng.below(30)).into_bytes() } else { Vec::new() };
        let digest = self.rng.bits();
        let op = Op::Send { namespace, queue, key, digest, items };
        if keyed {
            self.keyed.push_back(op.clone());
            if self.keyed.len() > KEYED_MAX {
                self.keyed.pop_front();
            }
        }
        op
    }

    /// A message for this queue.
    pub(super) fn item(&mut self, queue: &str) -> Item {
        self.payloads += 1;
        let mut payload = self.payloads.to_le_bytes().to_vec();
        let len = 8 + self.rng.below(self.payload_bytes_max) as usize;
        payload.resize(len, self.payloads as u8);
        let headed = self.rng.chance(1, 5);
        Item {
            payload,
            content_type: if headed { "text/plain" } else { "" },
            headers: if headed { vec![("traceparent", "00-aa-bb-01")] } else { Vec::new() },
            tags: if self.rng.chance(1, 6) { self.tags() } else { Vec::new() },
            priority: if self.rng.chance(1, 100) { 10 } else { self.rng.weighted(&[(5, 0), (2, 1), (1, 9)]) },
            deliver: self.rng.weighted(&[
                (8, Deliver::Now),
                (2, Deliver::AfterMs(300)),
                (1, Deliver::AfterMs(5_000)),
                (1, Deliver::AtUs(1)),
            ]),
            max_attempts: self.rng.weighted(&[(4, 0), (1, 1), (1, 2)]),
            backoff: self.rng.chance(1, 8).then(|| self.backoff()),
            options: self.options(queue),
            relations: Relations::default(),
        }
    }

    /// Optional fields: each feature adds its own to some messages.
    fn options(&mut self, queue: &str) -> SendOptions<'static> {
        let mut options = SendOptions::default();
        if KEYED_QUEUES.contains(&queue) {
            self.give_keys(&mut options);
        }
        self.ask_for_result(&mut options);
        self.ask_for_hold(&mut options);
        options
    }

    pub(super) fn backoff(&mut self) -> Backoff {
        let kinds = [BackoffKind::None, BackoffKind::Fixed, BackoffKind::Linear, BackoffKind::Exponential];
        Backoff {
            kind: *self.rng.pick(&kinds),
            base_ms: self.rng.between(1, 500),
            cap_ms: self.rng.between(500, 5_000),
            jitter_percent: self.rng.below(101) as u8,
        }
    }

    /// A repeated send with its old key: the same, or (by mistake) with another digest.
    fn repeat(&mut self, seen: &Seen<'_>) -> Op {
        if self.keyed.is_empty() {
            return self.send(seen);
        }
        let at = self.rng.index(self.keyed.len());
        let mut op = self.keyed[at].clone();
        // A number lost with an unsynced end of the log may belong to a namespace of another shard by now.
        if !matches!(&op, Op::Send { namespace, .. } if seen.namespaces(self.shard).contains(namespace)) {
            return self.send(seen);
        }
        if self.rng.chance(1, 5)
            && let Op::Send { digest, .. } = &mut op
        {
            *digest ^= 1;
        }
        op
    }

    fn settle(&mut self, seen: &Seen<'_>) -> Op {
        let count = if self.rng.chance(1, 3) { self.rng.between(2, 12) } else { 1 };
        let mut items = Vec::new();
        for _ in 0..count {
            let receipt = self.a_receipt(true);
            items.push(self.settled(receipt));
        }
        if self.rng.chance(1, 20) {
            items.push(items[0].clone());
        }
        Op::Settle { namespace: self.namespace_of(items[0].receipt, seen), items }
    }

    pub(super) fn namespace_of(&mut self, receipt: Receipt, seen: &Seen<'_>) -> NamespaceId {
        if self.rng.chance(1, 50) { self.a_namespace(seen) } else { receipt.id.namespace }
    }

    pub(super) fn settlement(&mut self) -> Settlement {
        self.rng.weighted(&[
            (12, Settlement::Ack),
            (3, Settlement::Nack { delay_ms: None }),
            (2, Settlement::Nack { delay_ms: Some(0) }),
            (1, Settlement::Nack { delay_ms: Some(700) }),
            (2, Settlement::Release { delay_ms: 0 }),
            (1, Settlement::Release { delay_ms: 400 }),
            (1, Settlement::GiveBack { delay_ms: 0 }),
            (1, Settlement::Reject),
        ])
    }

    /// A receipt: a held one, an old one, or a forged one. With `spend`, a held one is no longer held.
    pub(super) fn a_receipt(&mut self, spend: bool) -> Receipt {
        let old = self.spent.len();
        if !self.held.is_empty() && (old == 0 || !self.rng.chance(1, 8)) {
            let at = self.rng.index(self.held.len());
            if !spend || self.rng.chance(1, 30) {
                return self.held[at];
            }
            let receipt = self.held.swap_remove(at);
            self.spent.push_back(receipt);
            if self.spent.len() > SPENT_MAX {
                self.spent.pop_front();
            }
            return receipt;
        }
        let mut receipt = if old > 0 { self.spent[self.rng.index(old)] } else { forged() };
        if self.rng.chance(1, 4) {
            receipt.token = receipt.token.wrapping_add(self.rng.between(1, 3)).wrapping_sub(2);
        }
        if self.rng.chance(1, 10) {
            receipt.id.sequence += self.rng.between(1, 3);
        }
        receipt
    }

    fn extend(&mut self, seen: &Seen<'_>) -> Op {
        let items: Vec<(Receipt, u64)> = (0..self.rng.between(1, 3))
            .map(|_| (self.a_receipt(false), self.rng.weighted(&[(2, 0), (2, 100), (1, 10_000)])))
            .collect();
        Op::Extend { namespace: self.namespace_of(items[0].0, seen), items }
    }
}

/// A receipt that nobody was ever given.
fn forged() -> Receipt {
    Receipt { id: MessageId { namespace: NamespaceId::DEFAULT, sequence: 12_345 }, token: 67_890, tag: 13 }
}
