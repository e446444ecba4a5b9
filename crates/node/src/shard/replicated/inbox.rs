//! Way of other threads to a replicated store: what they put in, the shard takes with its next step.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_engine::Engine;
use sluice_replica::{Change, Envelope, Fetched, NodeId, StateMessage, Worked};
use tokio::sync::oneshot;

use super::changes::{ChangeAnswer, ShardMembers};

/// Upper limit of inputs that wait.
const INPUTS_MAX: usize = 4_096;
/// Bytes of batches that wait, from which no further envelope is taken.
const BYTES_MAX: usize = 64 << 20;

/// Number of ticks to a slow one, while the member is quiet.
const SLOW_TICKS: u32 = 100;

/// Input of a member.
#[derive(Debug)]
pub(super) enum Input {
    /// Envelope of another member.
    Envelope(Box<Envelope>),
    /// Batches that were read back for a follower.
    Fetched(Box<Fetched>),
    /// Message of another member about a state on its way.
    State(Box<StateMessage>),
    /// Work on a state that is done, with the engine that was made of the state.
    Worked(Box<Worked>, Option<Box<Engine>>),
    /// Order to hand the leadership to this member.
    Transfer(NodeId),
    /// Order to hand the leadership to the member that is fittest.
    HandOver,
    /// End of the connection with this node.
    Lost(NodeId),
    /// Doubt about another node.
    Doubt,
    /// Order to change the members.
    Change(Change, ChangeAnswer),
    /// Question about the members.
    Members(oneshot::Sender<ShardMembers>),
    /// A tick of the clock.
    Tick,
}

/// Inputs that wait for the shard. All methods may be called on any thread, and none blocks.
pub struct Inbox {
    waiting: Mutex<Waiting>,
    /// True when something waits.
    is_filled: AtomicBool,
    /// True while the member is quiet.
    is_quiet: AtomicBool,
    /// Number of ticks since the last slow one.
    passed: AtomicU32,
    pub(super) wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default)]
struct Waiting {
    inputs: VecDeque<Input>,
    /// Length of the batches of the envelopes, and of parts of states, in bytes.
    bytes: usize,
    has_tick: bool,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Inbox {
    /// An empty inbox. `wake` wakes the shard, on any thread.
    pub fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Inbox {
        Inbox {
            waiting: Mutex::default(),
            is_filled: AtomicBool::new(false),
            is_quiet: AtomicBool::new(false),
            passed: AtomicU32::new(0),
            wake,
        }
    }

    /// Puts in an envelope of another member. Where too many wait it is lost, as on its way.
    pub fn envelope(&self, envelope: Envelope) {
        self.message(bytes_of(&envelope), Input::Envelope(Box::new(envelope)));
    }

    /// Puts in a message of another member about a state. It may be lost as an envelope.
    pub fn state(&self, message: StateMessage) {
        self.message(message.content_bytes(), Input::State(Box::new(message)));
    }

    fn message(&self, bytes: usize, input: Input) {
        let mut waiting = self.waiting();
        if waiting.inputs.len() >= INPUTS_MAX || waiting.bytes >= BYTES_MAX {
            return;
        }
        waiting.bytes += bytes;
        self.put(waiting, input);
    }

    /// Puts in what came of work on a state: one for each [`super::Carrier::work`].
    pub(super) fn worked(&self, worked: Worked, engine: Option<Box<Engine>>) {
        self.put(self.waiting(), Input::Worked(Box::new(worked), engine));
    }

    /// Puts in what [`super::Carrier::fetch`] has read: one for each order to read.
    pub fn fetched(&self, fetched: Fetched) {
        self.put(self.waiting(), Input::Fetched(Box::new(fetched)));
    }

    /// Lets one tick of the clock pass: all nodes have ticks of the same length. While one waits, others are
    /// lost: the time in which the shard stood still is nobody's silence. A quiet member gets slow ticks
    /// only.
    pub fn tick(&self) {
        if self.is_quiet.load(Ordering::Relaxed) && self.passed.fetch_add(1, Ordering::Relaxed) < SLOW_TICKS {
            return;
        }
        self.passed.store(0, Ordering::Relaxed);
        let mut waiting = self.waiting();
        if !std::mem::replace(&mut waiting.has_tick, true) {
            self.put(waiting, Input::Tick);
        }
    }

    /// Puts in that the connection with a node is lost.
    pub fn lost(&self, node: NodeId) {
        self.put(self.waiting(), Input::Lost(node));
    }

    /// Puts in a doubt about a node: see [`sluice_replica::Member::doubt`].
    pub fn doubt(&self) {
        self.put(self.waiting(), Input::Doubt);
    }

    /// Notes whether the member is quiet.
    pub(super) fn set_quiet(&self, is_quiet: bool) {
        self.is_quiet.store(is_quiet, Ordering::Relaxed);
    }

    /// Orders to hand the leadership to this member, where this one leads and that one follows.
    pub fn transfer_leader(&self, to: NodeId) {
        self.put(self.waiting(), Input::Transfer(to));
    }

    /// Orders to hand the leadership, if this member has it, to the one that is fittest.
    pub fn hand_over(&self) {
        self.put(self.waiting(), Input::HandOver);
    }

    /// Orders to change the members, where this one leads. The answer comes when the change is in force, or
    /// never will be; none comes when the leadership ends before that is known.
    pub fn change_members(&self, change: Change, answer: ChangeAnswer) {
        self.put(self.waiting(), Input::Change(change, answer));
    }

    /// Asks for the members in force.
    pub fn members(&self, answer: oneshot::Sender<ShardMembers>) {
        self.put(self.waiting(), Input::Members(answer));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, input: Input) {
        waiting.inputs.push_back(input);
        self.is_filled.store(true, Ordering::Release);
        drop(waiting);
        (self.wake)();
    }

    /// Takes everything, in the order in which it came.
    pub(super) fn take(&self) -> VecDeque<Input> {
        if !self.is_filled.load(Ordering::Acquire) {
            return VecDeque::new();
        }
        let mut waiting = self.waiting();
        self.is_filled.store(false, Ordering::Release);
        std::mem::take(&mut *waiting).inputs
    }
}

fn bytes_of(envelope: &Envelope) -> usize {
    envelope.batches.iter().map(bytes::Bytes::len).sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_replica::{Body, Message};

    use super::*;

    fn envelope(bytes: usize) -> Envelope {
        let node = NodeId::new(1).unwrap();
        let message = Message { from: node, to: node, term: 1, body: Body::TimeoutNow };
        Envelope::new(message, vec![Bytes::from(vec![0; bytes])])
    }

    #[test]
    fn what_is_too_much_is_lost_and_the_number_of_ticks_is_one() {
        let inbox = Inbox::new(Arc::new(|| {}));
        (0..3).for_each(|_| inbox.tick());
        (0..2 * INPUTS_MAX).for_each(|_| inbox.envelope(envelope(1)));
        assert_eq!(inbox.take().len(), INPUTS_MAX);
        assert!(inbox.take().is_empty());
        (0..10).for_each(|_| inbox.envelope(envelope(BYTES_MAX / 4)));
        inbox.tick();
        assert_eq!(inbox.take().len(), 5);
    }
}
