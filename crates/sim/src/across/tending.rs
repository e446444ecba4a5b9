//! The leader of a shard that looks for transactions which nobody drives any more, and runs its errands about
//! them, one record after the other. It may stop between any two.

use sluice_engine::Error;
use sluice_node::across::driver::Outcome;
use sluice_node::across::errands::{Errand, Errands, Step};
use sluice_node::shard::request::{Read, Request, ShardView};
use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use crate::workload::{Op, TwoPhaseOp};

/// Time after which a leader asks for the decision on what is prepared, in microseconds: early enough to come
/// before drivers that are slow, whenever these may decide no more.
pub(crate) const ASKED_AFTER_US: u64 = 50_000;

/// One look of a leader, and its errands.
#[derive(Debug)]
pub(crate) enum Tending {
    /// The look is not answered yet.
    Looks(Receiver<Result<Errands, Error>>),
    /// The errand that is next; true: its record is proposed.
    Runs(Errands, bool),
}

impl Tending {
    /// Begins with a look at a shard, by this request.
    pub(crate) fn begin(shard: u32) -> (Tending, Request) {
        let (sender, receiver) = oneshot::channel();
        let read = Read(Box::new(move |looking: Result<&mut ShardView<'_>, Error>| {
            let errands = looking.map(|at| {
                let decided = at.engine.decided_transactions();
                let prepared = at.engine.prepared_transactions();
                Errands::asking_after(ASKED_AFTER_US, shard, &decided, &prepared, at.now_us)
            });
            let _ = sender.send(errands);
        }));
        (Tending::Looks(receiver), Request::Read(read))
    }

    /// The next record, with its shard; it is taken for proposed. `None`: there is none at present.
    pub(crate) fn record(&mut self) -> Option<(u32, Op)> {
        self.hear();
        match self {
            Tending::Looks(_) | Tending::Runs(_, true) => None,
            Tending::Runs(errands, is_asked) => {
                let errand = errands.current()?;
                *is_asked = true;
                Some((errand.shard, op(&errand)))
            }
        }
    }

    /// Takes the answer to the look; an error leaves nothing to be done.
    fn hear(&mut self) {
        let Tending::Looks(receiver) = self else { return };
        match receiver.try_recv() {
            Ok(Ok(errands)) => *self = Tending::Runs(errands, false),
            Ok(Err(_)) | Err(TryRecvError::Closed) => {
                *self = Tending::Runs(Errands::new(0, &[], &[], 0), false)
            }
            Err(TryRecvError::Empty) => {}
        }
    }

    /// Proposes the record later, which nobody has taken.
    pub(crate) fn put_back(&mut self) {
        if let Tending::Runs(_, is_asked) = self {
            *is_asked = false;
        }
    }

    /// Goes on with the outcome of the record.
    pub(crate) fn told(&mut self, outcome: &Outcome) {
        if let Tending::Runs(errands, is_asked) = self {
            *is_asked = false;
            errands.told(outcome);
        }
    }

    /// True when nothing is left to be done.
    pub(crate) fn is_over(&mut self) -> bool {
        self.hear();
        match self {
            Tending::Looks(_) => false,
            Tending::Runs(errands, is_asked) => !*is_asked && errands.current().is_none(),
        }
    }
}

fn op(errand: &Errand) -> Op {
    let id = errand.id;
    Op::TwoPhase(match errand.step {
        Step::Finish { namespace, commit } => TwoPhaseOp::Finish { namespace, id, commit },
        Step::Ask { until_us, .. } => TwoPhaseOp::Ask { id, until_us },
        Step::Forget => TwoPhaseOp::Finish { namespace: id.coordinator, id, commit: true },
    })
}
