//! The decisions of who drives a transaction over several namespaces: the next step, given what came of the
//! one before, and the answer to the caller. No clock, task or socket is in here, so that the simulator stops
//! the same driver between every two records.

use sluice_engine::Error;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;

use crate::plant::{self, Plant};
use crate::transactions::{Committed, Refused};

/// Outcome of a record.
pub type Outcome = Result<(Reply, Vec<OperationDone>), Refused>;

/// The refusal of a transaction over several namespaces.
#[derive(Clone, PartialEq, Debug)]
pub struct RefusedPart {
    /// The part that is to blame: 0 is the coordinator's, then the others in order.
    pub part: usize,
    /// Why.
    pub refused: Refused,
}

/// The step that a driver has to take next, and what is told of it then.
#[derive(Debug)]
pub enum Next {
    /// Prepare each part but the coordinator's, at the leader of its shard.
    Prepare(Preparing),
    /// Decide: propose the coordinator's part on this node alone, and once. A second record could be behind
    /// what the first has led to.
    Decide(Deciding),
    /// Finish each prepared part, at the leader of its shard.
    Finish(Finishing),
    /// Read at the coordinator's shard what came of the first request with the idempotency key.
    LookUp(LookingUp),
    /// Answer the caller. It ends there.
    Answer {
        /// The outcomes of the parts, that of the coordinator first.
        answer: Result<Vec<Committed>, RefusedPart>,
        /// True: nobody asks for the decision any more, and the coordinator's part is to be finished.
        forget: bool,
    },
}

/// A request, as far as the steps depend on it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Number of its parts besides the coordinator's.
    others: usize,
    has_key: bool,
}

/// Awaits what came of the parts that were to be prepared.
#[derive(Debug)]
pub struct Preparing(Asked);

/// Awaits the outcome of the decision.
#[derive(Debug)]
pub struct Deciding(());

/// Awaits what came of the parts that were to be finished.
#[derive(Debug)]
pub struct Finishing(End);

/// Awaits what came of the first request with the idempotency key.
#[derive(Debug)]
pub struct LookingUp {
    asked: Asked,
    why: Why,
}

/// The step behind the last one that finishes parts.
#[derive(Debug)]
enum End {
    /// Committed, with the outcomes of the coordinator's part.
    Committed(Vec<OperationDone>),
    /// Aborted, and answered so.
    Aborted(RefusedPart),
    /// Aborted, which the first request with the key may have been, or not.
    LookUp(LookingUp),
}

#[derive(Debug)]
enum Why {
    /// Some part was done before: what came of each.
    Repeat(Vec<Outcome>),
    /// A part was refused.
    Refused(RefusedPart),
}

impl Next {
    /// The first step for a request with so many parts besides the coordinator's; `has_key`: it has an
    /// idempotency key.
    pub fn first(others: usize, has_key: bool) -> Next {
        Next::Prepare(Preparing(Asked { others, has_key }))
    }
}

impl Preparing {
    /// Goes on with the outcomes of all parts, in order.
    pub fn prepared(self, outcomes: Vec<Outcome>) -> Next {
        let Preparing(asked) = self;
        let is_repeat = |outcome: &Outcome| matches!(outcome, Ok((Reply::Committed { .. }, _)));
        if outcomes.iter().any(is_repeat) {
            let why = Why::Repeat(outcomes);
            return Next::Finish(Finishing(End::LookUp(LookingUp { asked, why })));
        }
        let Some(at) = outcomes.iter().position(Result::is_err) else { return Next::Decide(Deciding(())) };
        let refused = outcomes.into_iter().find_map(Result::err);
        let refused = RefusedPart { part: at + 1, refused: refused.unwrap_or_else(|| unknown().refused) };
        if asked.has_key {
            let why = Why::Refused(refused);
            return Next::Finish(Finishing(End::LookUp(LookingUp { asked, why })));
        }
        // It is not decided, so nothing is done.
        let is_unknown = refused.refused.error == Error::OutcomeUnknown {};
        let refused =
            if is_unknown { RefusedPart { refused: Error::NoLeader {}.into(), ..refused } } else { refused };
        Next::Finish(Finishing(End::Aborted(refused)))
    }
}

impl Deciding {
    /// Goes on with the outcome of the record; `None`: this node does not lead.
    pub fn decided(self, outcome: Option<Outcome>) -> Next {
        let end = match outcome {
            Some(Ok((Reply::Committed { duplicate: false }, _))) if plant::is(Plant::ForgetDecisionEarly) => {
                return Next::Answer { answer: Err(unknown()), forget: true };
            }
            Some(Ok((Reply::Committed { duplicate: false }, done))) => End::Committed(done),
            // The others have forgotten what they did.
            Some(Ok((Reply::Committed { duplicate: true }, _))) => End::Aborted(unknown()),
            // The record may be in the log.
            Some(Err(Refused { error: Error::OutcomeUnknown {} | Error::JournalFailed { .. }, .. }))
            | Some(Ok(_)) => return Next::Answer { answer: Err(unknown()), forget: false },
            Some(Err(refused)) => End::Aborted(RefusedPart { part: 0, refused }),
            None => End::Aborted(RefusedPart { part: 0, refused: Error::NoLeader {}.into() }),
        };
        Next::Finish(Finishing(end))
    }
}

impl Finishing {
    /// True if the parts are to be done, false if they are to be let go of.
    pub fn commit(&self) -> bool {
        matches!(self.0, End::Committed(_))
    }

    /// Goes on with the outcomes of all parts, in order.
    pub fn finished(self, outcomes: Vec<Outcome>) -> Next {
        let own = match self.0 {
            End::Committed(own) => own,
            End::Aborted(refused) => return Next::Answer { answer: Err(refused), forget: false },
            End::LookUp(looking_up) => return Next::LookUp(looking_up),
        };
        let mut parts = vec![own];
        for finished in outcomes {
            match finished {
                Ok((Reply::Finished { known: true }, done)) => parts.push(done),
                // It is committed, and will be finished.
                Ok(_) | Err(_) => return Next::Answer { answer: Err(unknown()), forget: false },
            }
        }
        Next::Answer { answer: Ok(committed(parts, false)), forget: true }
    }
}

impl LookingUp {
    /// Goes on with what the coordinator's shard remembers of the key.
    pub fn looked_up(self, found: Result<Option<Committed>, Error>) -> Next {
        let answer = match self.why {
            Why::Repeat(prepared) => done_before(self.asked, prepared, found),
            Why::Refused(refused) => Err(refused_unless_done(refused, &found)),
        };
        Next::Answer { answer, forget: false }
    }
}

/// The refusal of a part; unknown if the first request with this idempotency key was done meanwhile.
fn refused_unless_done(refused: RefusedPart, found: &Result<Option<Committed>, Error>) -> RefusedPart {
    let is_unknown = refused.refused.error == Error::OutcomeUnknown {};
    match found {
        Ok(None) | Err(Error::IdempotencyMismatch { .. }) if !is_unknown => refused,
        Ok(_) | Err(_) => unknown(),
    }
}

/// The outcomes of the first request with this idempotency key.
fn done_before(
    asked: Asked,
    prepared: Vec<Outcome>,
    own: Result<Option<Committed>, Error>,
) -> Result<Vec<Committed>, RefusedPart> {
    let own = own.map_err(|error| RefusedPart { part: 0, refused: error.into() })?;
    let mut parts: Vec<_> = own.into_iter().map(|own| own.operations).collect();
    for outcome in prepared {
        if let Ok((Reply::Committed { .. }, done)) = outcome {
            parts.push(done);
        }
    }
    let are_all = parts.len() == 1 + asked.others;
    if are_all { Ok(committed(parts, true)) } else { Err(unknown()) }
}

fn committed(parts: Vec<Vec<OperationDone>>, duplicate: bool) -> Vec<Committed> {
    parts.into_iter().map(|operations| Committed { operations, duplicate }).collect()
}

/// The answer if nobody knows whether it is done.
pub(super) fn unknown() -> RefusedPart {
    RefusedPart { part: 0, refused: Error::OutcomeUnknown {}.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREPARED: Outcome = Ok((Reply::Prepared, Vec::new()));

    fn prepared(has_key: bool, outcomes: [Outcome; 2]) -> Next {
        let Next::Prepare(step) = Next::first(2, has_key) else { panic!("it begins otherwise") };
        step.prepared(outcomes.into())
    }

    fn decided(outcome: Option<Outcome>) -> Next {
        let Next::Decide(step) = prepared(false, [PREPARED; 2]) else { panic!("it is not decided") };
        step.decided(outcome)
    }

    /// The step behind the one that finishes parts, to commit or not.
    fn finished(next: Next, commit: bool, known: [bool; 2]) -> Next {
        let Next::Finish(step) = next else { panic!("no part is finished: {next:?}") };
        assert_eq!(step.commit(), commit);
        step.finished(known.map(|known| Ok((Reply::Finished { known }, vec![OperationDone::Settled]))).into())
    }

    /// Code of the refusal with the part to blame; `None`: it is committed. With it, true if it is forgotten.
    fn answer(next: Next) -> (Option<(usize, &'static str)>, bool) {
        let Next::Answer { answer, forget } = next else { panic!("it is not answered: {next:?}") };
        (answer.err().map(|refused| (refused.part, refused.refused.error.code())), forget)
    }

    fn refused(error: Error) -> Outcome {
        Err(error.into())
    }

    #[test]
    fn it_is_forgotten_only_when_all_parts_are_known_to_be_done() {
        let committed = || decided(Some(Ok((Reply::Committed { duplicate: false }, Vec::new()))));
        assert_eq!(answer(finished(committed(), true, [true, true])), (None, true));
        let unknown = Some((0, "outcome_unknown"));
        assert_eq!(answer(finished(committed(), true, [true, false])), (unknown, false));
    }

    #[test]
    fn a_refused_part_lets_go_of_all() {
        let next = prepared(false, [PREPARED, refused(Error::TransactionAborted {})]);
        assert_eq!(answer(finished(next, false, [true; 2])), (Some((2, "transaction_aborted")), false));
        let next = prepared(false, [refused(Error::OutcomeUnknown {}), PREPARED]);
        assert_eq!(answer(finished(next, false, [true; 2])), (Some((1, "no_leader")), false));
        let next = decided(Some(refused(Error::TransactionAborted {})));
        assert_eq!(answer(finished(next, false, [true; 2])), (Some((0, "transaction_aborted")), false));
        assert_eq!(answer(finished(decided(None), false, [true; 2])), (Some((0, "no_leader")), false));
    }

    #[test]
    fn nothing_is_finished_if_the_decision_may_be_in_the_log() {
        let unknown = (Some((0, "outcome_unknown")), false);
        assert_eq!(answer(decided(Some(refused(Error::OutcomeUnknown {})))), unknown);
    }

    #[test]
    fn a_request_with_a_key_is_looked_up_before_it_is_refused() {
        let looks_up = |found| {
            let next = prepared(true, [refused(Error::TransactionAborted {}), PREPARED]);
            let Next::LookUp(step) = finished(next, false, [true; 2]) else { panic!("it is not looked up") };
            answer(step.looked_up(found)).0
        };
        assert_eq!(looks_up(Ok(None)), Some((1, "transaction_aborted")));
        let done = Committed { operations: Vec::new(), duplicate: true };
        assert_eq!(looks_up(Ok(Some(done))), Some((0, "outcome_unknown")));
        assert_eq!(looks_up(Err(Error::NoLeader {})), Some((0, "outcome_unknown")));
    }

    #[test]
    fn a_repeat_gets_what_came_of_all_parts_or_nothing() {
        let before = || Ok((Reply::Committed { duplicate: true }, Vec::new()));
        let own = Ok(Some(Committed { operations: Vec::new(), duplicate: true }));
        let looks_up = |outcomes| {
            let next = prepared(true, outcomes);
            let Next::LookUp(step) = finished(next, false, [false; 2]) else { panic!("it is not looked up") };
            answer(step.looked_up(own.clone())).0
        };
        assert_eq!(looks_up([before(), before()]), None);
        assert_eq!(looks_up([before(), PREPARED]), Some((0, "outcome_unknown")));
    }
}
