//! Random commands around parts of transactions that are prepared: nothing else changes what they are about,
//! whatever it is, and finishing them does all or nothing.
//!
//! After each record kept counters equal a recount and each blob is let go of once; now and then a restored
//! engine is the same.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use std::collections::BTreeMap;

use common::{Driver, Numbers};
use sluice_engine::command::{
    DocumentCheck, DocumentDelete, DocumentPut, LockAcquire, Receive, Send, SendItem, SettleItem, Settlement,
    Transaction, TransactionDecide, TransactionPrepare,
};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::{NamespaceId, Receipt, TransactionId};
use sluice_engine::locks::{LockMode, LockToken};
use sluice_engine::outcome::Reply;
use sluice_engine::settings::Quotas;
use sluice_engine::transactions::OperationDone;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Error};

const START_US: u64 = 1_700_000_000_000_000;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const QUEUES: [&str; 2] = ["one", "two"];
const OTHER: NamespaceId = NamespaceId(2);
const STEPS: u32 = 600;
const SEEDS: u64 = 60;

/// An operation of a part, as it was prepared.
#[derive(Clone, Debug)]
enum Planned {
    Send(&'static str),
    Settle(Receipt),
    Put(&'static str),
    Delete(&'static str),
    Check(&'static str),
    Acquire(&'static str),
    Release(LockToken),
}

/// A part that is prepared, with the versions of its documents then; 0: there was none.
struct Part {
    operations: Vec<Planned>,
    versions: BTreeMap<&'static str, u64>,
}

struct Run {
    numbers: Numbers,
    driver: Driver,
    now_us: u64,
    receipts: Vec<Receipt>,
    tokens: Vec<LockToken>,
    parts: BTreeMap<u64, Part>,
    next: u64,
}

fn id(number: u64) -> TransactionId {
    TransactionId { coordinator: NamespaceId::DEFAULT, number }
}

fn put(key: &'static str) -> DocumentPut<'static> {
    DocumentPut {
        namespace: OTHER,
        key,
        when: DocumentCondition::default(),
        ttl_ms: None,
        history: None,
        request: 0,
        content_type: "",
        attributes: &[],
        content: b"content",
        terms: &[],
    }
}

fn acquire<'a>(keys: &'a [&'a str]) -> LockAcquire<'a> {
    LockAcquire {
        namespace: OTHER,
        keys,
        owner: "o",
        mode: LockMode::Exclusive,
        ttl_ms: 500,
        wait_ms: 0,
        if_absent: false,
        request: [0; 2],
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut run = Run {
            numbers: Numbers::new(seed * 2 + 1),
            driver: Driver::new(),
            now_us: START_US,
            receipts: Vec::new(),
            tokens: Vec::new(),
            parts: BTreeMap::new(),
            next: 1,
        };
        run.apply(&Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
        let quotas = Quotas { messages: 30, bytes: 2_000, ..Quotas::default() };
        run.apply(&Command::NamespaceCreate { number: Some(OTHER), name: "other", shard: 0, quotas });
        run
    }

    fn apply(&mut self, command: &Command<'_>) {
        if let Err(error) = command.check(self.driver.engine.limits()) {
            panic!("{command:?}: {error}");
        }
        self.driver.apply(self.now_us, command);
        self.driver.engine.recount().unwrap_or_else(|why| panic!("after {command:?}: {why}"));
        for part in self.parts.values() {
            for (key, version) in &part.versions {
                let now = self.driver.engine.document(OTHER, key).map_or(0, |view| view.version.version);
                assert_eq!(now, *version, "document {key} after {command:?}");
                assert!(self.driver.engine.expect_decided(OTHER, key).is_err(), "{key}");
            }
            for operation in &part.operations {
                if let Planned::Settle(receipt) = operation {
                    let view = self.driver.engine.message(receipt.id).unwrap();
                    assert_eq!(view.state.name(), "leased", "{receipt} after {command:?}");
                }
            }
        }
    }

    fn step(&mut self) {
        self.now_us += self.numbers.pick(&[0, 1_000, 50_000, 400_000]);
        match self.numbers.below(18) {
            0..4 => self.prepare(),
            4..7 => self.finish(),
            7 => {
                let queue = self.numbers.pick(&QUEUES);
                let items = [SendItem { payload: b"payload", ..SendItem::default() }];
                self.apply(&Command::Send(Send {
                    namespace: OTHER,
                    queue,
                    idempotency_key: b"",
                    request_digest: 0,
                    items: &items,
                }));
            }
            8 => self.receive(),
            9 => {
                let Some(receipt) = self.some_receipt() else { return };
                let item =
                    SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 };
                self.apply(&Command::Settle { namespace: OTHER, items: &[item] });
            }
            10 => {
                let key = self.numbers.pick(&KEYS);
                let ttl_ms = self.numbers.pick(&[None, Some(0), Some(300)]);
                self.apply(&Command::DocumentPut(DocumentPut { ttl_ms, ..put(key) }));
            }
            11 => {
                let keys = [self.numbers.pick(&KEYS)];
                self.apply(&Command::LockAcquire(acquire(&keys)));
                if let Reply::LockGranted { grant } = self.driver.out.reply {
                    self.tokens.push(grant.token);
                }
            }
            12 => {
                let queue = self.numbers.pick(&QUEUES);
                if self.numbers.below(4) == 0 {
                    self.apply(&Command::QueueDelete { namespace: OTHER, queue });
                } else {
                    self.apply(&Command::QueuePurge { namespace: OTHER, queue });
                }
            }
            13 => {
                let key = self.numbers.pick(&KEYS);
                self.apply(&Command::LockBreak { namespace: OTHER, key });
            }
            14 => self.restore(),
            15 => {
                let (name, pointer) = (self.numbers.pick(&["i", "j"]), self.numbers.pick(&["/x", "/y"]));
                self.apply(&Command::IndexPut { namespace: OTHER, name, pointer });
            }
            16 => {
                let name = self.numbers.pick(&["i", "j"]);
                self.apply(&Command::IndexDelete { namespace: OTHER, name });
            }
            _ => self.apply(&Command::Tick),
        }
    }

    fn receive(&mut self) {
        self.apply(&Command::Receive(Receive {
            namespace: OTHER,
            queues: &[(QUEUES[0], 1), (QUEUES[1], 1)],
            max_messages: 2,
            max_bytes: 1_000,
            lease_ms: 300,
            consumer: "",
        }));
        self.receipts.extend(self.driver.out.deliveries.iter().map(|delivery| delivery.receipt));
    }

    fn some_receipt(&mut self) -> Option<Receipt> {
        (!self.receipts.is_empty()).then(|| self.numbers.pick(&self.receipts))
    }

    fn prepare(&mut self) {
        let mut operations: Vec<Planned> = Vec::new();
        for _ in 0..1 + self.numbers.below(4) {
            let key = self.numbers.pick(&KEYS);
            operations.push(match self.numbers.below(7) {
                0 => Planned::Send(self.numbers.pick(&QUEUES)),
                1 => match self.some_receipt() {
                    Some(receipt) => Planned::Settle(receipt),
                    None => continue,
                },
                2 => Planned::Put(key),
                3 => Planned::Delete(key),
                4 => Planned::Check(key),
                5 => Planned::Acquire(key),
                _ => match self.tokens.last() {
                    Some(token) => Planned::Release(*token),
                    None => continue,
                },
            });
        }
        let (number, versions) = (self.next, self.versions(&operations));
        self.next += 1;
        let until_us = self.now_us + 1_000_000;
        let done = self.with_commands(&operations, |run, part| {
            let prepare = TransactionPrepare { id: id(number), shard: 0, until_us, part };
            let command = Command::TransactionPrepare(prepare);
            if command.check(run.driver.engine.limits()).is_err() {
                return false;
            }
            run.apply(&command);
            run.driver.out.error.is_none()
        });
        if done {
            assert_eq!(self.driver.out.reply, Reply::Prepared);
            self.parts.insert(number, Part { operations, versions });
        }
    }

    /// Versions of the documents that operations are about; 0: there is none.
    fn versions(&self, operations: &[Planned]) -> BTreeMap<&'static str, u64> {
        let of = |operation: &Planned| match operation {
            Planned::Put(key) | Planned::Delete(key) | Planned::Check(key) => {
                let live = self.driver.engine.document(OTHER, key);
                // One whose time has come by now is gone when the record is applied.
                let live = live.filter(|view| view.expires_at_us.is_none_or(|at_us| at_us > self.now_us));
                Some((*key, live.map_or(0, |view| view.version.version)))
            }
            Planned::Send(_) | Planned::Settle(_) | Planned::Acquire(_) | Planned::Release(_) => None,
        };
        operations.iter().filter_map(of).collect()
    }

    fn with_commands(
        &mut self,
        operations: &[Planned],
        then: impl FnOnce(&mut Run, Transaction<'_>) -> bool,
    ) -> bool {
        let items = [SendItem { payload: b"payload", ..SendItem::default() }];
        let settled: Vec<[SettleItem<'_>; 1]> = operations
            .iter()
            .filter_map(|operation| match operation {
                Planned::Settle(receipt) => Some(*receipt),
                _ => None,
            })
            .map(|receipt| {
                let settlement = Settlement::Nack { delay_ms: Some(0) };
                [SettleItem { receipt, settlement, error: "no luck", result: None, add_cost: 0 }]
            })
            .collect();
        let mut next_settled = settled.iter();
        let keys: Vec<[&str; 1]> = KEYS.iter().map(|key| [*key]).collect();
        let commands: Vec<Command<'_>> = operations
            .iter()
            .map(|operation| match operation {
                Planned::Send(queue) => Command::Send(Send {
                    namespace: OTHER,
                    queue,
                    idempotency_key: b"",
                    request_digest: 0,
                    items: &items,
                }),
                Planned::Settle(_) => {
                    Command::Settle { namespace: OTHER, items: next_settled.next().unwrap() }
                }
                Planned::Put(key) => Command::DocumentPut(put(key)),
                Planned::Delete(key) => {
                    let when = DocumentCondition::default();
                    Command::DocumentDelete(DocumentDelete { namespace: OTHER, key, when })
                }
                Planned::Check(key) => {
                    let when = DocumentCondition { version: Some(0), ..DocumentCondition::default() };
                    Command::DocumentCheck(DocumentCheck { namespace: OTHER, key, when })
                }
                Planned::Acquire(key) => {
                    let at = KEYS.iter().position(|known| known == key).unwrap();
                    Command::LockAcquire(acquire(&keys[at]))
                }
                Planned::Release(token) => Command::LockRelease { namespace: OTHER, token: *token },
            })
            .collect();
        if commands.is_empty() {
            return false;
        }
        let part =
            Transaction { namespace: OTHER, idempotency_key: b"", request_digest: 0, operations: &commands };
        then(self, part)
    }

    fn finish(&mut self) {
        let Some(number) = self.parts.keys().next().copied() else { return };
        let part = self.parts.remove(&number).unwrap();
        let commit = self.numbers.below(3) > 0;
        self.apply(&Command::TransactionFinish { namespace: OTHER, id: id(number), commit });
        assert_eq!(self.driver.out.reply, Reply::Finished { known: true });
        assert_eq!(self.driver.out.operations.len(), if commit { part.operations.len() } else { 0 });
        let done = self.driver.out.operations.clone();
        for (operation, done) in part.operations.iter().zip(&done) {
            match (operation, done) {
                (Planned::Put(key), OperationDone::Written { version, .. }) => {
                    assert_eq!(version.version, part.versions[key] + 1, "{key}");
                    let found = self.driver.engine.document(OTHER, key);
                    assert_eq!(found.map(|view| view.version), Some(*version), "{key} is over at once");
                }
                (Planned::Delete(key), OperationDone::Deleted { version }) => {
                    assert_eq!(version.version, part.versions[key], "{key}");
                    assert!(self.driver.engine.document(OTHER, key).is_none());
                }
                (Planned::Acquire(key), OperationDone::Granted { grant }) => {
                    assert!(grant.until_us > self.now_us, "{key}");
                    self.tokens.push(grant.token);
                }
                (Planned::Send(_), OperationDone::Sent { id }) => {
                    assert!(self.driver.engine.message(*id).is_ok());
                }
                (Planned::Settle(_), OperationDone::Settled)
                | (Planned::Check(_), OperationDone::Checked)
                | (Planned::Release(_), OperationDone::Released) => {}
                other => panic!("{other:?}"),
            }
        }
        self.apply(&Command::TransactionFinish { namespace: OTHER, id: id(number), commit: true });
        assert_eq!(self.driver.out.reply, Reply::Finished { known: false }, "once");
    }

    fn restore(&mut self) {
        let mut bytes = Vec::new();
        self.driver.engine.snapshot_begin();
        while !self.driver.engine.snapshot_step(10_000, &mut bytes) {}
        let mut pieces = bytes.chunks(1_000);
        let restored = Engine::restore(&mut || pieces.next().map(<[u8]>::to_vec)).unwrap();
        assert_eq!(restored.digest(), self.driver.engine.digest());
        let mut held: Vec<_> = self.driver.blobs.keys().copied().collect();
        let mut live: Vec<_> = restored.live_blobs().collect();
        held.sort_unstable();
        live.sort_unstable();
        assert_eq!(live, held, "blobs of the engine, and those that were not let go of");
        self.driver.engine = restored;
    }
}

#[test]
fn what_is_prepared_is_done_whole_or_not_at_all_and_touched_by_nobody_else() {
    let mut finished = 0;
    for seed in 0..SEEDS {
        let mut run = Run::new(seed);
        (0..STEPS).for_each(|_| run.step());
        finished += run.next;
        while !run.parts.is_empty() {
            run.finish();
        }
        run.apply(&Command::NamespaceDelete { namespace: OTHER, force: true });
        while run.driver.engine.next_deadline().is_some_and(|due_us| due_us <= run.now_us) {
            run.apply(&Command::Tick);
        }
        run.restore();
        assert!(run.driver.blobs.is_empty(), "{:?}", run.driver.blobs.keys());
    }
    assert!(finished > 20 * SEEDS, "too little was prepared: {finished}");
}

#[test]
fn a_decision_is_told_until_it_is_forgotten_and_time_decides_the_others() {
    let mut run = Run::new(1);
    let until_us = run.now_us + 1_000;
    let ask = Command::TransactionAsk { id: id(7), until_us };
    let decide = |run: &mut Run| {
        let (namespace, idempotency_key, request_digest) = (NamespaceId::DEFAULT, &b""[..], 0);
        let part = Transaction { namespace, idempotency_key, request_digest, operations: &[] };
        let participants = [(OTHER, 0)];
        let decide = TransactionDecide { id: id(7), until_us, participants: &participants, part };
        run.apply(&Command::TransactionDecide(decide));
        (run.driver.out.error.clone(), run.driver.out.reply)
    };
    let told = |run: &mut Run| {
        run.apply(&ask);
        format!("{:?}", run.driver.out.reply)
    };
    assert!(told(&mut run).contains("Open"));
    assert_eq!(decide(&mut run), (None, Reply::Committed { duplicate: false }));
    assert!(told(&mut run).contains("Committed"));
    run.now_us = until_us;
    assert!(told(&mut run).contains("Committed"));
    run.apply(&Command::TransactionFinish { namespace: NamespaceId::DEFAULT, id: id(7), commit: true });
    assert!(told(&mut run).contains("Aborted"), "nobody asks any more");
    assert_eq!(decide(&mut run), (Some(Error::TransactionAborted {}), Reply::None));
}
