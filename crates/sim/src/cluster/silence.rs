//! Silence on the connections between nodes: what the transport tells of it.

use super::ClusterWorld;

/// Number of ticks without a frame after which a node is told of the silence.
const SILENT_TICKS: u32 = 15;
/// Number of ticks without a frame after which the connection is lost.
const LOST_TICKS: u32 = 75;

/// Connection of a node with another.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Life of the other node with which it stands, or stood last.
    life: u64,
    /// Number of ticks since which nothing has come.
    silent_ticks: u32,
}

impl Link {
    /// True: the connection stands.
    pub(super) fn is_connected(&self) -> bool {
        self.silent_ticks < LOST_TICKS
    }
}

impl ClusterWorld {
    /// Lets a node look, at a tick, from whom nothing comes: nodes that are down or paused, and those behind
    /// links that are cut. All others say at least that they are alive. A connection begins with each life of
    /// the other, and after one that was lost.
    pub(super) fn notice_silence(&mut self, node: usize) {
        for peer in (0..self.nodes.len()).filter(|peer| *peer != node) {
            let is_up = self.nodes[peer].server.is_some() && self.pause(peer).is_none();
            let is_heard = is_up && !self.network.is_cut(peer, node);
            let (id, life) = (self.nodes[peer].id(), self.nodes[peer].life);
            let owner = &mut self.nodes[node];
            let link = owner.links.entry(peer).or_default();
            let is_begun = is_heard && (link.life != life || link.silent_ticks >= LOST_TICKS);
            link.life = if is_heard { life } else { link.life };
            link.silent_ticks = if is_heard { 0 } else { link.silent_ticks.saturating_add(1) };
            let Some(server) = &owner.server else { return };
            if is_begun || link.silent_ticks == SILENT_TICKS {
                server.inbox.doubt();
            } else if link.silent_ticks == LOST_TICKS {
                server.inbox.lost(id);
            }
        }
    }

    /// Counts the times at which a member becomes quiet.
    pub(super) fn count_quiet(&mut self, node: usize) {
        let owner = &mut self.nodes[node];
        let Some(server) = &mut owner.server else { return };
        let is_quiet = server.shard.store().store.member().is_quiet();
        self.stats.quiets += u64::from(is_quiet && !std::mem::replace(&mut owner.was_quiet, is_quiet));
        owner.was_quiet = is_quiet;
    }
}
