//! The decisions about transactions over several namespaces that nobody drives any more: which record the
//! leader of a shard proposes next, given what came of the one before. No clock, task or socket is in here.

use std::collections::{BTreeSet, VecDeque};

use sluice_engine::NamespaceId;
use sluice_engine::command::Command;
use sluice_engine::id::TransactionId;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::{DecidedView, Decision, PreparedView};

use super::driver::Outcome;
use crate::plant::{self, Plant};

/// Time after which a transaction that is not decided is aborted, in microseconds. The coordinator's log
/// measures it, and each other one for itself before it asks: their clocks may be far apart.
pub const DECIDED_WITHIN_US: u64 = 10_000_000;
/// Time for which a driver is left alone with what it has decided, in microseconds.
pub const DRIVEN_US: u64 = 2_000_000;

/// A record that is to be proposed at the leader of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errand {
    /// The transaction.
    pub id: TransactionId,
    /// The shard.
    pub shard: u32,
    /// The record.
    pub step: Step,
}

/// A record of an errand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Finish the part of a namespace that is known to be decided to commit, or not.
    Finish {
        /// The namespace.
        namespace: NamespaceId,
        /// True: it is committed.
        commit: bool,
    },
    /// Ask whether it is committed.
    Ask {
        /// As of [`PreparedView`].
        until_us: u64,
        /// Namespace of the part that waits for the answer.
        namespace: NamespaceId,
    },
    /// Forget the decision, which nobody asks for any more.
    Forget,
}

impl Errand {
    /// The record.
    pub fn command(&self) -> Command<'static> {
        let id = self.id;
        match self.step {
            Step::Finish { namespace, commit } => Command::TransactionFinish { namespace, id, commit },
            Step::Ask { until_us, .. } => Command::TransactionAsk { id, until_us },
            Step::Forget => Command::TransactionFinish { namespace: id.coordinator, id, commit: true },
        }
    }
}

/// Errands about one transaction, in order. The rest depends on the outcome of each.
#[derive(Debug)]
struct Job(VecDeque<Errand>);

/// Errands of the leader of a shard, from one look at its transactions.
#[derive(Debug)]
pub struct Errands {
    own: u32,
    /// Errands about the transaction that is at hand.
    begun: Job,
    jobs: VecDeque<Job>,
    /// Shards that have not answered.
    silent: BTreeSet<u32>,
}

impl Errands {
    /// Errands of the leader of shard `own` about transactions that are decided and prepared on it, at the
    /// time of its log, in microseconds since the Unix epoch.
    pub fn new(own: u32, decided: &[DecidedView], prepared: &[PreparedView], now_us: u64) -> Errands {
        Errands::asking_after(DECIDED_WITHIN_US, own, decided, prepared, now_us)
    }

    /// As [`Errands::new`], with another time after which it is asked for the decision, in microseconds.
    pub fn asking_after(
        asked_after_us: u64,
        own: u32,
        decided: &[DecidedView],
        prepared: &[PreparedView],
        now_us: u64,
    ) -> Errands {
        let decided = decided.iter().filter(|it| it.decided_at_us + DRIVEN_US <= now_us);
        let prepared = prepared.iter().filter(|it| is_overdue(it, asked_after_us, now_us));
        let jobs = decided.map(|it| Job::finish(it, own)).chain(prepared.map(Job::resolve)).collect();
        Errands { own, begun: Job(VecDeque::new()), jobs, silent: BTreeSet::new() }
    }

    /// Errands of the leader of shard `own` about a transaction that is decided on it.
    pub(super) fn of_decided(own: u32, decided: &DecidedView) -> Errands {
        Errands { own, begun: Job::finish(decided, own), jobs: VecDeque::new(), silent: BTreeSet::new() }
    }

    /// The errand to run, the same until its outcome is told; `None`: there is none left.
    pub fn current(&mut self) -> Option<Errand> {
        while self.begun.0.is_empty() {
            let job = self.jobs.pop_front()?;
            if !job.0.iter().any(|errand| self.silent.contains(&errand.shard)) {
                self.begun = job;
            }
        }
        self.begun.0.front().copied()
    }

    /// Goes on with the outcome of the errand that was next.
    pub fn told(&mut self, outcome: &Outcome) {
        let Some(errand) = self.begun.0.pop_front() else { return };
        match (errand.step, decision(outcome)) {
            (Step::Ask { namespace, .. }, Some(decision)) => {
                if let Some(commit) = is_commit(decision) {
                    let step = Step::Finish { namespace, commit };
                    self.begun.0.push_back(Errand { shard: self.own, step, ..errand });
                }
            }
            (Step::Finish { .. }, _) if outcome.is_ok() => {}
            (Step::Ask { .. }, None) | (Step::Finish { .. }, _) => {
                self.silent.insert(errand.shard);
                self.begun.0.clear();
            }
            (Step::Forget, _) => {}
        }
    }
}

impl Job {
    /// Finishes all parts of a transaction that is committed, one after the other; it is forgotten once all
    /// are finished.
    fn finish(decided: &DecidedView, own: u32) -> Job {
        let id = decided.id;
        let finish = |(namespace, shard): &(NamespaceId, u32)| {
            let step = Step::Finish { namespace: *namespace, commit: true };
            Errand { id, shard: *shard, step }
        };
        let forget = Errand { id, shard: own, step: Step::Forget };
        Job(decided.participants.iter().map(finish).chain([forget]).collect())
    }

    /// Asks for the decision on a part that is prepared for too long, which is then finished.
    fn resolve(prepared: &PreparedView) -> Job {
        let PreparedView { id, namespace, until_us, shard, .. } = *prepared;
        Job([Errand { id, shard, step: Step::Ask { until_us, namespace } }].into())
    }
}

/// True for a part whose driver had so much time, in microseconds, by the clock of the part's log.
pub(super) fn is_overdue(prepared: &PreparedView, within_us: u64, now_us: u64) -> bool {
    prepared.prepared_at_us + within_us <= now_us
}

/// The decision that a question was answered with.
pub(super) fn decision(outcome: &Outcome) -> Option<Decision> {
    match outcome {
        Ok((Reply::Decided { decision }, _)) => Some(*decision),
        Ok(_) | Err(_) => None,
    }
}

/// True for a decision to commit; `None`: it is not decided yet.
fn is_commit(decision: Decision) -> Option<bool> {
    match decision {
        Decision::Committed => Some(!plant::is(Plant::AbortCommitted)),
        Decision::Aborted => Some(false),
        Decision::Open => None,
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::Error;

    use super::*;

    const OWN: u32 = 0;
    const ID: TransactionId = TransactionId { coordinator: NamespaceId(1), number: 7 };

    fn decided(shards: &[u32]) -> DecidedView {
        let participants = shards.iter().map(|shard| (NamespaceId(10 + shard), *shard)).collect();
        DecidedView { id: ID, decided_at_us: 0, participants }
    }

    fn prepared(shard: u32) -> PreparedView {
        // The coordinator's clock is far ahead.
        let (namespace, prepared_at_us, until_us) = (NamespaceId(2), 0, 20 * DECIDED_WITHIN_US);
        PreparedView { id: ID, shard, namespace, prepared_at_us, until_us, operations: 1 }
    }

    /// The shards and steps of all errands, each of which has the outcome that `tell` gives.
    fn run(mut errands: Errands, tell: impl Fn(&Errand) -> Outcome) -> Vec<(u32, Step)> {
        let mut run = Vec::new();
        while let Some(errand) = errands.current() {
            run.push((errand.shard, errand.step));
            errands.told(&tell(&errand));
        }
        run
    }

    fn finish(namespace: u32, commit: bool) -> Step {
        Step::Finish { namespace: NamespaceId(namespace), commit }
    }

    #[test]
    fn a_decision_is_forgotten_behind_all_parts_and_only_then() {
        let done = |_: &Errand| Ok((Reply::Finished { known: true }, Vec::new()));
        let all = run(Errands::new(OWN, &[decided(&[1, 2])], &[], DRIVEN_US), done);
        assert_eq!(all, [(1, finish(11, true)), (2, finish(12, true)), (OWN, Step::Forget)]);
        assert_eq!(run(Errands::new(OWN, &[decided(&[1, 2])], &[], DRIVEN_US - 1), done), []);

        let none_of_2 = |errand: &Errand| match errand.shard {
            2 => Err(Error::NoLeader {}.into()),
            _ => done(errand),
        };
        // A shard that is silent is asked once.
        let decisions = [decided(&[1, 2]), decided(&[2]), decided(&[1])];
        let some = run(Errands::new(OWN, &decisions, &[], DRIVEN_US), none_of_2);
        let last = [(1, finish(11, true)), (OWN, Step::Forget)];
        assert_eq!(some, [&[(1, finish(11, true)), (2, finish(12, true))][..], &last].concat());
    }

    #[test]
    fn a_part_is_finished_as_was_decided_and_not_before() {
        let PreparedView { namespace, until_us, .. } = prepared(3);
        let ask = (3, Step::Ask { until_us, namespace });
        let errands = |now_us| Errands::new(OWN, &[], &[prepared(3), prepared(3)], now_us);
        let run_with = |decision: Outcome| {
            run(errands(DECIDED_WITHIN_US), move |errand| match errand.step {
                Step::Ask { .. } => decision.clone(),
                Step::Finish { .. } | Step::Forget => Ok((Reply::Finished { known: true }, Vec::new())),
            })
        };
        let told = |decision| run_with(Ok((Reply::Decided { decision }, Vec::new())));
        assert_eq!(told(Decision::Open), [ask, ask]);
        for (decision, commit) in [(Decision::Committed, true), (Decision::Aborted, false)] {
            assert_eq!(told(decision), [ask, (OWN, finish(2, commit)), ask, (OWN, finish(2, commit))]);
        }
        assert_eq!(run_with(Err(Error::NoLeader {}.into())), [ask]);
        assert_eq!(run(errands(DECIDED_WITHIN_US - 1), |_| Err(Error::NoLeader {}.into())), []);
    }
}
