//! Records for the leader of a shard, which may be on another node, and its answers.
//!
//! A question has the byte [`PART`] or, for a settlement, [`SETTLE`]; the shard (u32), 1 if the record frees
//! room, then the record's body and its blobs, each behind its length (u32). An answer is empty from a node
//! that does not lead, else it begins with [`DONE`] or [`REFUSED`]. All numbers are little-endian.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::command::{Command, RecordSink};
use sluice_engine::limits::TRANSACTION_PART_BYTES_MAX;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::Decision;
use sluice_engine::{Error, changes_decisions, decode_outcomes, encode_outcomes, is_two_phase, settled};
use sluice_journal::Class;
use tokio::sync::oneshot;

use super::driver::Outcome;
use crate::handle::Node;
use crate::shard::request::{Answer, Proposal, ReplyTo, Request};
use crate::transactions::Refused;

/// First byte of a question with a record of a transaction over several namespaces.
const PART: u8 = 6;
/// First byte of a question with a record that settles deliveries.
const SETTLE: u8 = 9;
/// First byte of answers.
pub(super) const DONE: u8 = 0;
pub(super) const REFUSED: u8 = 1;
/// Number that stands for none.
const NONE: u32 = u32::MAX;
/// Pause before a shard without a leader is asked again.
const ASK_PAUSE: Duration = Duration::from_millis(10);

/// Result of a record, as another node can tell it.
pub(super) trait Told: Sized {
    /// The result as the shard has answered.
    fn of(part: &Part, answer: Answer) -> Self;

    /// The result of a record that no shard has answered for.
    fn failed(error: Error) -> Self;

    /// The result as bytes, never empty.
    fn encode(&self) -> Bytes;

    /// The result that another node has encoded; `None`: this program cannot read it.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// A record for the leader of a shard.
#[derive(Clone, Debug)]
pub(super) struct Part {
    shard: u32,
    class: Class,
    /// True for one that decides a transaction, or forgets a decision: not while the shard is held.
    decides: bool,
    /// Number of the deliveries that it settles; `None`: it is part of a transaction.
    settles: Option<usize>,
    body: Bytes,
    blobs: Vec<Bytes>,
    /// The record as a question.
    question: Bytes,
}

#[derive(Default)]
struct Record {
    body: Vec<u8>,
    blobs: Vec<Bytes>,
}

impl RecordSink for Record {
    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    fn blob(&mut self, pieces: &[&[u8]]) {
        self.blobs.push(pieces.concat().into());
    }
}

impl Part {
    fn new(shard: u32, command: &Command<'_>) -> Part {
        let mut record = Record::default();
        command.encode(&mut record);
        let class = Proposal::class_of(command);
        let (body, blobs) = (Bytes::from(record.body), record.blobs);
        let settles = settled(&body).map(|(items, _)| items);
        let kind = if settles.is_some() { SETTLE } else { PART };
        let question = question(kind, shard, class, &body, &blobs);
        Part { question, shard, class, decides: changes_decisions(&body), settles, body, blobs }
    }

    /// Number of its shard.
    pub(super) fn shard(&self) -> usize {
        self.shard as usize
    }

    /// Number of the deliveries that it settles; `None`: it is part of a transaction.
    pub(super) fn settles(&self) -> Option<usize> {
        self.settles
    }

    /// Length of the record with its blobs, in bytes.
    pub(super) fn len(&self) -> usize {
        self.question.len()
    }

    fn proposal(&self, reply: ReplyTo) -> Proposal {
        Proposal::of_record(&self.body, &self.blobs, self.class, reply)
    }

    /// The record that another node has sent; `None`: the content is none.
    pub(super) fn decode(bytes: &[u8]) -> Option<Part> {
        let (head, mut rest) = bytes.split_first_chunk::<6>()?;
        let [kind @ (PART | SETTLE), shard @ .., frees] = head else { return None };
        let class = if *frees == 1 { Class::Draining } else { Class::Growing };
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (len, behind) = rest.split_first_chunk()?;
            let (piece, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            pieces.push(Bytes::copy_from_slice(piece));
            rest = behind;
        }
        let blobs = pieces.split_off(1.min(pieces.len()));
        let body = pieces.pop()?;
        let settles = match *kind {
            SETTLE => Some(settled(&body).filter(|(_, of_record)| *of_record == blobs.len())?.0),
            _ if is_two_phase(&body) => None,
            _ => return None,
        };
        let (shard, decides) = (u32::from_le_bytes(*shard), changes_decisions(&body));
        Some(Part { shard, class, decides, settles, body, blobs, question: Bytes::new() })
    }
}

fn question(kind: u8, shard: u32, class: Class, body: &Bytes, blobs: &[Bytes]) -> Bytes {
    let mut out = vec![kind];
    out.extend_from_slice(&shard.to_le_bytes());
    out.push((class == Class::Draining).into());
    for bytes in std::iter::once(body).chain(blobs) {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out.into()
}

impl Node {
    /// A record for a shard.
    ///
    /// # Errors
    /// Refusals of the command whatever the state is; `batch_too_large` for more than fits into a question.
    pub(super) fn part(&self, shard: u32, command: &Command<'_>) -> Result<Part, Error> {
        command.check(&self.limits())?;
        let part = Part::new(shard, command);
        let size = part.question.len() as u64;
        if size > TRANSACTION_PART_BYTES_MAX {
            let (what, limit) = ("bytes of the operations of a namespace", TRANSACTION_PART_BYTES_MAX);
            return Err(Error::BatchTooLarge { what, size, limit });
        }
        Ok(part)
    }

    /// Proposes a record at the leader of its shard, once one is known. Of a record that another node may
    /// have proposed the outcome is unknown.
    pub(super) async fn at_leader<T: Told>(&self, part: &Part, within: Duration) -> T {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let outcome = match self.leaders()[part.shard as usize].elsewhere() {
                None => self.here(part).await,
                Some(node) if self.link(node).is_some_and(|link| link.silent_ms.is_some()) => None,
                Some(node) => self.there(node, part, left).await,
            };
            match outcome {
                Some(outcome) => return outcome,
                None if left.is_zero() => return T::failed(Error::NoLeader {}),
                None => tokio::time::sleep(ASK_PAUSE.min(left)).await,
            }
        }
    }

    /// Proposes a record on another node; `None`: that does not lead.
    async fn there<T: Told>(&self, node: u64, part: &Part, within: Duration) -> Option<T> {
        let unknown = || Some(T::failed(Error::OutcomeUnknown {}));
        let turn = self.inner.driving.turn_at(node, part.len());
        let Ok(Some(_turn)) = tokio::time::timeout(within, turn).await else { return None };
        match self.ask(node, part.question.clone(), within).await {
            Some(answer) if answer.is_empty() => None,
            Some(answer) => T::decode(&answer).or_else(unknown),
            None => unknown(),
        }
    }

    /// Proposes a record on this node; `None`: it does not lead.
    pub(super) async fn here<T: Told>(&self, part: &Part) -> Option<T> {
        // Until the outcome is known: a hold begins behind it.
        let deciding = &self.inner.driving.deciding[part.shard as usize];
        let _deciding = if part.decides { Some(deciding.read().await) } else { None };
        let (sender, receiver) = oneshot::channel();
        if let Err(error) = self.push(part.shard, Request::Propose(part.proposal(ReplyTo::Once(sender)))) {
            return Some(T::failed(error));
        }
        let Ok(answer) = receiver.await else { return Some(T::failed(Error::OutcomeUnknown {})) };
        match answer.result {
            Err(Error::NotLeader { .. } | Error::NoLeader {}) => None,
            _ => Some(T::of(part, answer)),
        }
    }
}

/// Replies to parts, each with its number.
const REPLIES: [Reply; 8] = [
    Reply::Prepared,
    Reply::Committed { duplicate: false },
    Reply::Committed { duplicate: true },
    Reply::Finished { known: false },
    Reply::Finished { known: true },
    Reply::Decided { decision: Decision::Committed },
    Reply::Decided { decision: Decision::Aborted },
    Reply::Decided { decision: Decision::Open },
];

impl Told for Outcome {
    fn of(_: &Part, answer: Answer) -> Outcome {
        let operations = answer.operations.unwrap_or_default();
        match answer.result {
            Ok(reply) => Ok((reply, operations.done)),
            Err(error) => Err(Refused { error, operation: operations.refused_at }),
        }
    }

    fn failed(error: Error) -> Outcome {
        Err(error.into())
    }

    fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Ok((reply, done)) => {
                out.push(DONE);
                let known = REPLIES.iter().position(|known| known == reply);
                // Any other is that of a record that replies nothing.
                out.push(known.map_or(u8::MAX, |at| at as u8));
                encode_outcomes(done, &mut out);
            }
            Err(refused) => {
                out.push(REFUSED);
                out.extend_from_slice(&refused.operation.unwrap_or(NONE).to_le_bytes());
                refused.error.encode(&mut out);
            }
        }
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<Outcome> {
        match bytes.split_first()? {
            (&DONE, rest) => {
                let (reply, rest) = rest.split_first()?;
                let reply = REPLIES.get(usize::from(*reply)).copied().unwrap_or_default();
                Some(Ok((reply, decode_outcomes(rest)?)))
            }
            (&REFUSED, rest) => {
                let (operation, rest) = rest.split_first_chunk()?;
                let operation = Some(u32::from_le_bytes(*operation)).filter(|at| *at != NONE);
                Some(Err(Refused { error: Error::decode(rest)?, operation }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::id::{MessageId, NamespaceId, TransactionId};
    use sluice_engine::transactions::OperationDone;

    use super::*;

    #[test]
    fn records_and_answers_come_back_as_they_were_and_nothing_else_does() {
        let id = TransactionId { coordinator: NamespaceId(1), number: 2 };
        let command = Command::TransactionFinish { namespace: NamespaceId(7), id, commit: true };
        let part = Part::new(3, &command);
        let blobs = vec![Bytes::from_static(b"blob"), Bytes::new()];
        let bytes = question(PART, part.shard, part.class, &part.body, &blobs);
        let read = Part::decode(&bytes).unwrap();
        assert_eq!((read.shard, read.class), (3, Class::Draining));
        assert_eq!((read.body, read.blobs), (part.body, blobs));
        assert!(Part::decode(&bytes[..bytes.len() - 1]).is_none() && Part::decode(&bytes[1..]).is_none());
        assert!(Part::decode(&bytes[..6]).is_none(), "a question without a record");
        let tick = question(PART, 3, Class::Growing, &Bytes::from_static(&[3, 1]), &[]);
        assert!(Part::decode(&tick).is_none(), "a record of another kind");

        let sent = OperationDone::Sent { id: MessageId { namespace: NamespaceId(7), sequence: 9 } };
        let refused = |error: Error, operation| Err(Refused { error, operation });
        let quota = Error::QuotaExceeded { what: "messages", limit: 1, held: 2, more: 3 };
        for outcome in [
            Ok((Reply::Prepared, Vec::new())),
            Ok((Reply::Committed { duplicate: true }, vec![sent, OperationDone::Settled])),
            Ok((Reply::None, Vec::new())),
            refused(Error::NoLeader {}, None),
            refused(Error::LockHeld { key: "k".into(), owner: String::new(), waiting: 3 }, Some(4)),
            refused(quota, Some(0)),
        ] {
            assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome));
        }
        assert_eq!([Outcome::decode(&[]), Outcome::decode(&[9])], [None, None]);
    }
}
