//! Follows the list of the cluster's nodes: connections go to those that are listed, and the leader of each
//! shard brings its members into line with them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_calls::roster::{ListedNode, Roster};
use sluice_node::steering::{Part, Place, Step, Wanted, are_settled, gone, next, replaced};
use sluice_node::{Node, ShardMembers};
use sluice_peers::{NodeTable, Peers};
use sluice_replica::NodeId;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use super::node_file::NodeFile;

/// Pause between two looks at the list.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time for which the members of the shards are not looked at again while the list and the leaderships stay,
/// and all members are as listed.
const SETTLED_FOR: Duration = Duration::from_secs(10);
/// Longest time for handing over the leaderships of a node that is to be removed.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);

/// The parts that follow the list.
pub(super) struct Following {
    pub(super) node: Node,
    pub(super) roster: Roster,
    pub(super) peers: Peers,
    pub(super) own: NodeId,
    /// True: the list begins with this node.
    pub(super) is_first: bool,
    /// Address of this node.
    pub(super) address: String,
    /// Data directory, with the file of the node.
    pub(super) data_dir: PathBuf,
    /// Told when this node was removed.
    pub(super) removed: Arc<Notify>,
}

/// List and leaderships at a time at which all members were as listed.
struct Settled {
    listed: Vec<ListedNode>,
    leads: Vec<bool>,
    at: Instant,
}

impl Settled {
    fn holds(&self, listed: &[ListedNode], leads: &[bool]) -> bool {
        self.listed == listed && self.leads == leads && self.at.elapsed() < SETTLED_FOR
    }
}

impl Following {
    /// Follows the list for as long as the server runs.
    pub(super) async fn run(self) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut logged, mut settled) = (String::new(), None);
        loop {
            looks.tick().await;
            if let Err(reason) = self.look(&mut settled).await
                && reason != logged
            {
                tracing::info!("the list of nodes cannot be followed just now: {reason}");
                logged = reason;
            }
        }
    }

    async fn look(&self, settled: &mut Option<Settled>) -> Result<(), String> {
        let listed = self.roster.nodes(&self.node.stale()).await.map_err(|e| e.to_string())?;
        self.take_up(&listed);
        let leads: Vec<bool> = self.node.leaders().iter().map(|leader| leader.is_here()).collect();
        if !leads.contains(&true) {
            return Ok(());
        }
        if listed.is_empty() && self.is_first && leads[0] {
            let begun = self.roster.begin(&self.node, self.own.get(), &self.address).await;
            return begun.map_err(|e| e.message().to_owned());
        }
        if settled.as_ref().is_some_and(|settled| settled.holds(&listed, &leads)) {
            return Ok(());
        }
        *settled = None;
        let shards = self.members().await?;
        let parts: Vec<Part> = listed.iter().map(ListedNode::part).collect();
        if are_settled(&parts, &shards) {
            *settled = Some(Settled { listed, leads, at: Instant::now() });
            return Ok(());
        }
        let elsewhere =
            if leads[0] { self.members_elsewhere(&parts, &shards).await } else { BTreeSet::new() };
        for (number, shard) in shards.iter().enumerate().filter(|(number, _)| leads[*number]) {
            let first = &shards[0].members;
            let place = if number == 0 { Place::First(&elsewhere) } else { Place::Other(first) };
            self.step(number as u16, next(&parts, shard, self.own, place)).await?;
        }
        let has_come = !gone(&parts, &shards).is_empty() || replaced(&parts, &shards).is_some();
        if leads[0] && has_come {
            self.tidy(&parts).await?;
        }
        Ok(())
    }

    /// Members of all shards, as this node knows them.
    async fn members(&self) -> Result<Vec<ShardMembers>, String> {
        let (mut shards, all) = (Vec::new(), self.node.leaders().len());
        for number in 0..all {
            shards.extend(self.node.members(number as u16).await);
        }
        if shards.len() < all { Err(format!("{} of {all} shards run", shards.len())) } else { Ok(shards) }
    }

    /// Connects to the nodes that are listed. A list without this node is older than its join.
    fn take_up(&self, listed: &[ListedNode]) {
        let Some(own) = listed.iter().find(|node| node.number == self.own.get()) else { return };
        if own.wanted == Wanted::Removed {
            self.removed.notify_one();
            return;
        }
        let present = listed.iter().filter(|node| node.wanted != Wanted::Removed);
        let addresses: BTreeMap<NodeId, String> =
            present.filter_map(|node| Some((NodeId::new(node.number)?, node.address.clone()))).collect();
        let highest = listed.iter().map(|node| node.number).max().unwrap_or_default();
        let nodes = NodeTable { addresses, highest };
        if *self.peers.nodes() != nodes {
            self.keep(&nodes);
            self.peers.set_nodes(nodes);
        }
    }

    /// Keeps the addresses for a start without the list. A node that has forgotten something gets another
    /// file just now.
    fn keep(&self, nodes: &NodeTable) {
        let addresses = nodes.addresses.iter().map(|(node, address)| (node.get(), address.clone())).collect();
        let kept = (!self.node.has_forgotten())
            .then(|| NodeFile::change(&self.data_dir, self.own.get(), |place| place.nodes = addresses));
        if let Some(Err(error)) = kept {
            tracing::warn!("the addresses of the nodes could not be kept: {}", error.message());
        }
    }

    async fn step(&self, number: u16, step: Option<Step>) -> Result<(), String> {
        match step {
            Some(Step::Change(change)) => {
                let changed = self.node.change_members(number, change).await;
                changed.map_err(|e| format!("{change:?} in shard {number}: {e}"))
            }
            Some(Step::HandOver) => {
                self.node.hand_over(HAND_OVER_MAX).await;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Nodes that are members of a shard other than the first, as far as they leave the first one; all that
    /// leave, where that cannot be known now.
    async fn members_elsewhere(&self, listed: &[Part], shards: &[ShardMembers]) -> BTreeSet<NodeId> {
        let leaving = listed.iter().filter(|node| node.wanted != Wanted::Voter);
        let leaving = leaving.filter_map(|node| NodeId::new(node.number));
        let leaving: BTreeSet<NodeId> = leaving.filter(|node| shards[0].members.contains(*node)).collect();
        if leaving.is_empty() || shards.len() == 1 {
            return BTreeSet::new();
        }
        let Ok(shards) = self.node.current_members().await else { return leaving };
        let is_elsewhere = |node: &NodeId| shards[1..].iter().any(|shard| shard.members.contains(*node));
        leaving.into_iter().filter(is_elsewhere).collect()
    }

    /// Notes what has come to pass in all shards.
    async fn tidy(&self, listed: &[Part]) -> Result<(), String> {
        let shards = self.node.current_members().await;
        let shards = shards.map_err(|e| format!("the members of the shards are not known for sure: {e}"))?;
        for number in gone(listed, &shards) {
            self.roster.removed(&self.node, number).await.map_err(|e| e.to_string())?;
            tracing::info!("node {number} was removed from the cluster");
        }
        if let Some(number) = replaced(listed, &shards) {
            let mut connected: Vec<u64> = self.peers.connected().iter().map(|peer| peer.node.get()).collect();
            connected.push(self.own.get());
            let marked = self.roster.remove(&self.node, number, &connected).await;
            marked.map_err(|e| e.message().to_owned())?;
        }
        Ok(())
    }
}
