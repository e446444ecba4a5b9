//! One request being driven: the node's own driver, which takes a step when the records of the one before
//! are answered. Whoever drives it may stop between any two records.

use sluice_engine::Error;
use sluice_engine::id::TransactionId;
use sluice_node::Committed;
use sluice_node::across::driver::{Next, Outcome};
use sluice_node::shard::request::Answer;
use sluice_node::{Refused, RefusedPart};

use super::requests::Request;
use crate::rng::Rng;
use crate::workload::{Op, TransactionOp, TwoPhaseOp};

/// A record to be proposed.
#[derive(Debug)]
pub(crate) struct Record {
    /// Place of its outcome.
    pub(crate) place: usize,
    pub(crate) shard: u32,
    pub(crate) op: Op,
    /// True: it is proposed on the driver's node alone.
    pub(crate) is_here: bool,
}

/// State of a record of a step.
#[derive(Debug)]
enum Asked {
    Not,
    /// Proposed, and not answered.
    Open,
    /// `None`: the driver's node does not lead.
    Told(Option<Outcome>),
}

/// A request being driven.
#[derive(Debug)]
pub(crate) struct Driving {
    request: Request,
    id: TransactionId,
    until_us: u64,
    next: Next,
    /// Records of this step.
    records: Vec<Asked>,
    /// True once the answer was taken.
    is_answered: bool,
    /// Number of records that were answered so far.
    told: u32,
}

/// Outcomes of the first request with a key, as they are read.
pub(crate) type Found = Result<Option<Committed>, Error>;

impl Driving {
    /// Begins to drive a request as the transaction with this number, which is aborted unless it is decided
    /// before `until_us`.
    pub(crate) fn new(request: Request, number: u64, until_us: u64) -> Driving {
        let id = TransactionId { coordinator: request.places[0].0, number };
        let next = Next::first(request.places.len() - 1, request.has_key());
        let mut driving =
            Driving { request, id, until_us, next, records: Vec::new(), is_answered: false, told: 0 };
        driving.enter();
        driving
    }

    /// Number of the request.
    pub(crate) fn number(&self) -> u64 {
        self.request.number
    }

    /// Number of namespaces of the request.
    pub(crate) fn parts(&self) -> usize {
        self.request.parts.len()
    }

    /// Number of records that were answered so far.
    pub(crate) fn told_count(&self) -> u32 {
        self.told
    }

    /// Prepares the records of a step that begins.
    fn enter(&mut self) {
        let count = match &self.next {
            Next::Prepare(_) | Next::Finish(_) => self.request.places.len() - 1,
            Next::Decide(_) | Next::Answer { forget: true, .. } => 1,
            Next::LookUp(_) | Next::Answer { forget: false, .. } => 0,
        };
        self.records = (0..count).map(|_| Asked::Not).collect();
    }

    /// The next record to be proposed; `None`: all of this step are.
    pub(crate) fn record(&mut self, rng: &mut Rng) -> Option<Record> {
        let left = (0..self.records.len()).filter(|at| matches!(self.records[*at], Asked::Not));
        let left: Vec<usize> = left.collect();
        let place = *left.get(rng.index(left.len().max(1)))?;
        let (shard, op) = self.op(place)?;
        self.records[place] = Asked::Open;
        Some(Record { place, shard, op: Op::TwoPhase(op), is_here: matches!(self.next, Next::Decide(_)) })
    }

    /// A record of this step with its shard.
    fn op(&self, place: usize) -> Option<(u32, TwoPhaseOp)> {
        let Request { places, parts, .. } = &self.request;
        let (id, until_us, own, other) = (self.id, self.until_us, places[0], places.get(place + 1).copied());
        Some(match &self.next {
            Next::Prepare(_) => {
                let part = parts.get(place + 1)?.clone();
                (other?.1, TwoPhaseOp::Prepare { id, shard: own.1, until_us, part })
            }
            Next::Decide(_) => {
                let (participants, part) = (places[1..].to_vec(), parts[0].clone());
                (own.1, TwoPhaseOp::Decide { id, until_us, participants, part })
            }
            Next::Finish(step) => {
                (other?.1, TwoPhaseOp::Finish { namespace: other?.0, id, commit: step.commit() })
            }
            Next::Answer { .. } => (own.1, TwoPhaseOp::Finish { namespace: own.0, id, commit: true }),
            Next::LookUp(_) => return None,
        })
    }

    /// True while all records of this step are proposed, and not all are answered.
    pub(crate) fn waits(&self) -> bool {
        !self.records.is_empty() && !self.records.iter().any(|record| matches!(record, Asked::Not))
    }

    /// True: the decision is proposed, or about to be.
    pub(crate) fn decides(&self) -> bool {
        matches!(self.next, Next::Decide(_))
    }

    /// Proposes a record later, which nobody has taken.
    pub(crate) fn put_back(&mut self, place: usize) {
        self.records[place] = Asked::Not;
    }

    /// Goes on with the outcome of a record; `None`: its node does not lead.
    pub(crate) fn told(&mut self, place: usize, outcome: Option<Outcome>) {
        self.told += 1;
        self.records[place] = Asked::Told(outcome);
        if self.records.iter().all(|record| matches!(record, Asked::Told(_))) {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        let told = |record| if let Asked::Told(outcome) = record { outcome } else { None };
        let outcomes = std::mem::take(&mut self.records).into_iter().map(told);
        let sure = |outcome: Option<Outcome>| outcome.unwrap_or_else(|| Err(Error::NoLeader {}.into()));
        let done = Next::Answer { answer: Ok(Vec::new()), forget: false };
        self.next = match std::mem::replace(&mut self.next, done) {
            Next::Prepare(step) => step.prepared(outcomes.map(sure).collect()),
            Next::Decide(step) => step.decided(outcomes.flatten().next()),
            Next::Finish(step) => step.finished(outcomes.map(sure).collect()),
            Next::Answer { answer, .. } => Next::Answer { answer, forget: false },
            Next::LookUp(step) => Next::LookUp(step),
        };
        self.enter();
    }

    /// The coordinator's part, whose key is to be looked up now, and its shard.
    pub(crate) fn looks_up(&self) -> Option<(u32, &TransactionOp)> {
        matches!(self.next, Next::LookUp(_)).then(|| (self.request.places[0].1, &self.request.parts[0]))
    }

    /// Goes on with what was found of the key.
    pub(crate) fn looked_up(&mut self, found: Found) {
        let done = Next::Answer { answer: Ok(Vec::new()), forget: false };
        self.next = match std::mem::replace(&mut self.next, done) {
            Next::LookUp(step) => step.looked_up(found),
            other => other,
        };
        self.enter();
    }

    /// The answer to the caller, once.
    pub(crate) fn answer(&mut self) -> Option<&Result<Vec<Committed>, RefusedPart>> {
        match &self.next {
            Next::Answer { answer, .. } if !std::mem::replace(&mut self.is_answered, true) => Some(answer),
            _ => None,
        }
    }

    /// True when nothing is left to be done.
    pub(crate) fn is_over(&self) -> bool {
        self.is_answered && self.records.is_empty()
    }
}

/// The outcome that an answer tells.
pub(crate) fn outcome(answer: &Answer) -> Outcome {
    let operations = answer.operations.as_deref().cloned().unwrap_or_default();
    match &answer.result {
        Ok(reply) => Ok((*reply, operations.done)),
        Err(error) => Err(Refused { error: error.clone(), operation: operations.refused_at }),
    }
}
