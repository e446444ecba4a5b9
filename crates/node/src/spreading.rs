//! Leaderships spread evenly over the nodes of a cluster.
//!
//! Of two nodes the one that leads at least two shards more gives one away, so each move makes the difference
//! smaller and none is ever taken back. One node at a time moves one leadership, after all have stayed where
//! they are for a while, and only to a follower that is not behind.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_replica::NodeId;
use tokio::time::Instant;

use crate::api::Follower;
use crate::handle::Node;

/// Pause between two looks at who leads.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for which no leadership has changed before one is moved: whoever was started or told to lead has the
/// time to do so.
const QUIET: Duration = Duration::from_secs(30);

impl Node {
    /// Spreads leaderships evenly, until the node stops. A task of each node of a cluster runs it.
    pub async fn keep_leaders_spread(&self) {
        let Some(own) = self.inner.cluster.as_ref().map(|cluster| cluster.id.get()) else { return };
        let mut seen = (Vec::new(), Instant::now());
        while self.leaders().len() > 1 && !self.inner.stopping.load(Ordering::Relaxed) {
            let leaders: Vec<_> = self.leaders().iter().map(|leader| leader.number(own)).collect();
            if leaders != seen.0 {
                seen = (leaders, Instant::now());
            } else if seen.1.elapsed() >= QUIET
                && let Some((shard, to)) = next_move(own, &leaders, &self.followers().await)
            {
                tracing::info!(shard, to = to.get(), "the leadership of the shard goes to a node with fewer");
                self.hand_to(shard, to).await;
                seen.1 = Instant::now();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The other members of each shard that this node leads, by its number.
    async fn followers(&self) -> BTreeMap<u32, Vec<Follower>> {
        let (mut followers, stale) = (BTreeMap::new(), self.stale());
        for (shard, _) in (0..).zip(self.leaders()).filter(|(_, leader)| leader.is_here()) {
            if let Ok(Some(replicas)) = stale.look(shard, |at| at.journal.replicas()).await {
                followers.insert(shard, replicas.followers);
            }
        }
        followers
    }
}

/// The leadership that this node gives away next: its shard, and the node that gets it. `leaders` are those
/// of all shards, `followers` the other members of the shards that this node leads.
fn next_move(
    own: u64,
    leaders: &[Option<u64>],
    followers: &BTreeMap<u32, Vec<Follower>>,
) -> Option<(u32, NodeId)> {
    // Somebody is being elected.
    if leaders.contains(&None) {
        return None;
    }
    let led = |node: u64| leaders.iter().filter(|leader| **leader == Some(node)).count();
    let (_, Reverse(most)) = leaders.iter().flatten().map(|node| (led(*node), Reverse(*node))).max()?;
    if most != own {
        return None;
    }
    let fit = followers.iter().flat_map(|(shard, followers)| {
        let fit = followers.iter().filter(|follower| follower.is_fit_to_lead());
        fit.map(|follower| (led(follower.node.get()), follower.node, *shard))
    });
    let (least, to, shard) = fit.min()?;
    (least + 2 <= led(own)).then_some((shard, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeId {
        NodeId::new(number).unwrap()
    }

    fn follower(number: u64, bytes: u64) -> Follower {
        Follower {
            node: node(number),
            is_voter: true,
            is_heard: true,
            has_room: true,
            is_known: true,
            needs_state: false,
            is_caught_up: true,
            records: 0,
            bytes,
            missing_since_us: None,
        }
    }

    /// The next move of a node of three, of which `behind` misses much.
    fn moved(own: u64, leaders: &[Option<u64>], behind: u64) -> Option<(u32, NodeId)> {
        let followers = |(shard, leader): (u32, &Option<u64>)| {
            let others = (1..=3).filter(|number| *number != own);
            let others = others.map(|number| follower(number, if number == behind { 1 << 30 } else { 0 }));
            (*leader == Some(own)).then(|| (shard, others.collect()))
        };
        next_move(own, leaders, &(0..).zip(leaders).filter_map(followers).collect())
    }

    #[test]
    fn who_leads_most_gives_to_who_leads_least_and_is_not_behind() {
        let leaders = [1, 1, 1, 2].map(Some);
        assert_eq!(moved(1, &leaders, 0), Some((0, node(3))));
        assert_eq!(moved(1, &leaders, 3), Some((0, node(2))));
        assert_eq!([moved(2, &leaders, 0), moved(3, &leaders, 0)], [None, None]);
        assert_eq!(moved(1, &[Some(1), Some(1), None, Some(2)], 0), None);
    }

    #[test]
    fn from_any_beginning_leaders_are_spread_and_then_stay() {
        for start in 0..3u64.pow(7) {
            let leader = |shard: u32| Some(start / 3u64.pow(shard) % 3 + 1);
            let mut leaders: Vec<Option<u64>> = (0..7).map(leader).collect();
            let mut moves = 0;
            while let Some((shard, to)) = (1..=3).find_map(|own| moved(own, &leaders, 0)) {
                leaders[shard as usize] = Some(to.get());
                moves += 1;
                assert!(moves <= 7, "{start}");
            }
            let mut counts = [1, 2, 3].map(|own| leaders.iter().filter(|it| **it == Some(own)).count());
            counts.sort_unstable();
            assert_eq!(counts, [2, 2, 3], "{start}");
        }
    }
}
