//! Transactions: `txn OPERATION ; OPERATION ...` with `key=` and `digest=` at the first one. Operations are
//! `send QUEUE PAYLOAD`, `ack`, `nack`, `release` and `reject DELIVERY`, and those of `doc`, `file` and
//! `lock`.
//!
//! Over several namespaces: `prepare ID until_ms=TIME | OPERATION ; ...`, `decide ID until_ms=TIME
//! with=NAMESPACE,... | OPERATION ; ...`, `finish ID commit` and `finish ID abort`, `ask ID until_ms=TIME`,
//! `forget ID`. The coordinator is `default`.

use sluice_engine::Command;
use sluice_engine::command::{
    AttachmentDelete, DocumentCheck, DocumentDelete, LockAcquire, Send, SendItem, SettleItem, Transaction,
    TransactionDecide, TransactionPrepare,
};
use sluice_engine::id::{NamespaceId, TransactionId};
use sluice_engine::item::{SendOptions, Step, Steps};
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::{DecidedView, OperationDone, PreparedView};

use super::line::{Line, chain, deliver, options};
use super::parse::{Parents, depends_on, given, steps};
use super::{Player, START_US};

/// The parts of a message that its options borrow.
struct Parts<'a> {
    parents: Option<Parents>,
    step: SendOptions<'a>,
}

/// The record that operations are played as.
enum Phase<'a> {
    Only,
    Prepare(TransactionId, u64),
    Decide(TransactionId, u64, &'a [(NamespaceId, u32)]),
}

impl Player {
    /// Plays a transaction, given without its verb.
    pub(super) fn transaction(&mut self, text: &str) -> Vec<String> {
        self.part(text, Phase::Only)
    }

    /// Plays a part of a transaction that is prepared, given without its verb.
    pub(super) fn prepare(&mut self, text: &str) -> Vec<String> {
        let (head, operations) = text.split_once('|').expect("operations after |");
        let head = Line::new(head.trim());
        self.part(operations, Phase::Prepare(transaction_id(&head), until_us(&head)))
    }

    /// Plays the part of a transaction that decides it, given without its verb.
    pub(super) fn decide(&mut self, text: &str) -> Vec<String> {
        let (head, operations) = text.split_once('|').expect("operations after |");
        let head = Line::new(head.trim());
        let names = head.get("with").unwrap_or("").split(',').filter(|name| !name.is_empty());
        let participants: Vec<_> = names.map(|name| (self.namespace_named(name), 0)).collect();
        self.part(operations, Phase::Decide(transaction_id(&head), until_us(&head), &participants))
    }

    /// Plays what ends a transaction over several namespaces.
    pub(super) fn phase(&mut self, line: &Line<'_>) -> Vec<String> {
        let (namespace, words) = (self.namespace(line), line.words.as_slice());
        let id = transaction_id(&Line::new(words.first().expect("a transaction")));
        self.run(&match (line.verb, words) {
            ("finish", [_, how]) => Command::TransactionFinish { namespace, id, commit: *how == "commit" },
            ("ask", [_]) => Command::TransactionAsk { id, until_us: until_us(line) },
            ("forget", [_]) => Command::TransactionFinish { namespace: id.coordinator, id, commit: true },
            _ => panic!("{line:?} ends no transaction"),
        })
    }

    /// Shows the parts that are prepared, or the transactions that are decided.
    pub(super) fn show_phases(&self, list: &str) -> Vec<String> {
        let engine = &self.driver.engine;
        if list == "prepared" {
            let text = |view: &PreparedView| {
                let (number, namespace, operations) = (view.id.number, view.namespace.0, view.operations);
                let (at, until) = (self.time(view.prepared_at_us), self.time(view.until_us));
                format!("{number} in {namespace} at {at} until {until}: {operations} operation(s)")
            };
            return engine.prepared_transactions().iter().map(text).collect();
        }
        let text = |view: &DecidedView| {
            let at = self.time(view.decided_at_us);
            let with: Vec<u32> = view.participants.iter().map(|(namespace, _)| namespace.0).collect();
            format!("{} at {at} with {with:?}", view.id.number)
        };
        engine.decided_transactions().iter().map(text).collect()
    }

    fn part(&mut self, text: &str, phase: Phase<'_>) -> Vec<String> {
        let written = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let lines: Vec<Line<'_>> = written.map(Line::new).collect();
        let parts: Vec<Parts<'_>> = lines
            .iter()
            .map(|line| Parts { parents: self.parents(line), step: options(&line.under("step_"), "-") })
            .collect();
        let given_steps: Vec<(Vec<Step<'_>>, Option<Step<'_>>)> =
            lines.iter().zip(&parts).map(|(line, parts)| chain(line, &parts.step)).collect();
        let chains: Vec<Steps<'_>> = given_steps.iter().map(steps).collect();
        let all_options: Vec<SendOptions<'_>> = lines
            .iter()
            .zip(parts.iter().zip(&chains))
            .map(|(line, (parts, chain))| SendOptions {
                depends_on: parts.parents.as_ref().map(|parents| depends_on(line, parents)),
                chain: given(chain),
                ..options(line, line.get("unique").unwrap_or("-"))
            })
            .collect();
        let items: Vec<[SendItem<'_>; 1]> =
            lines.iter().zip(&all_options).map(|(line, options)| [item(line, options)]).collect();
        let errors: Vec<String> =
            lines.iter().map(|line| line.get("error").unwrap_or("").replace('_', " ")).collect();
        let settled: Vec<Vec<SettleItem<'_>>> =
            lines.iter().zip(&errors).map(|(line, error)| self.settled(line, error)).collect();
        let sized: Vec<(String, Vec<u8>)> = lines.iter().map(Line::document).collect();
        let attributes: Vec<_> = lines.iter().map(|line| line.under("attr_").pairs()).collect();
        let operations: Vec<Command<'_>> = (0..lines.len())
            .map(|at| {
                let given = (&*sized[at].0, &*sized[at].1, &*attributes[at]);
                self.operation(&lines[at], &items[at], &settled[at], given)
            })
            .collect();
        let first = lines.first();
        let part = Transaction {
            namespace: first.map_or(NamespaceId::DEFAULT, |line| self.namespace(line)),
            idempotency_key: first.and_then(|line| line.get("key")).unwrap_or("").as_bytes(),
            request_digest: first.and_then(|line| line.number("digest")).unwrap_or(0),
            operations: &operations,
        };
        self.run(&match phase {
            Phase::Only => Command::Transaction(part),
            Phase::Prepare(id, until_us) => {
                Command::TransactionPrepare(TransactionPrepare { id, shard: 0, until_us, part })
            }
            Phase::Decide(id, until_us, participants) => {
                Command::TransactionDecide(TransactionDecide { id, until_us, participants, part })
            }
        })
    }

    fn settled<'a>(&self, line: &Line<'a>, error: &'a str) -> Vec<SettleItem<'a>> {
        let of = |receipt| self.settle_item(line, line.verb, receipt, error);
        match (line.verb, line.words.as_slice()) {
            ("ack" | "nack" | "release" | "reject", [receipt]) => vec![of(receipt)],
            _ => Vec::new(),
        }
    }

    fn operation<'a>(
        &self,
        line: &'a Line<'_>,
        items: &'a [SendItem<'a>; 1],
        settled: &'a [SettleItem<'a>],
        (key, content, attributes): (&'a str, &'a [u8], &'a [(&'a str, &'a str)]),
    ) -> Command<'a> {
        let namespace = self.namespace(line);
        match (line.verb, line.words.as_slice()) {
            ("send", [queue, _]) => {
                Command::Send(Send { namespace, queue, idempotency_key: b"", request_digest: 0, items })
            }
            ("ack" | "nack" | "release" | "reject", _) => Command::Settle { namespace, items: settled },
            ("doc", ["put", ..]) => Command::DocumentPut(self.put(line, key, content, attributes)),
            ("doc", ["delete", key]) => {
                let when = self.condition(line);
                Command::DocumentDelete(DocumentDelete { namespace, key, when })
            }
            ("file", ["commit", ..]) => Command::AttachmentCommit(self.commit(line)),
            ("file", ["delete", key, name]) => {
                let when = self.condition(line);
                Command::AttachmentDelete(AttachmentDelete { namespace, key, name, when })
            }
            ("doc", ["check", key]) => {
                let when = self.condition(line);
                Command::DocumentCheck(DocumentCheck { namespace, key, when })
            }
            ("lock", ["acquire", keys @ ..]) => Command::LockAcquire(LockAcquire {
                wait_ms: line.number("wait_ms").unwrap_or(0) as u32,
                ..self.acquire(line, keys)
            }),
            ("lock", ["release", grant]) => Command::LockRelease { namespace, token: self.token(grant) },
            _ => panic!("{line:?} is no operation"),
        }
    }

    /// What came of the operations of the last command, if it is a transaction.
    pub(super) fn operation_lines(&mut self) -> Vec<String> {
        let out = &self.driver.out;
        let mut lines = Vec::new();
        lines.extend(out.refused_at.map(|at| format!("operation {at} is to blame")));
        if let Reply::Committed { duplicate } = out.reply {
            lines.push(if duplicate { "committed before" } else { "committed" }.into());
        }
        match out.reply {
            Reply::Prepared => lines.push("prepared".into()),
            Reply::Finished { known } => lines.push(if known { "finished" } else { "not prepared" }.into()),
            Reply::Decided { decision } => lines.push(format!("{decision:?}").to_lowercase()),
            _ => {}
        }
        for done in self.driver.out.operations.clone() {
            lines.push(match done {
                OperationDone::Sent { id } => format!("sent {}", super::print::id(id)),
                OperationDone::Settled => "settled".into(),
                OperationDone::Written { version, created } => {
                    format!("written {}{}", if created { "new " } else { "" }, self.version(version))
                }
                OperationDone::Deleted { version } => format!("deleted {}", self.version(version)),
                OperationDone::Granted { grant } => format!("granted {}", self.granted(grant)),
                OperationDone::Checked => "checked".into(),
                OperationDone::Released => "released".into(),
            });
        }
        lines
    }
}

fn transaction_id(line: &Line<'_>) -> TransactionId {
    let number = line.verb.parse().expect("the number of a transaction");
    TransactionId { coordinator: NamespaceId::DEFAULT, number }
}

fn until_us(line: &Line<'_>) -> u64 {
    START_US + line.number("until_ms").unwrap_or(0) * 1_000
}

fn item<'a>(line: &Line<'a>, options: &'a SendOptions<'a>) -> SendItem<'a> {
    SendItem {
        payload: line.words.get(1).map_or(b"", |payload| payload.as_bytes()),
        priority: line.number("priority").unwrap_or(0) as u8,
        deliver: deliver(line).unwrap_or_default(),
        options: options.given(),
        ..SendItem::default()
    }
}
