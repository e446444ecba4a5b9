//! The node in its cluster: messages of other nodes, members and leaders of shards, by which requests are
//! passed on to the node that can serve them.

use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_replica::{Change, Envelope, NodeId, StateMessage};
use tokio::sync::oneshot;

use crate::agreed_clock::AgreedClock;
use crate::asks::Question;
use crate::handle::Node;
use crate::shard::leader::Leader;
use crate::shard::replicated::changes::{NotChanged, ShardMembers};

/// Pause before a shard is ordered again to hand over its leadership: the others may not have been heard of.
const HAND_OVER_PAUSE: Duration = Duration::from_millis(20);
/// Time for which a node goes on that has handed leaderships over: who was refused meanwhile comes again at
/// once, perhaps to this node.
const HAND_OVER_LINGER: Duration = Duration::from_millis(100);
/// Time for which a node tries to hand a leadership to another one.
const HAND_TO_TIME: Duration = Duration::from_secs(1);

/// Time after which a change of the members that is not in force is given up.
const CHANGE_TIME: Duration = Duration::from_secs(10);

impl Node {
    /// Takes in a message of another node for the replica of a shard, on any thread. Never blocks; the
    /// message is lost when too many wait, or when there is no such shard.
    pub fn deliver(&self, shard: u16, envelope: Envelope) {
        self.inner.inboxes.deliver(shard, envelope);
    }

    /// Takes in a message of another node about a state of a shard, as [`Node::deliver`] does.
    pub fn deliver_state(&self, shard: u16, message: StateMessage) {
        self.inner.inboxes.deliver_state(shard, message);
    }

    /// Takes in that the connection with another node is lost, on any thread: shards that it leads do not
    /// wait for it any longer. Never blocks.
    pub fn lost(&self, node: NodeId) {
        self.inner.inboxes.lost(node);
    }

    /// Takes in a doubt about another node, on any thread: nothing comes from it although the connection
    /// stands, or a connection has begun. Quiet shards look after their leaders again. Never blocks.
    pub fn doubt(&self) {
        self.inner.inboxes.doubt();
    }

    /// Hands all leaderships of this node to others, as a node does before it stops; waits until that is
    /// done, at most this long, and a moment more. A server alone has none to hand over.
    pub async fn hand_over(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let orders =
            |(shard, leader): (usize, &Leader)| leader.is_here() && self.inner.inboxes.hand_over(shard);
        let mut pause = Duration::ZERO;
        while self.leaders().iter().enumerate().filter(|led| orders(*led)).count() > 0
            && Instant::now() < deadline
        {
            pause = HAND_OVER_LINGER;
            tokio::time::sleep(HAND_OVER_PAUSE).await;
        }
        tokio::time::sleep(pause).await;
    }

    /// Hands the leadership of a shard to a node, whoever leads, as soon as that node is not far behind.
    ///
    /// # Errors
    /// `no_leader` when the node does not lead after 5 s: it is not reached, behind, or no other voter.
    pub async fn transfer(&self, shard: u32, to: u64) -> Result<(), Error> {
        let to = NodeId::new(to).ok_or(Error::NoLeader {})?;
        self.ask_leader(Question::Transfer { shard, to }).await.map(drop)
    }

    /// Hands the leadership of a shard to a node, if this one has it. True: the node leads.
    pub(crate) async fn hand_to(&self, shard: u32, to: NodeId) -> bool {
        let Some(cluster) = &self.inner.cluster else { return false };
        let own = cluster.id.get();
        let leader = || self.leaders()[shard as usize].number(own);
        let deadline = Instant::now() + HAND_TO_TIME;
        while leader() != Some(to.get()) && Instant::now() < deadline {
            if leader() == Some(own) {
                self.inner.inboxes.transfer_leader(shard as usize, to);
            }
            tokio::time::sleep(HAND_OVER_PAUSE).await;
        }
        leader() == Some(to.get())
    }

    /// Wall clock of the server, on which the nodes of a cluster agree.
    pub fn clock(&self) -> &AgreedClock {
        &self.inner.agreed_clock
    }

    /// True when this is a node of a cluster.
    pub fn is_clustered(&self) -> bool {
        self.inner.cluster.is_some()
    }

    /// Changes the members of a shard that this node leads; ends when the change is in force. One that is
    /// asked for again is refused as unfit.
    ///
    /// # Errors
    /// The change was refused, or is not known to be in force: see [`NotChanged`].
    pub async fn change_members(&self, shard: u16, change: Change) -> Result<(), NotChanged> {
        let inbox = self.inner.inboxes.of_shard(usize::from(shard)).ok_or(NotChanged::NoCluster)?;
        let (sender, answer) = oneshot::channel();
        inbox.change_members(change, sender);
        drop(inbox);
        let answered = tokio::time::timeout(CHANGE_TIME, answer).await;
        answered.ok().and_then(Result::ok).unwrap_or(Err(NotChanged::Unknown))
    }

    /// Members of a shard, as this node sees them. `None`: the node is alone, or the shard has ended.
    pub async fn members(&self, shard: u16) -> Option<ShardMembers> {
        let inbox = self.inner.inboxes.of_shard(usize::from(shard))?;
        let (sender, answer) = oneshot::channel();
        inbox.members(sender);
        drop(inbox);
        answer.await.ok()
    }

    /// Members of all shards, as their leaders know them. This node may lag in those that it does not lead:
    /// one that has just joined knows of no member yet.
    ///
    /// # Errors
    /// Those of [`Node::catch_up`]; `shutting_down` as well of a node that is alone.
    pub async fn current_members(&self) -> Result<Vec<ShardMembers>, Error> {
        let mut shards = Vec::with_capacity(self.leaders().len());
        for shard in 0..self.leaders().len() {
            self.catch_up(shard as u32).await?;
            shards.push(self.members(shard as u16).await.ok_or(Error::ShuttingDown {})?);
        }
        Ok(shards)
    }

    /// Leaders of the shards, in their order.
    pub fn leaders(&self) -> &[Leader] {
        &self.inner.leaders
    }

    /// Leader of the shard of a namespace; of a namespace that this node does not know, that of shard 0,
    /// where all are known.
    pub fn leader_of(&self, namespace: &str) -> &Leader {
        let shard = self.inner.placement.by_name(namespace).map_or(0, |place| place.shard);
        &self.leaders()[shard as usize]
    }

    /// Number of the node that leads shard 0, which has the list of namespaces, the tokens and the audit log.
    /// `None`: this node leads it, or no leader is known.
    pub fn first_leader_elsewhere(&self) -> Option<u64> {
        self.leaders()[0].elsewhere()
    }
}
