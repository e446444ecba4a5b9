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
/// Pause before the shards are asked for their followers once more, where nothing was to be moved: that wakes
/// all that the node leads.
const ASK_EVERY: Duration = Duration::from_secs(5);

impl Node {
    /// Spreads leaderships evenly, until the node stops. A task of each node of a cluster runs it.
    pub async fn keep_leaders_spread(&self) {
        let Some(own) = self.inner.cluster.as_ref().map(|cluster| cluster.id.get()) else { return };
        let (mut seen, mut due) = (Vec::new(), Instant::now());
        while self.leaders().len() > 1 && !self.inner.stopping.load(Ordering::Relaxed) {
            let leaders: Vec<_> = self.leaders().iter().map(|leader| leader.number(own)).collect();
            if leaders != seen {
                (seen, due) = (leaders, Instant::now() + QUIET);
            } else if Instant::now() >= due && leads_most(own, &leaders) {
                due = Instant::now() + ASK_EVERY;
                if let Some((shard, to)) = next_move(own, &leaders, &self.followers().await) {
                    tracing::info!(
                        shard,
                        to = to.get(),
                        "the leadership of the shard goes to a node with fewer"
                    );
                    self.hand_to(shard, to).await;
                    due = Instant::now() + QUIET;
                }
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

/// Number of shards that a node leads.
fn led(node: u64, leaders: &[Option<u64>]) -> usize {
    leaders.iter().filter(|leader| **leader == Some(node)).count()
}

/// True for the node that leads most shards, one at a time: of several the one with the lowest number.
/// `leaders` are those of all shards.
fn leads_most(own: u64, leaders: &[Option<u64>]) -> bool {
    // Otherwise somebody is being elected.
    let is_known = !leaders.contains(&None);
    let most = leaders.iter().flatten().max_by_key(|node| (led(**node, leaders), Reverse(**node)));
    is_known && most == Some(&own)
}

/// The leadership that the node which leads most gives away next: its shard, and the node that gets it.
/// `followers` are the other members of the shards that it leads.
fn next_move(
    own: u64,
    leaders: &[Option<u64>],
    followers: &BTreeMap<u32, Vec<Follower>>,
) -> Option<(u32, NodeId)> {
    let fit = followers.iter().flat_map(|(shard, followers)| {
        let fit = followers.iter().filter(|follower| follower.is_fit_to_lead());
        fit.map(|follower| (led(follower.node.get(), leaders), follower.node, *shard))
    });
    let (least, to, shard) = fit.min()?;
    (least + 2 <= led(own, leaders)).then_some((shard, to))
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
        let followers = (0..).zip(leaders).filter_map(followers).collect();
        leads_most(own, leaders).then(|| next_move(own, leaders, &followers)).flatten()
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
