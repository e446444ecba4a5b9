//! Follows the list of the cluster's nodes: connections go to those that are listed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluice_calls::roster::{ListedNode, Roster, Wanted};
use sluice_node::Node;
use sluice_peers::{NodeTable, Peers};
use sluice_replica::NodeId;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use super::init::FIRST;

/// Pause between two looks at the list.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The parts that follow the list.
pub(super) struct Following {
    pub(super) node: Node,
    pub(super) roster: Roster,
    pub(super) peers: Peers,
    pub(super) own: NodeId,
    /// Address of this node.
    pub(super) address: String,
    /// Told when this node was removed.
    pub(super) removed: Arc<Notify>,
}

impl Following {
    /// Follows the list for as long as the server runs.
    pub(super) async fn run(self) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut logged = String::new();
        loop {
            looks.tick().await;
            if let Err(reason) = self.look().await
                && reason != logged
            {
                tracing::debug!("the list of nodes cannot be followed just now: {reason}");
                logged = reason;
            }
        }
    }

    async fn look(&self) -> Result<(), String> {
        let listed = self.roster.nodes(&self.node.stale()).await.map_err(|e| e.to_string())?;
        self.take_up(&listed);
        if listed.is_empty() && self.own.get() == FIRST && self.node.leaders()[0].is_here() {
            return self.roster.begin(&self.node, &self.address).await.map_err(|e| e.message().to_owned());
        }
        Ok(())
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
            self.peers.set_nodes(nodes);
        }
    }
}
