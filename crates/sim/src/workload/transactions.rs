//! Random transactions: operations of the other kinds, in one namespace.

use sluice_engine::command::{Command, Transaction};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::NamespaceId;
use sluice_engine::item::SendOptions;
use sluice_engine::limits::Limits;
use sluice_engine::locks::LockMode;

use super::flows::Relations;
use super::names::QUEUES;
use super::seen::Seen;
use super::{AttachmentOp, DocumentOp, Generator, Item, Lend, LockOp, Op, SentBlob};
use crate::rng::Rng;

/// Operations of one transaction at most.
const OPERATIONS_MAX: u64 = 5;
const KEYS: [&str; 4] = ["a", "b", "orders/1", "orders/2"];

/// Operations that are done together.
#[derive(Clone, PartialEq, Debug)]
pub struct TransactionOp {
    /// Namespace of all of them.
    pub namespace: NamespaceId,
    /// Idempotency key; empty: none.
    pub key: Vec<u8>,
    /// Digest of the request.
    pub digest: u64,
    /// Sends and settlements of one item each, and operations on documents, attachments and locks.
    pub operations: Vec<Op>,
}

impl TransactionOp {
    /// The same without texts and results; `None`: it has none, or brings what stays.
    pub(super) fn without_texts(&self) -> Option<TransactionOp> {
        let brings_nothing = |op: &Op| {
            matches!(
                op,
                Op::Settle { .. }
                    | Op::Document(DocumentOp::Delete { .. } | DocumentOp::Check { .. })
                    | Op::Attachment(AttachmentOp::Delete { .. })
                    | Op::Lock(LockOp::Release { .. })
            )
        };
        let bare = |op: &Op| op.without_texts().unwrap_or_else(|| op.clone());
        let operations: Vec<Op> = self.operations.iter().map(bare).collect();
        let may = operations != self.operations && operations.iter().all(brings_nothing);
        may.then(|| TransactionOp { operations, key: self.key.clone(), ..*self })
    }
}

impl Lend for TransactionOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        lend_each(&self.operations, &[], &mut |operations| {
            f(&Command::Transaction(Transaction {
                namespace: self.namespace,
                idempotency_key: &self.key,
                request_digest: self.digest,
                operations,
            }));
        });
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        let is_send = |op: &&Op| matches!(op, Op::Send { .. });
        let sends = self.operations.iter().filter(is_send);
        let others = self.operations.iter().filter(|op| !is_send(op));
        sends.chain(others).flat_map(|op| (0..).map_while(|blob| op.blob(blob))).nth(number)
    }
}

/// Lends the commands of some operations, behind those that are lent already.
fn lend_each(rest: &[Op], lent: &[Command<'_>], f: &mut dyn FnMut(&[Command<'_>])) {
    let Some((op, rest)) = rest.split_first() else { return f(lent) };
    op.with(|command| {
        let mut lent = lent.to_vec();
        lent.push(command.clone());
        lend_each(rest, &lent, f);
    });
}

impl Generator {
    /// Draws a transaction, at times; only in runs that use them.
    pub(super) fn transaction(&mut self, seen: &Seen<'_>) -> Option<Op> {
        let shard = self.shard;
        let rng = self.transactions.as_mut()?;
        if !rng.chance(1, 10) {
            return None;
        }
        let known = seen.namespaces(shard);
        let namespace = match shard == 0 && rng.chance(4, 5) {
            true => NamespaceId::DEFAULT,
            false if known.is_empty() => NamespaceId(77),
            false => *rng.pick(&known),
        };
        let key = rng.pick(&["", "", "t1", "t2", "t3"]).as_bytes().to_vec();
        let (digest, count) = (rng.below(2), 1 + rng.below(OPERATIONS_MAX));
        let mut transaction = TransactionOp { namespace, key, digest, operations: Vec::new() };
        for _ in 0..count {
            let Some(operation) = self.operation(namespace) else { continue };
            transaction.operations.push(operation);
            let is_sound = |transaction: &TransactionOp| {
                let mut is_sound = false;
                transaction.lend(&mut |command| is_sound = command.check(&Limits::default()).is_ok());
                is_sound
            };
            // Most draws that name one thing twice are left out.
            if !is_sound(&transaction) {
                transaction.operations.pop();
            }
        }
        (!transaction.operations.is_empty()).then_some(Op::Transaction(transaction))
    }

    fn draws(&mut self) -> &mut Rng {
        self.transactions.as_mut().unwrap_or(&mut self.rng)
    }

    fn operation(&mut self, namespace: NamespaceId) -> Option<Op> {
        if let Some(op) = self.attachment_together(namespace) {
            return Some(op);
        }
        match self.draws().below(9) {
            0..=2 => {
                let queue = (*self.draws().pick(&QUEUES)).to_owned();
                let (key, digest) = (Vec::new(), 0);
                Some(Op::Send { namespace, queue, key, digest, items: vec![self.plain_item()] })
            }
            3..=5 => {
                let receipt = self.a_receipt(true);
                let items = vec![self.settled(receipt)];
                (receipt.id.namespace == namespace).then_some(Op::Settle { namespace, items })
            }
            6 => Some(Op::Document(self.document_of(namespace))),
            7 => {
                let held = self.grant_of(namespace)?;
                Some(Op::Lock(LockOp::Release { namespace, token: held.token }))
            }
            _ => {
                let rng = self.draws();
                let (key, ttl_ms) = (*rng.pick(&KEYS), *rng.pick(&[1, 500, 20_000]));
                let modes = [LockMode::Exclusive, LockMode::Shared, LockMode::Counting { holders: 2 }];
                let (keys, mode) = (vec![key], *rng.pick(&modes));
                Some(Op::Lock(LockOp::Acquire { namespace, keys, mode, ttl_ms, wait_ms: 0, request: [0; 2] }))
            }
        }
    }

    fn document_of(&mut self, namespace: NamespaceId) -> DocumentOp {
        let token = self.some_token();
        let rng = self.draws();
        let key = *rng.pick(&KEYS);
        let mut when = DocumentCondition::default();
        match rng.below(6) {
            0 => when.version = Some(rng.below(3)),
            1 => when.exists = true,
            2 => when.token = token,
            _ => {}
        }
        if when != DocumentCondition::default() && rng.chance(1, 3) {
            return DocumentOp::Check { namespace, key, when };
        }
        if rng.chance(1, 5) {
            return DocumentOp::Delete { namespace, key, when };
        }
        DocumentOp::Put {
            namespace,
            key,
            when,
            ttl_ms: *rng.pick(&[None, Some(0), Some(200)]),
            history: *rng.pick(&[None, Some(0), Some(2)]),
            request: 0,
            content: format!("together:{}", rng.bits()).into_bytes(),
            terms: Vec::new(),
        }
    }

    /// A message without anything that would make it wait.
    fn plain_item(&mut self) -> Item {
        self.payloads += 1;
        let mut payload = self.payloads.to_le_bytes().to_vec();
        payload.extend_from_slice(b"together");
        let rng = self.draws();
        Item {
            payload,
            content_type: "",
            headers: Vec::new(),
            tags: Vec::new(),
            priority: *rng.pick(&[0, 0, 1]),
            deliver: sluice_engine::command::Deliver::Now,
            max_attempts: 0,
            backoff: None,
            options: SendOptions::default(),
            relations: Relations::default(),
        }
    }
}
