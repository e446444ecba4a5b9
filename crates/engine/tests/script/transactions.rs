//! Transactions: `txn OPERATION ; OPERATION ...` with `key=` and `digest=` at the first one. Operations are
//! `send QUEUE PAYLOAD`, `ack`, `nack`, `release` and `reject DELIVERY`, and those of `doc`, `file` and
//! `lock`.

use sluice_engine::Command;
use sluice_engine::command::{
    AttachmentDelete, DocumentCheck, DocumentDelete, LockAcquire, Send, SendItem, SettleItem, Transaction,
};
use sluice_engine::item::{SendOptions, Step, Steps};
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;

use super::Player;
use super::line::{Line, chain, deliver, options};
use super::parse::{Parents, depends_on, given, steps};

/// The parts of a message that its options borrow.
struct Parts<'a> {
    parents: Option<Parents>,
    step: SendOptions<'a>,
}

impl Player {
    /// Plays a transaction, given without its verb.
    pub(super) fn transaction(&mut self, text: &str) -> Vec<String> {
        let lines: Vec<Line<'_>> = text.split(';').map(|part| Line::new(part.trim())).collect();
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
        self.run(&Command::Transaction(Transaction {
            namespace: self.namespace(&lines[0]),
            idempotency_key: lines[0].get("key").unwrap_or("").as_bytes(),
            request_digest: lines[0].number("digest").unwrap_or(0),
            operations: &operations,
        }))
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

fn item<'a>(line: &Line<'a>, options: &'a SendOptions<'a>) -> SendItem<'a> {
    SendItem {
        payload: line.words.get(1).map_or(b"", |payload| payload.as_bytes()),
        priority: line.number("priority").unwrap_or(0) as u8,
        deliver: deliver(line).unwrap_or_default(),
        options: options.given(),
        ..SendItem::default()
    }
}
