//! Leaders of shards, by which requests are passed on to the node that can serve them.

use crate::handle::Node;
use crate::shard::leader::Leader;

impl Node {
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
