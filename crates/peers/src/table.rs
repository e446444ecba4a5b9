//! Nodes of a cluster and their addresses, as one of them knows them.

use std::collections::BTreeMap;

use sluice_replica::NodeId;

/// Nodes of a cluster. Numbers of new nodes grow and are never given again, so one that is not above all
/// that the list of nodes has, and is no node's, belongs to a node that was removed. One above them may have
/// joined since.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeTable {
    /// Addresses of all nodes, `HOST:PORT`.
    pub addresses: BTreeMap<NodeId, String>,
    /// The highest number in the list of nodes; 0: the list is not known, nor who was removed.
    pub highest: u64,
}

impl NodeTable {
    /// The nodes with these addresses, which are no list: others may have joined or left meanwhile.
    pub fn of(addresses: BTreeMap<NodeId, String>) -> NodeTable {
        NodeTable { addresses, highest: 0 }
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
