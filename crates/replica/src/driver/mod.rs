//! The state machine: the library, driven by its owner's inputs. The library is named in this folder only.
//!
//! Rules of the drive, each of which the library or the algorithm relies on:
//!
//! - After each input everything that came of it is taken from the library ([`settle`]), so that nothing of
//!   one role is left over in the next.
//! - What a follower or candidate says waits until the disk has synced all that was given to it before; what
//!   a leader says goes at once, but for a sole voter, which elects itself: its vote is synced first.
//! - Only messages that [`check`] has passed are stepped, and none of the kinds that are forwarded.
//! - Election timeouts come from a seed ([`timeouts`]), so that runs repeat.
//! - Bytes in flight and uncommitted are bounded here ([`flow`]), since the library sees descriptors.
//!
//! Map: [`log`] the descriptors as the library reads them, [`convert`] types, [`check`] messages from
//! outside, [`settle`] what comes of an input, [`snapshots`] states for followers, [`membership`] changes of
//! the members, [`flow`] bytes in flight, `idle` replicas whose clock may rest, `progress` followers as a
//! leader sees them, [`timeouts`] the seed, `planted` bugs.

pub(crate) mod check;
mod convert;
mod flow;
mod idle;
mod log;
mod membership;
#[cfg(feature = "plant")]
mod planted;
mod progress;
mod settle;
mod snapshots;
mod timeouts;

use std::collections::VecDeque;

use raft::{RawNode, StateRole};

use self::check::{Rejected, View};
use self::log::Log;
pub(crate) use self::membership::members_of;
use self::timeouts::Timeouts;
use crate::config::{Config, Durable, StartError};
use crate::entry::{Descriptor, Entry, NodeId, Position, ReadId};
use crate::members::Members;
use crate::message::Message;
use crate::plant::{self, Plant};
use crate::ready::{Proposed, Ready, Refused, Role, Standing};
use crate::{BATCH_BYTES_MAX, READS_MAX, UNCOMMITTED_BYTES_MAX};

/// One node's copy of the log of one shard.
pub struct Replica {
    library: RawNode<Log>,
    id: NodeId,
    /// Members in force.
    members: Members,
    /// Index of the last change of the members that is applied, or a later one.
    changed: u64,
    /// Index and members with which the log began to count: what is before it may name the members of another
    /// cluster, from whose backup this one was made.
    began: (u64, Members),
    /// Highest commit index that the owner was given to write.
    commit_seen: u64,
    /// Number of the last write that keeps a commit index for good.
    commit_kept: u64,
    timeouts: Timeouts,
    /// Output of the inputs since the owner took the last.
    ready: Ready,
    /// Messages that wait until the write with this number is synced; numbers grow.
    held: VecDeque<(u64, Message)>,
    /// Number of the last write that has to be synced.
    written: u64,
    /// Number of the last write that is synced.
    synced: u64,
    /// Last term and vote that the owner was given to write.
    oath: (u64, Option<NodeId>),
    /// Number of the write of these.
    sworn: u64,
    /// Number of the last write that cut entries.
    cut: u64,
    /// Number of the last thing that was taken from the library.
    taken: u64,
    /// Index of the state that is being written.
    installing: Option<u64>,
    /// Followers that the owner knows to need a state.
    lagging: Vec<NodeId>,
    /// Standing that the owner knows.
    told: Standing,
    /// Number of the next read.
    next_read: u64,
    /// Index of the last entry that the owner was given to apply.
    #[cfg(feature = "plant")]
    given: u64,
}

impl Replica {
    /// A replica that starts with this state as a follower. The seed decides how long it waits before each
    /// campaign, and nothing else; nodes have different ones.
    ///
    /// # Errors
    ///
    /// Settings or a state that contradict themselves.
    pub fn new(config: &Config, durable: &Durable, seed: u64) -> Result<Replica, StartError> {
        config.check()?;
        durable.check()?;
        let (mut state, mut entries) = (durable.hard_state, durable.entries.as_slice());
        if durable.has_forgotten && config.id.get() <= membership::highest(durable) {
            return Err(StartError::Forgetful { node: config.id });
        }
        if plant::is(Plant::ForgetVote) || durable.has_forgotten {
            state.vote = None;
        }
        if plant::is(Plant::ForgetLastEntry) && entries.len() as u64 > durable.applied {
            entries = &entries[..entries.len() - 1];
        }
        let (members, changed) = membership::at_start(durable);
        let log = Log::new(state, durable, entries, &members);
        let settings = raft::Config {
            id: config.id.get(),
            election_tick: config.election_ticks,
            heartbeat_tick: config.heartbeat_ticks,
            // Never reached: see `timeouts`.
            max_election_tick: usize::MAX,
            applied: durable.applied,
            max_size_per_msg: raft::NO_LIMIT,
            max_inflight_msgs: flow::MESSAGES_MAX,
            check_quorum: true,
            pre_vote: true,
            // Followers learn of a commit with the next entries, at the latest with the next heartbeat.
            skip_bcast_commit: true,
            ..raft::Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let library = RawNode::new(&settings, log, &logger).map_err(|_| StartError::Ticks)?;
        let mut replica = Replica {
            library,
            id: config.id,
            members,
            changed,
            began: (membership::held(durable), durable.base.members.clone()),
            commit_seen: 0,
            commit_kept: 0,
            timeouts: Timeouts::new(seed, config.election_ticks),
            ready: Ready::default(),
            held: VecDeque::new(),
            written: 0,
            synced: 0,
            oath: (state.term, state.vote),
            sworn: 0,
            cut: 0,
            installing: None,
            lagging: Vec::new(),
            taken: 0,
            told: Standing { role: Role::Follower, term: state.term, leader: None },
            next_read: 0,
            #[cfg(feature = "plant")]
            given: durable.applied,
        };
        replica.commit_seen = replica.library.raft.raft_log.committed;
        replica.settle();
        Ok(replica)
    }

    /// Lets one tick of the owner's clock pass. While a state is being installed it does nothing.
    pub fn tick(&mut self) {
        if self.is_installing() || self.must_not_win() {
            return;
        }
        self.library.tick();
        self.settle();
    }

    /// Takes in that the connection with a node is lost. A follower of that node does not wait for it any
    /// more: it votes for others at once, and campaigns soon, one voter after the other. If the leader lives,
    /// its next message ends that, and those that still hear it elect nobody else.
    pub fn lost(&mut self, node: NodeId) {
        let raft = &mut self.library.raft;
        if raft.state == StateRole::Follower && raft.leader_id == node.get() {
            let before = |voter: &&NodeId| **voter < self.id && **voter != node;
            self.timeouts.hasten(raft, self.members.voters().iter().filter(before).count());
        }
    }

    /// Takes in a message of another node.
    ///
    /// # Errors
    ///
    /// The reason for which the message was refused.
    pub fn step(&mut self, message: &Message) -> Result<(), Rejected> {
        check::check(&self.view(message.from), message)?;
        self.check_changes(message)?;
        #[cfg(feature = "plant")]
        self.step_planted(message);
        // An error says that the sender is unknown or a proposal is dropped; neither can be here.
        self.library.step(convert::message(message)).map_err(|_| Rejected::Stale)?;
        self.settle();
        Ok(())
    }

    /// Proposes a batch, and tells where its entry will stand. When [`Ready::committed`] has an entry at this
    /// index, the batch is in the log if the terms are the same, and is not, if they differ.
    ///
    /// # Errors
    ///
    /// The reason for which the batch was refused; it is not in the log and never will be.
    pub fn propose(&mut self, batch: Descriptor) -> Proposed {
        self.admit(batch.bytes)?;
        let at =
            Position { term: self.library.raft.term, index: self.library.raft.raft_log.last_index() + 1 };
        // The library drops proposals for no other reason than those above.
        self.library.propose(Vec::new(), convert::data(&batch)).map_err(|_| Refused::Transferring)?;
        self.settle();
        Ok(at)
    }

    /// True: a leader hands over, and takes no proposals.
    pub fn is_transferring(&self) -> bool {
        self.library.raft.lead_transferee.is_some()
    }

    /// Tells whether a batch of this length could be proposed now.
    ///
    /// # Errors
    ///
    /// The reason for which it would be refused.
    pub fn admit(&self, bytes: u32) -> Result<(), Refused> {
        if u64::from(bytes) > BATCH_BYTES_MAX {
            return Err(Refused::BatchTooLarge { bytes });
        }
        self.check_leader()?;
        if self.is_transferring() {
            return Err(Refused::Transferring);
        }
        let log = &self.library.raft.raft_log;
        let uncommitted = self.library.store().bytes(log.committed, log.last_index());
        if uncommitted + u64::from(bytes) > UNCOMMITTED_BYTES_MAX {
            return Err(Refused::TooMuchUncommitted { bytes: uncommitted });
        }
        Ok(())
    }

    /// Takes in that the disk has synced the write with this number and all before it.
    pub fn persisted(&mut self, number: u64) {
        let number = if plant::is(Plant::SyncTooEarly) { self.written } else { number.min(self.written) };
        if number <= self.synced {
            return;
        }
        self.synced = number;
        // Entries that a later write cuts may come back in one later still: they count when all are synced.
        if number >= self.cut {
            self.library.on_persist_ready(if number == self.written { self.taken } else { number });
            if let Some(index) = self.installing.take() {
                self.library.advance_apply_to(index);
            }
        }
        self.settle();
    }

    /// Takes in that the owner has applied the log up to this index: later than it was given the entries, and
    /// in pieces, as it likes.
    pub fn applied(&mut self, index: u64) {
        let log = &self.library.raft.raft_log;
        let index = index.min(log.committed).min(log.persisted);
        if index > log.applied && self.installing.is_none() {
            self.change_members_to(index);
            self.library.advance_apply_to(index);
            self.settle();
        }
    }

    /// Forgets the descriptions of entries up to this index, as far as they are applied. A follower that
    /// needs one of them cannot be served from the log any more.
    pub fn compact(&mut self, to: u64) {
        let log = &self.library.raft.raft_log;
        let end = if plant::is(Plant::CompactBeyondApplied) { log.committed } else { log.applied };
        self.library.mut_store().compact(to.min(end));
    }

    /// Hands the leadership to another voter, as soon as that has the whole log. Proposals are refused
    /// meanwhile, and are taken again when it has not worked within an election's ticks.
    ///
    /// # Errors
    ///
    /// The reason for which nothing was begun.
    pub fn transfer_leader(&mut self, to: NodeId) -> Result<(), Refused> {
        self.check_leader()?;
        if to == self.id || !self.members.voters().contains(&to) {
            return Err(Refused::NotAVoter { node: to });
        }
        self.library.transfer_leader(to.get());
        self.settle();
        Ok(())
    }

    /// The other voter to hand the leadership to: of those that were heard of lately and are fit the one with
    /// most of the log. `None`: this replica does not lead, or nobody was heard of.
    pub fn successor(&self, is_fit: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        self.check_leader().ok()?;
        let tracker = self.library.raft.prs();
        let heard = self.members.voters().iter().filter_map(|voter| {
            let progress = tracker.get(voter.get()).filter(|progress| progress.recent_active)?;
            (*voter != self.id && is_fit(*voter)).then_some((progress.matched, *voter))
        });
        heard.max().map(|(_, voter)| voter)
    }

    /// True when this leader knows that a member has everything that is committed.
    pub fn has_committed(&self, member: NodeId) -> bool {
        let raft = &self.library.raft;
        raft.prs().get(member.get()).is_some_and(|progress| progress.matched >= raft.raft_log.committed)
    }

    /// Asks for the index up to which the log has to be applied, so that a read of the state sees everything
    /// that was acknowledged before. The answer is in [`Ready::reads`], after one round to a majority; when
    /// the round or the leadership is lost there is none, and the owner asks again.
    ///
    /// # Errors
    ///
    /// The reason for which nobody was asked.
    pub fn read_index(&mut self) -> Result<ReadId, Refused> {
        self.check_leader()?;
        if !self.library.raft.commit_to_current_term() {
            return Err(Refused::NotYet);
        }
        if self.library.raft.pending_read_count() >= READS_MAX {
            return Err(Refused::TooManyReads);
        }
        let id = ReadId(self.next_read);
        if !plant::is(Plant::ReuseReadId) {
            self.next_read += 1;
        }
        if plant::is(Plant::ReadAlone) {
            let index = self.library.raft.raft_log.committed;
            self.ready.reads.push(crate::ready::Read { id, index });
        } else {
            self.library.read_index(convert::context(id));
        }
        self.settle();
        Ok(id)
    }

    /// Takes what there is to do; `None`: nothing.
    pub fn ready(&mut self) -> Option<Ready> {
        if self.ready.is_empty() { None } else { Some(std::mem::take(&mut self.ready)) }
    }

    /// The present standing.
    pub fn standing(&self) -> Standing {
        let raft = &self.library.raft;
        let is_elected = self.synced >= self.sworn || plant::is(Plant::LeadBeforeSync);
        let role = match self.role() {
            Role::Leader if !is_elected => Role::Candidate,
            role @ (Role::Leader | Role::Candidate | Role::Follower) => role,
        };
        Standing { role, term: raft.term, leader: NodeId::new(raft.leader_id) }
    }

    /// The role as the library has it: a sole voter leads before its vote is synced.
    fn role(&self) -> Role {
        match self.library.raft.state {
            StateRole::Follower => Role::Follower,
            StateRole::PreCandidate | StateRole::Candidate => Role::Candidate,
            StateRole::Leader => Role::Leader,
        }
    }

    /// True: whatever makes this sole voter the leader has to wait until all that it has written is synced;
    /// the library relies on it.
    fn must_not_win(&self) -> bool {
        self.synced < self.written && self.role() != Role::Leader && self.members.voters() == [self.id]
    }

    /// Compares the state with what has to hold in it between two inputs, for tests.
    ///
    /// # Errors
    ///
    /// A sentence on what does not hold.
    pub fn audit(&self) -> Result<(), &'static str> {
        let raft = &self.library.raft;
        let log = self.library.store();
        let unknown = (raft.raft_log.committed + 1..=log.last()).filter_map(|index| log.get(index));
        if unknown.filter_map(Entry::change).nth(1).is_some() {
            return Err("two changes of the members are not known to be committed");
        }
        if raft.state != StateRole::Leader {
            return Ok(());
        }
        let others = raft.prs().iter().filter(|(id, _)| **id != self.id.get());
        for (_, progress) in others {
            if progress.next_idx <= progress.matched {
                return Err("a leader asks below what a follower has acknowledged");
            }
            if progress.matched > raft.raft_log.last_index() {
                return Err("a follower has acknowledged more than its leader has");
            }
        }
        Ok(())
    }

    /// The state against which a message of this node is checked.
    fn view(&self, from: NodeId) -> View<'_> {
        let standing = self.standing();
        let progress = self.library.raft.prs().get(from.get());
        let matched = progress.map_or(0, |progress| progress.matched);
        let term = self.library.store().term_at(matched).unwrap_or(0);
        View {
            id: self.id,
            members: &self.members,
            role: self.role(),
            term: standing.term,
            leader: standing.leader,
            last: self.library.raft.raft_log.last_index(),
            commit: self.position_of_commit(),
            matched: Position { term, index: matched },
            is_writing: self.synced < self.written,
            must_not_win: self.must_not_win(),
            is_installing: self.is_installing(),
        }
    }

    fn is_installing(&self) -> bool {
        self.installing.is_some() && !plant::is(Plant::StepWhileInstalling)
    }

    fn position_of_commit(&self) -> Position {
        let log = &self.library.raft.raft_log;
        Position { term: log.term(log.committed).unwrap_or(0), index: log.committed }
    }

    fn check_leader(&self) -> Result<(), Refused> {
        let standing = self.standing();
        if standing.role == Role::Leader {
            Ok(())
        } else {
            Err(Refused::NotLeader { leader: standing.leader })
        }
    }
}
