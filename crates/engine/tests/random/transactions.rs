//! Transactions: what comes of one is what would have come of each of its operations alone, and nothing comes
//! of one that is refused; a repeat gets what the first one gave.

use std::collections::BTreeMap;

use sluice_engine::attachments::{AttachmentCommit, AttachmentDelete};
use sluice_engine::command::{
    Deliver, DocumentCheck, DocumentDelete, DocumentPut, LockAcquire, Send, SendItem, SettleItem, Settlement,
    Transaction,
};
use sluice_engine::id::NamespaceId;
use sluice_engine::locks::{LockMode, LockNotice, LockToken};
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::transactions::OperationDone;
use sluice_engine::{Command, Error, Limits};

use super::Run;
use super::attachments::NAMES;
use super::documents::KEYS;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

/// A transaction that is remembered.
struct Known {
    digest: u64,
    at_us: u64,
    done: Vec<OperationDone>,
    /// True once its window was over, which may have become longer since.
    may_be_gone: bool,
}

/// Transactions by their idempotency keys.
#[derive(Default)]
pub(super) struct Transactions(BTreeMap<Vec<u8>, Known>);

impl Transactions {
    /// Follows a transaction; tells what came of each operation, as if it had been alone, and of locks that
    /// others wait for, before and after.
    pub(super) fn follow<'c>(
        &mut self,
        now_us: u64,
        transaction: &Transaction<'c>,
        (limits, out): (&Limits, &Outcome),
    ) -> Vec<(Option<Command<'c>>, Outcome)> {
        let window_us = limits.idempotency_window_ms * 1_000;
        for known in self.0.values_mut() {
            known.may_be_gone |= now_us - known.at_us >= window_us;
        }
        let known = self.0.get(transaction.idempotency_key);
        let nothing = (None, Outcome::default());
        match (&out.error, out.reply) {
            (None, Reply::Committed { duplicate: true }) => {
                let known = known.expect("a repeat of nothing");
                assert_eq!((known.digest, &known.done), (transaction.request_digest, &out.operations));
                assert!(out.locks.is_empty());
                vec![nothing]
            }
            (None, Reply::Committed { duplicate: false }) => {
                assert!(known.is_none_or(|known| known.may_be_gone), "a repeat is done again");
                if !transaction.idempotency_key.is_empty() {
                    let (digest, done) = (transaction.request_digest, out.operations.clone());
                    let known = Known { digest, at_us: now_us, done, may_be_gone: false };
                    self.0.insert(transaction.idempotency_key.to_vec(), known);
                }
                one_by_one(transaction, out)
            }
            (Some(error), Reply::None) => {
                assert!(out.operations.is_empty());
                if let Error::IdempotencyMismatch { .. } = error {
                    assert!(known.is_some_and(|known| known.digest != transaction.request_digest));
                    return vec![nothing];
                }
                let refused = out.refused_at.map(|at| transaction.operations[at as usize].clone());
                if let Some(operation) = &refused {
                    expect_plausible(operation, error);
                }
                let locks = vec![(None, Outcome { locks: out.locks.clone(), ..Outcome::default() })];
                let of_document = |it: &Command<'_>| {
                    use Command::{
                        AttachmentCommit, AttachmentDelete, DocumentCheck, DocumentDelete, DocumentPut,
                    };
                    matches!(
                        it,
                        DocumentPut(_)
                            | DocumentDelete(_)
                            | DocumentCheck(_)
                            | AttachmentCommit(_)
                            | AttachmentDelete(_)
                    )
                };
                let refused = refused.filter(of_document);
                let error = Outcome { error: out.error.clone(), ..Outcome::default() };
                locks.into_iter().chain(refused.map(|operation| (Some(operation), error))).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Grants that came before those of the transaction, its operations, and the grants that came after.
fn one_by_one<'c>(transaction: &Transaction<'c>, out: &Outcome) -> Vec<(Option<Command<'c>>, Outcome)> {
    let first = out.operations.iter().find_map(|done| done.grant()).map(|grant| grant.token.number);
    let is_before = |notice: &LockNotice| match (notice.grant, first) {
        (Some(grant), Some(first)) => grant.token.number < first,
        (None, _) => true,
        (Some(_), None) => false,
    };
    let (before, after): (Vec<_>, Vec<_>) = out.locks.iter().copied().partition(is_before);
    let told = |locks| (None, Outcome { locks, ..Outcome::default() });
    let is_release = |it: &Command<'_>| matches!(it, Command::LockRelease { .. });
    let operations = transaction.operations.iter().zip(&out.operations);
    let each = operations.map(|(operation, done)| (operation.clone(), alone(done)));
    let (releases, others): (Vec<_>, Vec<_>) = each.partition(|(operation, _)| is_release(operation));
    let own = others.into_iter().chain(releases).map(|(operation, out)| (Some(operation), out));
    std::iter::once(told(before)).chain(own).chain(std::iter::once(told(after))).collect()
}

/// What would have come of the operation alone.
fn alone(done: &OperationDone) -> Outcome {
    let reply = match *done {
        OperationDone::Sent { id } => Reply::Sent { first: id, count: 1, duplicate: false },
        OperationDone::Written { version, created } => Reply::DocumentWritten { version, created },
        OperationDone::Deleted { version } => Reply::DocumentWritten { version, created: false },
        OperationDone::Granted { grant } => Reply::LockGranted { grant },
        OperationDone::Settled | OperationDone::Checked | OperationDone::Released => Reply::None,
    };
    Outcome { reply, ..Outcome::default() }
}

fn expect_plausible(operation: &Command<'_>, error: &Error) {
    let plausible = match operation {
        Command::Send(_) => ["queue_closed", "queue_full", "invalid_argument"].contains(&error.code()),
        Command::Settle { .. } => {
            ["lease_lost", "already_settled", "cancelled", "message_not_found"].contains(&error.code())
        }
        Command::LockAcquire(_) => error.code() == "lock_held",
        Command::LockRelease { .. } => error.code() == "lease_lost",
        // Documents and attachments follow it.
        _ => true,
    };
    assert!(plausible, "{operation:?}: {error}");
}

/// Everything that the operations of one transaction borrow.
struct Chosen<'k> {
    queues: Vec<&'static str>,
    items: Vec<[SendItem<'k>; 1]>,
    settled: Vec<[SettleItem<'k>; 1]>,
    keys: Vec<Vec<&'k str>>,
    tokens: Vec<LockToken>,
    commits: Vec<AttachmentCommit<'k>>,
}

impl Run {
    pub(super) fn transaction(&mut self) {
        let count = 1 + self.numbers.below(5) as usize;
        let chosen = self.choose(count);
        let mut operations: Vec<Command<'_>> = Vec::new();
        let (key, digest) = (self.numbers.pick(&["", "", "t1", "t2"]), 1 + self.numbers.below(2));
        for at in 0..count {
            let Some(operation) = self.operation(&chosen, at) else { continue };
            operations.push(operation);
            if self.whole(key, digest, &operations).check(&Limits::default()).is_err() {
                operations.pop();
            }
        }
        if !operations.is_empty() {
            let command = self.whole(key, digest, &operations);
            self.apply(&command);
        }
    }

    fn whole<'a>(&self, key: &'a str, request_digest: u64, operations: &'a [Command<'a>]) -> Command<'a> {
        let idempotency_key = key.as_bytes();
        Command::Transaction(Transaction {
            namespace: NAMESPACE,
            idempotency_key,
            request_digest,
            operations,
        })
    }

    fn choose(&mut self, count: usize) -> Chosen<'static> {
        let queues: Vec<&'static str> = (0..count).map(|_| self.queue()).collect();
        let item = |run: &mut Run| SendItem {
            payload: b"together",
            priority: if run.deliveries.in_order { 0 } else { run.numbers.below(3) as u8 },
            deliver: run.numbers.pick(&[Deliver::Now, Deliver::Now, Deliver::AfterMs(5)]),
            ..SendItem::default()
        };
        let items = (0..count).map(|_| [item(self)]).collect();
        let receipts: Vec<_> =
            self.receipts.iter().copied().filter(|it| it.id.namespace == NAMESPACE).collect();
        let settled = |run: &mut Run| {
            let settlement = run.numbers.pick(&[
                Settlement::Ack,
                Settlement::Ack,
                Settlement::Nack { delay_ms: None },
                Settlement::Release { delay_ms: 3 },
                Settlement::GiveBack { delay_ms: 3 },
                Settlement::Reject,
            ]);
            let error = run.numbers.pick(&["", "no luck"]);
            [SettleItem {
                receipt: run.numbers.pick(&receipts),
                settlement,
                error,
                result: None,
                add_cost: 0,
            }]
        };
        let settles = if receipts.is_empty() { 0 } else { count };
        let settled = (0..settles).map(|_| settled(self)).collect();
        let keys = (0..count).map(|_| vec![self.numbers.pick(&KEYS)]).collect();
        let tokens = (0..count).filter_map(|_| self.some_token()).collect();
        let commits = (0..count).filter_map(|_| self.commit()).filter(|it| it.namespace == NAMESPACE);
        let commits = commits.collect();
        Chosen { queues, items, settled, keys, tokens, commits }
    }

    fn operation<'a>(&mut self, chosen: &'a Chosen<'a>, at: usize) -> Option<Command<'a>> {
        let (namespace, key) = (NAMESPACE, chosen.keys[at][0]);
        Some(match self.numbers.below(9) {
            8 if self.numbers.one_in(4) => {
                let name = self.numbers.pick(&NAMES);
                let when = self.condition_of_attachment(namespace, key, name);
                Command::AttachmentDelete(AttachmentDelete { namespace, key, name, when })
            }
            8 => Command::AttachmentCommit(*chosen.commits.get(at)?),
            0 | 1 if !self.deliveries.in_order => Command::Send(Send {
                namespace,
                queue: chosen.queues[at],
                idempotency_key: b"",
                request_digest: 0,
                items: &chosen.items[at],
            }),
            0..=3 => Command::Settle { namespace, items: chosen.settled.get(at)? },
            4 | 5 => Command::DocumentPut(DocumentPut {
                namespace,
                key,
                when: self.condition(namespace, key),
                ttl_ms: self.numbers.pick(&[None, Some(0), Some(50)]),
                history: self.numbers.pick(&[None, Some(0), Some(2)]),
                request: 0,
                content_type: "",
                attributes: &[],
                content: b"whole",
                terms: &[],
            }),
            6 if self.numbers.one_in(3) => {
                let when = self.condition(namespace, key);
                Command::DocumentDelete(DocumentDelete { namespace, key, when })
            }
            6 if self.numbers.one_in(2) => {
                let when = self.condition(namespace, key);
                Command::DocumentCheck(DocumentCheck { namespace, key, when })
            }
            6 => Command::LockRelease { namespace, token: *chosen.tokens.get(at)? },
            _ => Command::LockAcquire(LockAcquire {
                namespace,
                keys: &chosen.keys[at],
                owner: "t",
                mode: self.numbers.pick(&[
                    LockMode::Exclusive,
                    LockMode::Shared,
                    LockMode::Counting { holders: 2 },
                ]),
                ttl_ms: self.numbers.pick(&[1, 100, 30_000]),
                wait_ms: 0,
                if_absent: false,
                request: [0; 2],
            }),
        })
    }
}
