//! The node in its cluster: messages of other nodes, and leaders of shards, by which requests are passed on
//! to the node that can serve them.

use sluice_replica::Envelope;

use crate::handle::Node;
use crate::shard::leader::Leader;

impl Node {
    /// Takes in a message of another node for the replica of a shard, on any thread. Never blocks; the
    /// message is lost when too many wait, or when there is no such shard.
    pub fn deliver(&self, shard: u16, envelope: Envelope) {
        self.inner.inboxes.deliver(shard, envelope);
    }

    /// Leaders of the shards, in their order.
    pub fn leaders(&self) -> &[Leader] {
        &self.inner.leaders
    }

    /// Number of the node that leads the shard of a namespace; for a namespace that this node does not know,
    /// that of the one which leads shard 0, where all are known. `None`: this node leads it, or no leader is
    /// known.
    pub fn leader_elsewhere(&self, namespace: &str) -> Option<u64> {
        let shard = self.inner.placement.by_name(namespace).map_or(0, |place| place.shard);
        self.leaders()[shard as usize].elsewhere()
    }

    /// Number of the node that leads shard 0, which has the list of namespaces, the tokens and the audit log.
    /// `None`: as in [`Node::leader_elsewhere`].
    pub fn first_leader_elsewhere(&self) -> Option<u64> {
        self.leaders()[0].elsewhere()
    }
}
