//! The store of a shard with replicas: this node's member of the replicated log.
//!
//! Other threads put into its [`Inbox`] what comes from other members, from the clock and from the disk;
//! each [`Journal::poll`] takes that in first. What goes to others goes through a [`Carrier`]. So the shard
//! knows nothing of either, and nothing blocks its thread.
//!
//! Map: [`inbox`] inputs of other threads, [`changes`] changes of the members and their callers,
//! [`forgotten`] word that the node may have forgotten something, `repairs` word of damage, [`work`] work on
//! states that may block.

pub mod changes;
pub mod forgotten;
pub mod inbox;
mod repairs;
pub mod work;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::{Command, Engine, consensus_entry};
use sluice_journal::{
    Batch, BlobKey, BlobLocation, BlobRead, Class, DiskJournal, Event, Journal, Refused, Status, Writer,
};
use sluice_record::write_record;
use sluice_replica::{
    Clocks, Config, Dropped, Envelope, Fetch, Follower, Member, MemberEvent, Members, Memory, NodeId,
    NotProposed, OwnRecords, ReadId, Role, Start, StateMessage, Work,
};

use self::changes::{Changes, ShardMembers};
use self::forgotten::Forgotten;
use self::inbox::{Inbox, Input};
use super::recover::live_blobs;
use super::store::{Heard, Standing, Store};
use crate::api::{ReplicaMetrics, StartError};

/// Time between two ticks, on all nodes.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Ways from a member to the others, and to threads that may block. No method blocks.
pub trait Carrier: Send {
    /// Sends an envelope to the member that its message names. It may be lost, repeated or late.
    fn send(&mut self, envelope: Envelope);

    /// Reads what a follower needs ([`Fetch::read`]) on another thread, and puts it into the inbox.
    fn fetch(&mut self, fetch: Fetch);

    /// Sends a message about a state to the member that it names. It may be lost, repeated or late.
    fn send_state(&mut self, message: StateMessage);

    /// Does work on a state ([`work::run`]) on another thread, in the order in which it comes.
    fn work(&mut self, work: Work);

    /// Takes note of the members in force, which have changed.
    fn members(&mut self, members: &Members);

    /// Takes note of an envelope that was dropped, with its sender. Stale ones are usual.
    fn dropped(&mut self, from: NodeId, why: Dropped);
}

/// Parts of a replicated store besides its journal.
pub struct Parts {
    /// Settings of the replica.
    pub config: Config,
    /// Present boot of the machine, and the way in which the journal was left and is used.
    pub memory: Memory,
    /// Word that the node may have forgotten what it has acknowledged, in whichever shard.
    pub forgotten: Forgotten,
    /// Source of the waits before campaigns, another on each node.
    pub seed: u64,
    /// Length of the log that is kept for followers that are behind, in bytes. Those that need more get a
    /// state.
    pub kept_bytes: u64,
    /// Length of the log that is kept while a state is on its way to a follower, in bytes.
    pub transfer_bytes: u64,
    /// Way of other threads to the store.
    pub inbox: Arc<Inbox>,
    /// Way of the store to the other members.
    pub carrier: Box<dyn Carrier>,
}

/// A journal on which the members of a cluster agree.
pub struct Replicated {
    member: Member,
    writer: Writer,
    id: NodeId,
    inbox: Arc<Inbox>,
    carrier: Box<dyn Carrier>,
    kept_bytes: u64,
    transfer_bytes: u64,
    /// Engine of the state that is on its way to this node.
    restored: Option<Box<Engine>>,
    /// Engine of the state that was installed, which the shard is to take over.
    installed: Option<Box<Engine>>,
    /// Standing that the shard sees.
    standing: Standing,
    round: Round,
    forgotten: Forgotten,
    /// Clocks of this node, of which the others are told.
    clocks: Clocks,
    /// Clocks of others of which the shard has not heard.
    heard: VecDeque<Heard>,
    changes: Changes,
    repairs: repairs::Told,
    /// Number of orders to the journal of which the writer knows.
    orders: u64,
    /// Number of leaders that were known since the start.
    elections: u64,
    /// Number of ticks since which none is known.
    leaderless_ticks: u64,
}

/// Round of confirmation.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    /// Read of the member, once it was asked for.
    read: Option<ReadId>,
    /// Index of a record, once the read is answered.
    index: Option<u64>,
}

/// Records by which the members agree on their own affairs; the engine passes over them.
pub const OWN_RECORDS: OwnRecords = OwnRecords {
    write: |batch, held| write_record(batch, &Command::Consensus { entry: held }),
    held: consensus_entry,
};

impl Replicated {
    /// The store over a journal that was opened under [`sluice_journal::Commit::Told`], with its writer and
    /// the start that was read from it with [`OWN_RECORDS`], after [`super::recover::recover`] has given its
    /// state. Blocks.
    ///
    /// A journal of one node needs nothing else to become the first member: its batches are the entries of
    /// the log. The other members begin with copies of it.
    ///
    /// # Errors
    /// The log contradicts the settings, or the disk has no room for a note of what was forgotten.
    pub fn new(
        mut journal: DiskJournal,
        writer: Writer,
        start: Start,
        parts: Parts,
    ) -> Result<Replicated, StartError> {
        let Parts { config, memory, forgotten, seed, kept_bytes, transfer_bytes, inbox, carrier } = parts;
        journal.set_waker(Arc::clone(&inbox.wake));
        let member = Member::new(&config, journal, start.remembering(memory), seed);
        let mut member = member.map_err(|error| StartError::Failed(error.to_string()))?;
        if member.has_forgotten() {
            // An orderly stop must not be taken for one of a node that has all that it acknowledged.
            keep_orders(&member, &writer)?;
            forgotten.note();
        }
        if forgotten.is_noted() {
            member.fall_silent();
        }
        Ok(Replicated {
            member,
            writer,
            id: config.id,
            inbox,
            carrier,
            kept_bytes,
            transfer_bytes,
            restored: None,
            installed: None,
            standing: Standing::Follower { leader: None },
            round: Round::default(),
            forgotten,
            clocks: Clocks::default(),
            heard: VecDeque::new(),
            changes: Changes::default(),
            repairs: repairs::Told::default(),
            orders: 0,
            elections: 0,
            leaderless_ticks: 0,
        })
    }

    /// The member.
    pub fn member(&mut self) -> &mut Member {
        &mut self.member
    }

    /// Gives the member what has come, and looks whether its standing or the whole state is another then.
    /// True: it is.
    fn take_in(&mut self) -> bool {
        for input in self.inbox.take() {
            match input {
                Input::Tick => {
                    self.member.tick();
                    self.leaderless_ticks += 1;
                }
                Input::Envelope(envelope) => {
                    let (from, term) = (envelope.message.from, envelope.message.term);
                    let clocks = envelope.report.clocks;
                    match self.member.step(*envelope) {
                        Ok(()) => self.hear(from, term, clocks),
                        Err(why) => self.carrier.dropped(from, why),
                    }
                }
                Input::Fetched(fetched) => {
                    if let Err(error) = self.member.fetched(*fetched) {
                        tracing::error!(?error, "a part of the log could not be read for a follower");
                    }
                }
                Input::State(message) => self.member.step_state(*message),
                Input::Worked(worked, engine) => {
                    self.restored = engine.or(self.restored.take());
                    self.member.worked(*worked);
                }
                Input::Lost(node) => self.member.lost(node),
                Input::Doubt => self.member.doubt(),
                Input::Change(change, answer) => {
                    let proposed = self.member.propose_members(change);
                    self.changes.proposed(proposed, answer);
                }
                Input::Members(answer) => {
                    let member = &self.member;
                    let (members, followers) = (member.members().clone(), member.followers());
                    let (is_changing, may_have_copies) = (member.is_changing(), member.may_have_copies());
                    // Who has asked may be gone.
                    let _ = answer.send(ShardMembers { members, followers, is_changing, may_have_copies });
                }
                Input::HandOver => self.member.hand_over(),
                Input::Transfer(to) => {
                    let is_fit = |follower: &Follower| follower.node == to && follower.is_fit_to_lead();
                    if self.member.followers().iter().any(is_fit) {
                        // Refused where it does not lead any more: then there is nothing to hand over.
                        let _ = self.member.transfer_leader(to);
                    }
                }
            }
        }
        self.repairs.tell(self.member.repair_counts());
        let is_installed = self.install();
        self.share_forgotten();
        let standing = self.standing_of_member();
        let has_changed = std::mem::replace(&mut self.standing, standing) != standing;
        if standing != (Standing::Follower { leader: None }) {
            self.leaderless_ticks = 0;
            self.elections += u64::from(has_changed);
        }
        has_changed || is_installed
    }

    /// Lets all shards of the node be silent when the member of one has forgotten something.
    fn share_forgotten(&mut self) {
        if self.member.has_forgotten() {
            self.forgotten.note();
        } else if self.forgotten.is_noted() {
            self.member.fall_silent();
        }
    }

    /// Installs the state of another node that is here as a whole. True: there was one.
    fn install(&mut self) -> bool {
        if !self.member.is_receiving() {
            self.restored = None;
            return false;
        }
        let Some(index) = self.member.installable() else { return false };
        let Some(engine) = self.restored.take_if(|engine| engine.applied_index() == index) else {
            return false;
        };
        if let Err(error) = self.member.install(live_blobs(&engine)) {
            tracing::error!(?error, index, "the state of another node was not installed");
            return false;
        }
        self.installed = Some(engine);
        true
    }

    /// Keeps the clocks of another member for the shard. Those of a former term are as late as their message.
    fn hear(&mut self, from: NodeId, sent_term: u64, clocks: Clocks) {
        let sluice_replica::Standing { term, leader, .. } = self.member.standing();
        if sent_term < term {
            return;
        }
        let is_of_leader = leader == Some(from) && clocks.log.is_some_and(|log| log.term == term);
        self.heard.push_back(Heard { from, is_of_leader, clocks });
    }

    fn standing_of_member(&self) -> Standing {
        let sluice_replica::Standing { role, term, leader } = self.member.standing();
        match role {
            Role::Leader => Standing::Leader { term },
            Role::Follower | Role::Candidate => {
                Standing::Follower { leader: leader.filter(|leader| *leader != self.id).map(NodeId::get) }
            }
        }
    }

    /// Sends what is to be sent, and lets read what is to be read.
    fn hand_out(&mut self) {
        self.inbox.set_quiet(self.member.is_quiet());
        for mut envelope in self.member.take_envelopes() {
            envelope.report.clocks = self.clocks;
            self.carrier.send(envelope);
        }
        for fetch in self.member.take_fetches() {
            self.carrier.fetch(fetch);
        }
        for message in self.member.take_state_messages() {
            self.carrier.send_state(message);
        }
        for work in self.member.take_work() {
            self.carrier.work(work);
        }
    }

    /// Wakes the writer if the journal was given orders since the last call.
    fn wake_writer(&mut self) {
        let orders = self.member.journal().orders();
        if std::mem::replace(&mut self.orders, orders) < orders {
            self.writer.notify();
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            match self.member.poll()? {
                MemberEvent::Journal(event) => {
                    if let Event::Committed(batch) = &event {
                        self.changes.given(batch);
                    }
                    return Some(event);
                }
                MemberEvent::Members(members) => self.carrier.members(&members),
                MemberEvent::Read(read) if self.round.read == Some(read.id) => {
                    self.round.index = Some(self.member.given_index());
                }
                MemberEvent::Read(_) => {}
            }
        }
    }
}

impl Journal for Replicated {
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.member.journal().next_index()
    }

    fn durable_index(&self) -> u64 {
        self.member.journal().durable_index()
    }

    fn committed_index(&self) -> u64 {
        self.member.journal().committed_index()
    }

    /// The followers get it first: their way is the longer one.
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        let proposed = self.member.propose(batch, time_us, class).map_err(refused);
        self.hand_out();
        self.wake_writer();
        proposed.map(|(first_index, _)| first_index)
    }

    fn poll(&mut self) -> Option<Event> {
        let event = if self.take_in() { None } else { self.next_event() };
        self.hand_out();
        self.wake_writer();
        event
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        self.member.journal_mut().read(key)
    }

    fn release(&mut self, key: BlobKey) {
        self.member.journal_mut().release(key);
    }
}

/// Lets the journal keep the orders that a member has given to it. Blocks.
fn keep_orders(member: &Member, writer: &Writer) -> Result<(), StartError> {
    writer.step();
    if member.journal().durable_orders() == member.journal().orders() {
        return Ok(());
    }
    let refused = "the disk is full: free some space, so that the node can note what it has forgotten";
    Err(StartError::Refused(refused.to_owned()))
}

/// The refusal of a batch, of which nothing is done.
fn refused(why: NotProposed) -> Refused {
    use sluice_replica::Refused as Why;
    match why {
        NotProposed::Journal(refused) => refused,
        NotProposed::Replica(Why::TooMuchUncommitted { .. } | Why::BatchTooLarge { .. }) => {
            Refused::Uncommitted
        }
        NotProposed::Replica(
            Why::NotLeader { .. }
            | Why::Transferring
            | Why::TooManyReads
            | Why::NotYet
            | Why::NotAVoter { .. }
            | Why::ChangeUnderWay
            | Why::ChangeUnfit { .. }
            | Why::Leads
            | Why::Behind { .. }
            | Why::NoMajority
            | Why::NotAMember { .. }
            | Why::NotLagging { .. }
            | Why::SnapshotUnfit { .. },
        ) => Refused::NotLeader,
    }
}

impl Store for Replicated {
    fn standing(&self) -> Standing {
        self.standing
    }

    fn tell_clocks(&mut self, clocks: Clocks) {
        self.clocks = clocks;
    }

    fn hear_clocks(&mut self) -> Option<Heard> {
        self.heard.pop_front()
    }

    fn takes_proposals(&self) -> bool {
        self.member.takes_proposals()
    }

    fn confirm(&mut self, round: u64) -> Option<u64> {
        if round != self.round.number {
            self.round = Round { number: round, ..Round::default() };
        }
        if self.round.read.is_none() {
            self.round.read = self.member.read_index().ok();
            self.hand_out();
        }
        self.round.index
    }

    fn wants_snapshot(&self) -> bool {
        self.member.journal().wants_snapshot()
    }

    fn take_state(&mut self) -> Option<Box<Engine>> {
        self.installed.take()
    }

    /// The snapshot lets the log before it go; of that what followers may need is kept, unless the disk is
    /// full.
    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        let is_full = self.member.journal().status().full;
        let (kept, transfer) = if is_full { (0, 0) } else { (self.kept_bytes, self.transfer_bytes) };
        self.member.begin_snapshot(kept, transfer);
        self.member.journal_mut().snapshot_begin(applied_index, time_us, behaviour);
    }

    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        self.member.journal_mut().snapshot_piece(piece)
    }

    fn snapshot_finish(&mut self) {
        self.member.journal_mut().snapshot_finish();
    }

    fn status(&self) -> Status {
        self.member.journal().status()
    }

    fn replicas(&self) -> Option<ReplicaMetrics> {
        let leader = match self.standing {
            Standing::Follower { leader } => leader,
            Standing::Leader { .. } | Standing::Alone => Some(self.id.get()),
        };
        Some(ReplicaMetrics {
            leader,
            term: self.member.standing().term,
            elections: self.elections,
            leaderless_ms: self.leaderless_ticks * TICK.as_millis() as u64,
            is_stalled: self.member.is_stalled(),
            followers: if leader == Some(self.id.get()) { self.member.followers() } else { Vec::new() },
            repairs: self.member.repair_counts(),
            repaired: self.member.journal().status().repaired_blobs,
            states: self.member.state_counts(),
        })
    }
}
