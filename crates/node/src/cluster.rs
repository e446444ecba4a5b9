//! Ways between the shards of this node and their replicas on others: the transport, one clock for all, a
//! thread that reads from the disk what followers need, and one for states on their way.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use sluice_journal::{BlobError, DiskJournal};
use sluice_replica::{
    BootId, Config, Dropped, Envelope, Fetch, Members, Memory, NodeId, Start, StateMessage, Work,
};

use crate::api::StartError;
use crate::directory::discard;
use crate::driver::Threads;
use crate::shard::replicated::forgotten::Forgotten;
use crate::shard::replicated::inbox::Inbox;
use crate::shard::replicated::{Carrier, OWN_RECORDS, Parts, TICK, work};

/// Number of ticks between two heartbeats of a leader.
const HEARTBEAT_TICKS: usize = 2;

/// Number of ticks without a leader after which a member campaigns, at least; at most twice as many.
const ELECTION_TICKS: usize = 10;

/// Number of ticks without anything new after which a shard rests.
const QUIET_TICKS: usize = 40;

/// The cluster of a node.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// This node.
    pub id: NodeId,
    /// Members of a cluster that begins with this data; a log that was in a cluster before knows its own.
    /// None: the node has joined, and takes its data from the others.
    pub members: Members,
    /// True: the node has not started under its number yet. A node that has joined may then lack data, since
    /// it has promised nothing; what is damaged is set aside, and filled by the others. Later on it is silent
    /// when data is damaged or missing, and needs a new number: see [`crate::Node::has_forgotten`].
    pub is_new: bool,
    /// Length of the log of each shard that is kept for nodes that are behind, in bytes; a quarter of the
    /// disk at most. Who needs more gets a state.
    pub kept_bytes: u64,
    /// Present boot of the machine. After a new one a node whose durability does not sync before it
    /// acknowledges may have forgotten something, unless it was stopped in order: see
    /// [`crate::Node::has_forgotten`].
    pub boot: BootId,
    /// Way to the other nodes.
    pub transport: Arc<dyn Transport>,
}

/// Way of messages to the other nodes. What they send comes back by [`crate::Node::deliver`] and
/// [`crate::Node::deliver_state`], and what they ask by [`crate::Node::answer`].
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a message between the replicas of a shard. Never blocks; the message may be lost.
    fn send(&self, shard: u32, envelope: Envelope);

    /// Sends a message about a state of a shard. Never blocks; the message may be lost.
    fn send_state(&self, shard: u32, message: StateMessage);

    /// Asks another node.
    fn ask(&self, node: NodeId, question: Bytes, within: Duration) -> Asking<'_>;

    /// The nodes of the cluster, this one among them.
    fn nodes(&self) -> Vec<NodeId>;

    /// State of the connection with another node.
    fn link(&self, node: NodeId) -> Link;
}

/// State of the connection with another node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Time since which there is none, in milliseconds; `None`: there is one.
    pub silent_ms: Option<u64>,
    /// Reason for which there is none, a sentence; `None`: there is one, or nothing was tried yet.
    pub silent_because: Option<String>,
    /// Address of another process with the identity of that node, which was refused within the last minute;
    /// `None`: none was.
    pub twin_at: Option<String>,
    /// Time by which the other node's wall clock was ahead when they connected, in microseconds; `None`:
    /// there is no connection.
    pub clock_ahead_us: Option<i64>,
}

/// Answer of another node, once it comes; `None`: none came in time, or the node is not connected.
pub type Asking<'t> = Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 't>>;

/// Inboxes of the shards of a node, by number; empty without a cluster. They end with their shards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inboxes(Vec<Weak<Inbox>>);

/// Ways of the shards to other nodes.
pub(crate) struct Ways {
    options: ClusterOptions,
    data_dir: PathBuf,
    /// Present boot of the machine, and the way in which journals were left and are used.
    memory: Memory,
    forgotten: Forgotten,
    seed: u64,
    kept_bytes: u64,
    transfer_bytes: u64,
    inboxes: Inboxes,
    /// To the thread that reads.
    fetches: Sender<(Weak<Inbox>, Fetch)>,
    /// To the thread that works on states.
    works: Sender<(Weak<Inbox>, Work)>,
}

impl Inboxes {
    /// Puts in a message of another node. One for a shard that is not here is dropped.
    pub(crate) fn deliver(&self, shard: u16, envelope: Envelope) {
        if let Some(inbox) = self.of_shard(usize::from(shard)) {
            inbox.envelope(envelope);
        }
    }

    /// Puts in a message of another node about a state. One for a shard that is not here is dropped.
    pub(crate) fn deliver_state(&self, shard: u16, message: StateMessage) {
        if let Some(inbox) = self.of_shard(usize::from(shard)) {
            inbox.state(message);
        }
    }

    /// Tells all shards that the connection with a node is lost.
    pub(crate) fn lost(&self, node: NodeId) {
        self.0.iter().filter_map(Weak::upgrade).for_each(|inbox| inbox.lost(node));
    }

    /// Tells all shards of a doubt about a node.
    pub(crate) fn doubt(&self) {
        self.0.iter().filter_map(Weak::upgrade).for_each(|inbox| inbox.doubt());
    }

    /// Orders a shard to hand its leadership to this node, if it leads and that node follows.
    pub(crate) fn transfer_leader(&self, shard: usize, to: NodeId) {
        if let Some(inbox) = self.of_shard(shard) {
            inbox.transfer_leader(to);
        }
    }

    /// Inbox of a shard; `None`: the node is alone, or the shard has ended.
    pub(crate) fn of_shard(&self, shard: usize) -> Option<Arc<Inbox>> {
        self.0.get(shard).and_then(Weak::upgrade)
    }

    /// Orders a shard to hand over its leadership. False: the node is alone, or the shard has ended.
    pub(crate) fn hand_over(&self, shard: usize) -> bool {
        let inbox = self.of_shard(shard);
        inbox.as_ref().inspect(|inbox| inbox.hand_over()).is_some()
    }
}

impl Ways {
    /// Ways of a node that starts; its threads end with the last shard. `seed` is another on each node and at
    /// each start. Of the log of a shard `log_bytes` are kept at most, while a state is on its way to a
    /// follower.
    pub(crate) fn new(
        options: ClusterOptions,
        data_dir: &Path,
        memory: Memory,
        forgotten: Forgotten,
        seed: u64,
        log_bytes: u64,
        threads: &Threads,
    ) -> Result<Ways, StartError> {
        let (fetches, asked) = channel();
        threads.spawn("fetches".to_owned(), move || run_fetches(&asked))?;
        let (works, given) = channel();
        threads.spawn("states".to_owned(), move || run_works(given))?;
        let (kept_bytes, transfer_bytes) = (log_bytes.min(options.kept_bytes), log_bytes);
        let inboxes = Inboxes::default();
        let data_dir = data_dir.to_owned();
        Ok(Ways {
            options,
            data_dir,
            memory,
            forgotten,
            seed,
            kept_bytes,
            transfer_bytes,
            inboxes,
            fetches,
            works,
        })
    }

    /// True: the node takes its data from the others.
    pub(crate) fn has_joined(&self) -> bool {
        self.options.members.voters().is_empty()
    }

    /// True: the node has promised nothing under its number.
    pub(crate) fn is_new(&self) -> bool {
        self.options.is_new
    }

    /// Start of the member of a shard whose journal was replayed, with its hard state. Blocks.
    pub(crate) fn start(&self, journal: &DiskJournal, hard_state: &[u8]) -> Result<Start, BlobError> {
        let members = self.options.members.clone();
        let start = Start::read(journal, members, hard_state, OWN_RECORDS, self.kept_bytes)?;
        if let Some(error) = start.unreadable() {
            tracing::warn!(?error, "the log before the snapshot is damaged: it is not kept for other nodes");
        }
        Ok(start)
    }

    /// Lets go what is kept of a damaged shard, if these members count on this one: it has everything then.
    pub(crate) fn discard_if_whole(&self, shard: u32, members: &Members) {
        discard_if_whole(self.options.id, &self.data_dir, shard, members);
    }

    /// The parts of the store of a shard, whose journal was closed in order if it `is_whole`; shards come in
    /// the order of their numbers.
    pub(crate) fn parts(&mut self, shard: u32, is_whole: bool, inbox: Arc<Inbox>) -> Parts {
        let ClusterOptions { id, transport, .. } = self.options.clone();
        let weak = Arc::downgrade(&inbox);
        self.inboxes.0.push(weak.clone());
        Parts {
            config: Config {
                id,
                heartbeat_ticks: HEARTBEAT_TICKS,
                election_ticks: ELECTION_TICKS,
                quiet_ticks: QUIET_TICKS,
            },
            memory: Memory { is_whole, ..self.memory },
            forgotten: self.forgotten.clone(),
            seed: self.seed.wrapping_add(shard.into()),
            kept_bytes: self.kept_bytes,
            transfer_bytes: self.transfer_bytes,
            inbox,
            carrier: Box::new(Way {
                id,
                data_dir: self.data_dir.clone(),
                shard,
                transport,
                inbox: weak,
                fetches: self.fetches.clone(),
                works: self.works.clone(),
            }),
        }
    }

    /// Starts the clock of all shards, which ends with the last of them.
    pub(crate) fn start_clock(self, threads: &Threads) -> Result<Inboxes, StartError> {
        let inboxes = self.inboxes.clone();
        threads.spawn("ticks".to_owned(), move || run_ticks(&inboxes))?;
        Ok(self.inboxes)
    }
}

fn run_ticks(inboxes: &Inboxes) {
    loop {
        std::thread::sleep(TICK);
        let mut is_alive = false;
        for inbox in inboxes.0.iter().filter_map(Weak::upgrade) {
            inbox.tick();
            is_alive = true;
        }
        if !is_alive {
            return;
        }
    }
}

fn run_fetches(asked: &Receiver<(Weak<Inbox>, Fetch)>) {
    for (inbox, fetch) in asked {
        if let Some(inbox) = inbox.upgrade() {
            inbox.fetched(fetch.read());
        }
    }
}

fn run_works(given: Receiver<(Weak<Inbox>, Work)>) {
    for (inbox, given) in given {
        if let Some(inbox) = inbox.upgrade() {
            work::run(given, &inbox);
        }
    }
}

fn discard_if_whole(id: NodeId, data_dir: &Path, shard: u32, members: &Members) {
    if members.voters().contains(&id) {
        discard(data_dir, shard);
    }
}

/// Way of one shard.
struct Way {
    id: NodeId,
    data_dir: PathBuf,
    shard: u32,
    transport: Arc<dyn Transport>,
    inbox: Weak<Inbox>,
    fetches: Sender<(Weak<Inbox>, Fetch)>,
    works: Sender<(Weak<Inbox>, Work)>,
}

impl Carrier for Way {
    fn send(&mut self, envelope: Envelope) {
        self.transport.send(self.shard, envelope);
    }

    fn fetch(&mut self, fetch: Fetch) {
        // Fails only when the thread has panicked: then the follower waits for another leader.
        let _ = self.fetches.send((self.inbox.clone(), fetch));
    }

    fn send_state(&mut self, message: StateMessage) {
        self.transport.send_state(self.shard, message);
    }

    fn work(&mut self, work: Work) {
        // Fails only when the thread has panicked: then no state is sent or taken until the next start.
        let _ = self.works.send((self.inbox.clone(), work));
    }

    fn members(&mut self, members: &Members) {
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.get()).collect::<Vec<_>>();
        let [voters, learners] = [members.voters(), members.learners()].map(numbers);
        tracing::info!(shard = self.shard, ?voters, ?learners, "the members of the shard have changed");
        discard_if_whole(self.id, &self.data_dir, self.shard, members);
    }

    fn dropped(&mut self, from: NodeId, why: Dropped) {
        tracing::debug!(shard = self.shard, from = from.get(), ?why, "a message of another node was dropped");
    }
}
