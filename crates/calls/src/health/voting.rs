//! Votes of the nodes: how many of them may fail, and which do not vote yet.

use super::Seen;
use crate::view::{FollowerView, ShardView};
use crate::wording::counted;

/// Age of the oldest record that a follower lacks, in milliseconds, from which it is behind: far more than
/// the time of a write.
const BEHIND_MS: u64 = 10_000;
/// Length of what it lacks, in bytes, from which it is behind.
const BEHIND_BYTES: u64 = 64 << 20;

/// True for a follower that lacks more than what is on its way.
pub(super) fn is_behind(follower: &FollowerView) -> bool {
    follower.needs_state || follower.ms >= BEHIND_MS || follower.bytes >= BEHIND_BYTES
}

/// Each shard as the node sees it that says that it leads, in the highest term; `None`: no node says so.
pub(super) fn led(seen: &[Seen]) -> Vec<Option<(u64, &ShardView)>> {
    let views = || seen.iter().filter_map(|seen| Some((seen.status.number, seen.view.as_ref()?)));
    let count = views().map(|(_, view)| view.shards.len()).max().unwrap_or(0);
    let of_shard = |number: usize| {
        let known = views().filter_map(|(node, view)| Some((node, view.shards.get(number)?)));
        known.filter(|(node, shard)| shard.leader == Some(*node)).max_by_key(|(_, shard)| shard.term)
    };
    (0..count).map(of_shard).collect()
}

/// The nodes that vote in a shard, as its leader sees them; all, while no shard is known to have one.
pub(super) fn voters(seen: &[Seen]) -> Vec<&Seen> {
    let led: Vec<(u64, &ShardView)> = led(seen).into_iter().flatten().collect();
    let votes = |node: &&Seen| {
        let is_voter = |follower: &FollowerView| follower.votes && follower.node == node.status.number;
        led.iter()
            .any(|(leader, shard)| *leader == node.status.number || shard.followers.iter().any(is_voter))
    };
    seen.iter().filter(|node| led.is_empty() || votes(node)).collect()
}

/// Number of nodes that may fail now, whichever they are: of each shard a majority of those that vote is left
/// that hears the leader and has what was acknowledged.
pub(super) fn tolerated(seen: &[Seen]) -> usize {
    let of_shard = |(number, led): (usize, Option<(u64, &ShardView)>)| {
        let Some((leader, shard)) = led else { return 0 };
        let voters = || shard.followers.iter().filter(|follower| follower.votes);
        let counts =
            |follower: &&FollowerView| !is_behind(follower) && hears(seen, follower.node, number, leader);
        let [voting, counting] = [1 + voters().count(), 1 + voters().filter(counts).count()];
        counting.saturating_sub(voting / 2 + 1)
    };
    led(seen).into_iter().enumerate().map(of_shard).min().unwrap_or(0)
}

/// True for a node that answers, hears the leader of a shard, and can take what that sends.
fn hears(seen: &[Seen], node: u64, shard: usize, leader: u64) -> bool {
    let view = seen.iter().find(|seen| seen.status.number == node).and_then(|seen| seen.view.as_ref());
    let own = view.filter(|view| !view.has_forgotten).and_then(|view| view.shards.get(shard));
    own.is_some_and(|own| own.leader == Some(leader) && !own.is_stalled && !own.is_full)
}

/// Nodes that have joined and do not vote yet in a shard.
pub(super) fn learning(seen: &[Seen]) -> Vec<String> {
    let led: Vec<(u64, &ShardView)> = led(seen).into_iter().flatten().collect();
    let sentence = |node: &Seen| {
        let number = node.status.number;
        let learnt: Vec<_> =
            led.iter().filter_map(|(leader, shard)| learns(number, *leader, shard)).collect();
        let sum = |of: fn(&FollowerView) -> u64| learnt.iter().flatten().map(|follower| of(follower)).sum();
        let [records, bytes]: [u64; 2] = [sum(|follower| follower.records), sum(|follower| follower.bytes)];
        let lacks = match records {
            0 => String::new(),
            _ => format!(", of which it lacks {} ({bytes} bytes)", counted(records, "record")),
        };
        (!learnt.is_empty()).then(|| {
            format!(
                "node {number} gets the data of {}{lacks}, and does not vote there until it has caught up: wait, the \
                 rest goes by itself",
                counted(learnt.len() as u64, "shard")
            )
        })
    };
    seen.iter().filter(|node| node.view.is_some()).filter_map(sentence).collect()
}

/// The node as the leader of a shard sees it in which it does not vote yet; `Some(None)`: the leader has not
/// begun with it. Numbers grow, so that one below others was a member, and is removed.
fn learns(node: u64, leader: u64, shard: &ShardView) -> Option<Option<&FollowerView>> {
    match shard.followers.iter().find(|follower| follower.node == node) {
        Some(follower) => (!follower.votes).then_some(Some(follower)),
        None => {
            let is_newest = leader < node && shard.followers.iter().all(|other| other.node < node);
            is_newest.then_some(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::diagnosis::tests::well;
    use super::*;

    fn follower(seen: &mut [Seen], place: usize) -> &mut FollowerView {
        &mut seen[0].view.as_mut().unwrap().shards[0].followers[place]
    }

    fn own(seen: &mut [Seen], place: usize) -> &mut ShardView {
        &mut seen[place].view.as_mut().unwrap().shards[0]
    }

    #[test]
    fn three_nodes_that_are_well_outlive_the_loss_of_one() {
        assert_eq!(tolerated(&well()), 1);
        // As long as each of them counts.
        let harms: [fn(&mut [Seen]); 7] = [
            |seen| seen[2].view = None,
            |seen| own(seen, 2).leader = None,
            |seen| own(seen, 2).is_full = true,
            |seen| own(seen, 2).is_stalled = true,
            |seen| follower(seen, 1).needs_state = true,
            |seen| follower(seen, 1).bytes = BEHIND_BYTES,
            |seen| follower(seen, 1).votes = false,
        ];
        for (number, harm) in harms.into_iter().enumerate() {
            let mut seen = well();
            harm(&mut seen);
            assert_eq!(tolerated(&seen), 0, "harm {number}");
        }
    }

    #[test]
    fn the_shard_that_outlives_least_counts_and_one_without_a_leader_outlives_nothing() {
        let mut seen = well();
        for node in &mut seen {
            let shards = &mut node.view.as_mut().unwrap().shards;
            shards.push(shards[0].clone());
        }
        assert_eq!(tolerated(&seen), 1);
        seen[0].view.as_mut().unwrap().shards[1].followers[1].votes = false;
        assert_eq!(tolerated(&seen), 0);
        own(&mut seen, 0).leader = None;
        assert_eq!((tolerated(&seen), led(&seen)[0].is_none()), (0, true));
    }

    #[test]
    fn a_node_that_learns_is_told_with_what_it_lacks_until_it_votes() {
        let mut seen = well();
        assert_eq!(learning(&seen), [""; 0]);
        let learner = follower(&mut seen, 1);
        (learner.votes, learner.records, learner.bytes) = (false, 12, 3_456);
        let told = "node 3 gets the data of 1 shard, of which it lacks 12 records (3456 bytes), and does not vote there \
                    until it has caught up: wait, the rest goes by itself";
        assert_eq!(learning(&seen), [told]);
        // It has joined, and the leader has not begun with it.
        own(&mut seen, 0).followers.pop();
        let told = "node 3 gets the data of 1 shard, and does not vote there until it has caught up: wait, the rest goes \
                    by itself";
        assert_eq!(learning(&seen), [told]);
        seen[2].view = None;
        assert_eq!(learning(&seen), [""; 0], "that it is not reached is told");
    }

    #[test]
    fn a_node_that_was_removed_does_not_learn() {
        let mut seen = well();
        own(&mut seen, 0).followers.remove(0);
        assert_eq!(learning(&seen), [""; 0]);
    }
}
