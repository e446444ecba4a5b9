//! Nodes of a cluster and their addresses, as one of them knows them.

use std::collections::BTreeMap;

use sluice_replica::NodeId;

/// Nodes of a cluster. Numbers of new nodes grow and are never given again, so one that is not above all
/// that were given, and is no node's, belongs to a node that was removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeTable {
    /// Addresses of all nodes, `HOST:PORT`.
    pub addresses: BTreeMap<NodeId, String>,
    /// The highest number that was ever given to a node.
    pub highest: u64,
}

impl NodeTable {
    /// The nodes with these addresses, of which none was removed after the last.
    pub fn of(addresses: BTreeMap<NodeId, String>) -> NodeTable {
        let highest = addresses.keys().last().map_or(0, |node| node.get());
        NodeTable { addresses, highest }
    }

    /// True: the node belongs to the cluster.
    pub fn contains(&self, node: NodeId) -> bool {
        self.addresses.contains_key(&node)
    }

    /// True: the node belonged to the cluster and was removed.
    pub fn is_removed(&self, node: NodeId) -> bool {
        node.get() <= self.highest && !self.contains(node)
    }
}
