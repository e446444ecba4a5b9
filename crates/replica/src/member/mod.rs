//! One node's member of a shard's replicated log: a [`Replica`], and the journal that holds its batches.
//!
//! An entry of the log is a batch of the journal with the same number. An entry with which a leader begins a
//! term, or which changes the members, has no batch of its own; in the journal it is a batch of one record,
//! in a form that the owner names ([`OwnRecords`]) and whose application changes nothing.
//!
//! The owner gives inputs (ticks, envelopes of other members, proposals, reads), and takes events from
//! [`Member::poll`] and envelopes from [`Member::take_envelopes`] after each. Nothing here blocks: the
//! journal's writer syncs on another thread.
//!
//! Map: [`envelope`] messages with their batches, [`entries`] entries of batches, [`fetch`] batches read back
//! from the disk, [`memory`] what a node may have forgotten, `output` what comes of an input, `quiet` rest of
//! idle members, `recent` batches that followers may still need, [`repairs`] damaged blobs, `room` full
//! disks, `silence` members that have forgotten something, `stall` disks that hang, [`start`] the state at a
//! start, `state` the hard state in the journal; `transfers` states on their way, `sending` to followers,
//! `incoming` to this node, [`work`] what of it may block.

pub mod entries;
pub mod envelope;
pub mod fetch;
mod incoming;
pub mod memory;
mod output;
mod quiet;
mod recent;
pub mod recovery;
pub mod repairs;
mod room;
mod sending;
mod silence;
mod stall;
pub mod start;
mod state;
mod transfers;
pub mod work;

use std::collections::VecDeque;

use sluice_journal::{Batch, BlobError, Class, DiskJournal, DiskRoom, Event, Journal, SealedBatch};

use self::entries::OwnRecords;
use self::envelope::{Envelope, Unattached};
use self::fetch::{Fetch, Fetched, Fetches};
use self::incoming::Incoming;
use self::memory::Kept;
use self::quiet::Quiet;
use self::recent::Recent;
use self::repairs::Repairs;
use self::room::Room;
use self::sending::Sending;
use self::stall::Stall;
use self::start::{Start, Started};
use self::state::Saved;
use self::work::Work;
use crate::config::{Config, Durable, StartError};
use crate::driver::Replica;
use crate::driver::check::Rejected;
use crate::entry::{Change, NodeId, Position, ReadId};
use crate::members::Members;
use crate::message::Body;
use crate::ready::{Follower, Read, Refused, Role, Standing};
use crate::transfer::StateMessage;

/// Upper limit of batches of the log that are kept for followers: a description of each is in memory, of some
/// 64 bytes.
const KEPT_BATCHES_MAX: u64 = 1 << 20;

/// A member of a shard's replicated log.
pub struct Member {
    id: NodeId,
    replica: Replica,
    journal: DiskJournal,
    records: OwnRecords,
    recent: Recent,
    envelopes: Vec<Envelope>,
    fetches: Fetches,
    reads: VecDeque<Read>,
    /// Members of which the owner has not heard.
    members: Option<Members>,
    /// Members in force behind the batches that were given.
    in_force: Members,
    /// State that the journal was given last.
    saved: Saved,
    /// Writes that are not synced, oldest first: the journal's order with which each is, and its number.
    unsynced: VecDeque<(u64, u64)>,
    stall: Stall,
    room: Room,
    quiet: Quiet,
    /// Position of the last batch that was given to the owner, or of the state that was installed since.
    given: Position,
    sending: Sending,
    incoming: Option<Incoming>,
    /// Number of the last state that came.
    received: u64,
    repairs: Repairs,
    counts: StateCounts,
    state_messages: Vec<StateMessage>,
    work: Vec<Work>,
    /// True: the owner has ended the part of this member.
    is_silenced: bool,
}

/// Counts of whole states since the start of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateCounts {
    /// States that a follower has taken over.
    pub sent: u64,
    /// States that were installed.
    pub received: u64,
}

/// Event of a member.
#[derive(Debug)]
pub enum MemberEvent {
    /// Event of the journal.
    Journal(Event),
    /// Members in force behind the batches that were given, which have changed.
    Members(Members),
    /// Read whose index is known, and up to which all batches were given.
    Read(Read),
}

/// Reason for which a proposal was refused; nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotProposed {
    /// The replica has refused it.
    Replica(Refused),
    /// The journal has refused it.
    Journal(sluice_journal::Refused),
}

/// Reason for which an envelope was dropped; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// Its batches are not those of its message.
    Batches(Unattached),
    /// The replica has refused its message.
    Message(Rejected),
    /// The batch of this entry does not follow the one before it.
    Place(Position),
    /// The disk has no room for its batches.
    NoRoom,
    /// The node may have forgotten what it has acknowledged.
    Mute,
}

/// Batches of entries that are about to be written.
type Supplied = Vec<(Position, SealedBatch)>;

impl Member {
    /// A member that goes on from what its journal holds. The seed decides how long it waits before each
    /// campaign; nodes have different ones.
    ///
    /// # Errors
    ///
    /// Settings or a state that contradict themselves.
    pub fn new(
        config: &Config,
        mut journal: DiskJournal,
        start: Start,
        seed: u64,
    ) -> Result<Member, StartError> {
        let Start { started, records, kept_bytes, has_lost, kept, .. } = start;
        let Started { saved, base, changed, mut entries } = started?;
        let given = entries.last().map_or(base.position, |entry| entry.position);
        for batch in journal.tail(0) {
            entries.push(records.entry(batch)?);
        }
        let last_term = entries.last().map_or(base.position.term, |entry| entry.position.term);
        let hard_state = saved.hard_state(last_term);
        let has_forgotten = saved.id.is_some_and(|id| id != config.id);
        let durable = Durable { base, hard_state, entries, changed, applied: given.index, has_forgotten };
        let replica = Replica::new(config, &durable, seed)?;
        journal.ask_others();
        let mut member = Member {
            id: config.id,
            in_force: replica.members().clone(),
            replica,
            journal,
            records,
            recent: Recent::default(),
            envelopes: Vec::new(),
            fetches: Fetches::default(),
            reads: VecDeque::new(),
            members: None,
            saved,
            unsynced: VecDeque::new(),
            stall: Stall::new(2 * config.election_ticks),
            room: Room::new(config.election_ticks),
            quiet: Quiet::new(config.quiet_ticks),
            given,
            sending: Sending::default(),
            incoming: None,
            received: 0,
            repairs: Repairs::default(),
            counts: StateCounts::default(),
            state_messages: Vec::new(),
            work: Vec::new(),
            is_silenced: false,
        };
        let is_bound = has_lost && silence::is_bound(&member.saved, config.id, &member.in_force);
        let kept = if is_bound { Kept::Less } else { kept };
        let vote = hard_state.vote.filter(|_| !has_forgotten);
        member.save(Saved { id: Some(config.id), term: hard_state.term, vote, kept, ..member.saved.clone() });
        member.label();
        member.forget_before(member.before_kept(kept_bytes));
        member.settle(Vec::new());
        Ok(member)
    }

    /// Lets one tick of the owner's clock pass; a slow one, while the member is quiet.
    pub fn tick(&mut self) {
        if self.is_quiet() {
            return self.tick_quietly();
        }
        self.stall.tick(self.oldest_unsynced());
        self.room.tick();
        if self.is_silent() {
            return;
        }
        self.replica.tick();
        self.tick_sending();
        self.settle(Vec::new());
        self.tick_receiving();
        self.tick_repairs();
        if self.stall.is_next() {
            self.hand_over();
        }
        self.hand_over_for_room();
        self.tick_idle();
    }

    /// Takes in an envelope of another member.
    ///
    /// # Errors
    ///
    /// The reason for which it was dropped.
    pub fn step(&mut self, envelope: Envelope) -> Result<(), Dropped> {
        if self.is_mute() {
            return Err(Dropped::Mute);
        }
        self.hear_quiet(&envelope.message, envelope.report.is_quiet);
        if let Body::Snapshot(snapshot) = &envelope.message.body {
            let snapshot = snapshot.clone();
            return self.offered(envelope.message, &snapshot);
        }
        let supplied = envelope.attach().map_err(Dropped::Batches)?;
        self.check_places(&envelope.message)?;
        let bytes: usize = supplied.iter().map(|(_, batch)| batch.bytes().len()).sum();
        if bytes > 0 && !room::admit_copies(&mut self.journal, bytes, &envelope.report) {
            return Err(Dropped::NoRoom);
        }
        let stepped = self.replica.step(&envelope.message).inspect_err(|why| self.note_refused(*why));
        stepped.map_err(Dropped::Message)?;
        if let Body::Appended { index, .. } = envelope.message.body {
            self.note_acknowledged(envelope.message.from, index);
        }
        self.room.hear(envelope.message.from, &envelope.report);
        self.settle(supplied);
        self.heard_quiet(&envelope.message, envelope.report.is_quiet);
        Ok(())
    }

    /// Proposes a batch with a time in microseconds since the Unix epoch, and leaves it empty. Returns index
    /// of its first record, and term: when [`Member::poll`] gives the batch that has this record, the batch
    /// is in the log if both are the same, and is not, if they differ.
    ///
    /// # Errors
    ///
    /// The reason for which the batch was refused; it is unchanged, and is not in the log.
    pub fn propose(
        &mut self,
        batch: &mut Batch,
        time_us: u64,
        class: Class,
    ) -> Result<(u64, u64), NotProposed> {
        if self.is_silent() {
            return Err(NotProposed::Replica(Refused::NotLeader { leader: None }));
        }
        self.wake();
        self.replica.admit(u32::try_from(batch.bytes()).unwrap_or(u32::MAX)).map_err(NotProposed::Replica)?;
        self.take_room(batch.bytes(), class).map_err(NotProposed::Journal)?;
        let sealed = self.journal.seal(batch, time_us);
        let first_index = sealed.first_index();
        let at = self.replica.propose(entries::descriptor(&sealed)).map_err(NotProposed::Replica)?;
        self.settle(vec![(at, sealed)]);
        Ok((first_index, at.term))
    }

    /// Asks for the index up to which the log has to be applied before a read: see [`Replica::read_index`].
    ///
    /// # Errors
    ///
    /// The reason for which nobody was asked.
    pub fn read_index(&mut self) -> Result<ReadId, Refused> {
        if self.is_silent() {
            return Err(Refused::NotLeader { leader: None });
        }
        self.wake();
        let asked = self.replica.read_index();
        self.settle(Vec::new());
        asked
    }

    /// The members in force behind the batches that were given.
    pub fn members(&self) -> &Members {
        &self.in_force
    }

    /// Proposes a change of the members: see [`Replica::propose_members`].
    ///
    /// # Errors
    ///
    /// The reason for which the change was refused.
    pub fn propose_members(&mut self, change: Change) -> Result<Position, Refused> {
        if self.is_silent() {
            return Err(Refused::NotLeader { leader: None });
        }
        self.wake();
        let at = self.replica.propose_members(change)?;
        self.settle(Vec::new());
        Ok(at)
    }

    /// True: the last change of the members is under way: see [`Replica::is_changing`].
    pub fn is_changing(&self) -> bool {
        self.replica.is_changing()
    }

    /// Hands the leadership to another member: see [`Replica::transfer_leader`].
    ///
    /// # Errors
    ///
    /// The reason for which nothing was begun.
    pub fn transfer_leader(&mut self, to: NodeId) -> Result<(), Refused> {
        self.wake();
        self.replica.transfer_leader(to)?;
        self.settle(Vec::new());
        Ok(())
    }

    /// Takes in that the connection with a node is lost: see [`Replica::lost`].
    pub fn lost(&mut self, node: NodeId) {
        self.doubt();
        self.replica.lost(node);
    }

    /// Hands the leadership to the member that is fittest: see [`Replica::successor`]; of those whose disk
    /// has room, if there is one. Does nothing where this one does not lead, or has heard of nobody.
    pub fn hand_over(&mut self) {
        let with_room = self.replica.successor(|member| self.room.of(member) == Some(DiskRoom::Growing));
        if let Some(to) = with_room.or_else(|| self.replica.successor(|_| true)) {
            // A successor is a member, and only leaders have one.
            let _ = self.transfer_leader(to);
        }
    }

    /// Takes the next event; `None`: there is none now. The owner has applied the batches that it was given
    /// before.
    pub fn poll(&mut self) -> Option<MemberEvent> {
        self.replica.applied(self.given.index);
        self.settle(Vec::new());
        if let Some(members) = self.members.take() {
            return Some(MemberEvent::Members(members));
        }
        let event = self.next_event().map(MemberEvent::Journal);
        let given = self.given.index;
        event.or_else(|| self.reads.pop_front_if(|read| read.index <= given).map(MemberEvent::Read))
    }

    /// The next event of the journal. A damaged blob is told when all members have lost it.
    fn next_event(&mut self) -> Option<Event> {
        loop {
            match self.next_of_journal() {
                Some(Event::Damaged(key)) => self.damaged(key),
                None => return self.repairs.next_lost().map(Event::Damaged),
                event => return event,
            }
        }
    }

    /// Takes what is to be sent; the owner's clocks are to be filled in. While the disk hangs nothing is, nor
    /// when the member may have forgotten something.
    pub fn take_envelopes(&mut self) -> Vec<Envelope> {
        let mut envelopes = std::mem::take(&mut self.envelopes);
        if self.is_silent() {
            envelopes.clear();
        }
        if !envelopes.is_empty() {
            let report = self.report();
            envelopes.iter_mut().for_each(|envelope| envelope.report = report);
        }
        envelopes
    }

    /// Takes what is to be read from the disk before it can be sent: see [`Fetch::read`].
    pub fn take_fetches(&mut self) -> Vec<Fetch> {
        std::mem::take(&mut self.fetches.asked)
    }

    /// Takes in what was read. After an error the follower asks again, in time; the log up to a batch that is
    /// damaged is forgotten.
    ///
    /// # Errors
    ///
    /// A batch is damaged, or the operating system failed.
    pub fn fetched(&mut self, fetched: Fetched) -> Result<(), BlobError> {
        let (to, damaged) = (fetched.to(), fetched.damaged());
        let read = self.fetches.done(fetched);
        if let Some(number) = damaged {
            // The follower gets a state instead, and this node needs a snapshot behind the damage as well.
            self.forget_before(number);
            self.journal.request_snapshot();
        }
        self.envelopes.extend(read?);
        let asked = self.fetches.read_on(to, &self.journal);
        self.note_gone(asked);
        Ok(())
    }

    /// The present standing. A leader leads once its owner was given the entry with which it begins its term,
    /// and so all that was committed before it; until then it counts as a candidate. A leader whose oldest
    /// write takes as long as two elections is a follower without a leader until it is synced, and one that
    /// may have forgotten something is such a follower for good.
    pub fn standing(&self) -> Standing {
        let standing = self.replica.standing();
        match standing.role {
            Role::Leader | Role::Candidate if self.is_silent() => {
                Standing { role: Role::Follower, leader: None, ..standing }
            }
            Role::Leader if self.given.term != standing.term => {
                Standing { role: Role::Candidate, ..standing }
            }
            Role::Leader | Role::Follower | Role::Candidate => standing,
        }
    }

    /// The other members as this one sees them while it leads: see [`Replica::followers`].
    pub fn followers(&self) -> Vec<Follower> {
        let has_room = |node| self.room.of(node).is_none_or(|room| room == DiskRoom::Growing);
        let followers = self.replica.followers().into_iter();
        followers.map(|follower| Follower { has_room: has_room(follower.node), ..follower }).collect()
    }

    /// True: a leader takes proposals now; not while it hands over, nor while its disk hangs.
    pub fn takes_proposals(&self) -> bool {
        !self.is_silent() && !self.replica.is_transferring()
    }

    /// True: this member says nothing.
    fn is_silent(&self) -> bool {
        self.is_stalled() || self.is_mute()
    }

    /// True when the oldest write takes too long.
    pub fn is_stalled(&self) -> bool {
        self.stall.is_one(self.oldest_unsynced())
    }

    fn oldest_unsynced(&self) -> Option<u64> {
        self.unsynced.front().map(|(order, _)| *order)
    }

    /// True when the journal has something to sync: its writer is to take a step.
    pub fn is_writing(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Makes room for a snapshot that the owner begins of its state behind the batches that it was given.
    /// Keeps the last `bytes` bytes of the log for followers that are behind, in whole segments and at least
    /// the one that grows, and forgets what is before it; while a state is on its way to a follower, what
    /// that will need next is kept too, up to `transfer_bytes`. Without that at most
    /// [`KEPT_BATCHES_MAX`] batches are kept.
    pub fn begin_snapshot(&mut self, bytes: u64, transfer_bytes: u64) {
        let before = self.before_kept(bytes);
        let (oldest, _) = self.journal.before_last(transfer_bytes, u64::MAX);
        let held = self.held_from(before).map_or(before, |from| from.max(oldest).min(before));
        self.forget_before(held);
    }

    /// Number of the batch behind which the log is kept for followers: the last `bytes` bytes of it, and at
    /// most [`KEPT_BATCHES_MAX`] batches.
    fn before_kept(&self, bytes: u64) -> u64 {
        let (before, _) = self.journal.before_last(bytes, u64::MAX);
        before.max(self.given.index.saturating_sub(KEPT_BATCHES_MAX))
    }

    fn forget_before(&mut self, number: u64) {
        self.journal.keep_from(number + 1);
        self.replica.compact(number);
    }

    /// Index of the last record that was given.
    pub fn given_index(&self) -> u64 {
        self.journal.tail(0).next().map_or(self.journal.next_index(), |batch| batch.first_index) - 1
    }

    /// Counts of whole states.
    pub fn state_counts(&self) -> StateCounts {
        self.counts
    }

    /// The journal.
    pub fn journal(&self) -> &DiskJournal {
        &self.journal
    }

    /// The journal, for reading blobs and for snapshots.
    pub fn journal_mut(&mut self) -> &mut DiskJournal {
        &mut self.journal
    }

    /// Does what comes of an input. `supplied` are the batches of the entries that it brings.
    fn settle(&mut self, mut supplied: Supplied) {
        while let Some(ready) = self.replica.ready() {
            if let Some(write) = ready.write {
                self.write(write, &mut supplied);
            }
            for message in ready.messages {
                self.send(message);
            }
            if let Some(last) = ready.committed.last() {
                self.commit(last.position.index);
            }
            self.reads.extend(ready.reads);
            self.members = ready.members.or(self.members.take());
            self.note_lagging(ready.lagging);
        }
    }
}
