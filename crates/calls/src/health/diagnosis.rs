//! Problems of a cluster, in sentences: each says what is wrong, and behind a colon what to do.

use std::collections::BTreeMap;

use sluice_engine::Limits;

use super::Seen;
use super::links::{PARTED_MS, is_running, parted, parted_ms, twins, unreached};
use super::voting::{is_behind, learning, voters};
use crate::view::{FollowerView, ShardView, View, by_setting};
use crate::wording::{counted, duration};

/// Number of nodes from which a cluster outlives the loss of one.
const NODES_MIN: usize = 3;
/// Difference of wall clocks, in milliseconds, from which one is wrong.
const CLOCK_MS: i64 = 1_000;

/// The problems, worst first, as node `own` sees them, by whose state these limits are in force.
pub(super) fn problems(own: u64, limits: &Limits, seen: &[Seen]) -> Vec<String> {
    let views: Vec<(u64, &View)> =
        seen.iter().filter_map(|seen| Some((seen.status.number, seen.view.as_ref()?))).collect();
    let mut problems = Vec::new();
    problems.extend(majority(own, seen));
    problems.extend(too_few(seen.len()));
    let forgotten = forgotten(voters(seen).len(), &views);
    if forgotten.is_none() {
        problems.extend(leaderless(&views));
    }
    problems.extend(forgotten);
    problems.extend(unreached(own, seen));
    problems.extend(parted(seen));
    problems.extend(unled(seen));
    problems.extend(twins(seen));
    problems.extend(views.iter().flat_map(|(node, view)| disk(*node, view)));
    problems.extend(views.iter().flat_map(|(node, view)| damage(*node, view)));
    problems
        .extend(views.iter().flat_map(|(node, view)| view.unreached.iter().map(|to| cut_off(*node, *to))));
    let led = views.iter().flat_map(|(node, view)| {
        let led = view.shards.iter().enumerate().filter(|(_, shard)| shard.leader == Some(*node));
        led.flat_map(|(number, shard)| shard.followers.iter().filter_map(move |it| behind(number, it)))
    });
    problems.extend(led);
    problems.extend(learning(seen));
    problems.extend(policies(&views));
    problems.extend(versions(&views));
    problems.extend(finalize(seen));
    problems.extend(seen.iter().filter_map(clock));
    problems.extend(views.iter().filter_map(|(node, view)| settings(*node, view, limits)));
    problems
}

/// A machine that has a number and does not vote yet is none of the nodes that are counted.
fn majority(own: u64, seen: &[Seen]) -> Option<String> {
    let voters = voters(seen);
    let nodes = voters.len();
    let running = voters.iter().filter(|node| is_running(node, seen)).count();
    let reached = voters.iter().filter(|node| node.view.is_some()).count();
    let needed = nodes / 2 + 1;
    if reached < needed {
        return Some(format!(
            "node {own} reaches {reached} of {nodes} nodes, itself included, and nothing can be done without {needed}: \
             start the others and see that the machines reach each other"
        ));
    }
    (running == needed && running < nodes).then(|| {
        format!(
            "{running} of {nodes} nodes are left, and the loss of one more stops the cluster: bring the others back soon"
        )
    })
}

/// A cluster that outlives the loss of no node, even if all are there.
fn too_few(nodes: usize) -> Option<String> {
    let missing = NODES_MIN.checked_sub(nodes).filter(|missing| *missing > 0)?;
    Some(format!(
        "the cluster has {}, and the loss of one stops it: let {} join",
        counted(nodes as u64, "node"),
        counted(missing as u64, "more machine")
    ))
}

/// Nodes that are silent, since they may have forgotten something. As long as they are a minority, they come
/// back by themselves.
fn forgotten(nodes: usize, views: &[(u64, &View)]) -> Option<String> {
    let silent: Vec<u64> =
        views.iter().filter(|(_, view)| view.has_forgotten).map(|(node, _)| *node).collect();
    let [first, others @ ..] = silent.as_slice() else { return None };
    let told = others.iter().fold(format!("node {first}"), |told, node| format!("{told} and node {node}"));
    let lost = format!(
        "{told} may have forgotten what was acknowledged, after a loss of power before it was synced, of a part \
         of the log, or of other data"
    );
    Some(if silent.len() < nodes.div_ceil(2) {
        format!(
            "{lost}, and has no vote: each comes back by itself as soon as a leader gives it a new number"
        )
    } else {
        format!(
            "{lost}. The others are no majority of the {nodes} nodes, so that no leader is elected: stop the \
             servers, and run `sluice cluster recover` on the node that has most, which makes it the only \
             one that votes"
        )
    })
}

fn leaderless(views: &[(u64, &View)]) -> Vec<String> {
    let count = views.iter().map(|(_, view)| view.shards.len()).max().unwrap_or(0);
    let known =
        |number: usize| views.iter().filter_map(move |(node, view)| Some((*node, view.shards.get(number)?)));
    // Of a leader that is not reached from here others know.
    let is_seen = |node: u64| views.iter().any(|(seen, _)| *seen == node);
    let led = |number: usize| {
        known(number).any(|(node, shard)| shard.leader.is_some_and(|it| it == node || !is_seen(it)))
    };
    let sentence = |number: usize| {
        let since_ms = known(number).map(|(_, shard)| shard.leaderless_ms).min().unwrap_or(0);
        format!(
            "shard {number} has had no leader for {}: one is elected within some seconds when a majority of its nodes run \
             and reach each other",
            duration(since_ms)
        )
    };
    (0..count).filter(|number| !led(*number)).map(sentence).collect()
}

/// Nodes that vote in a shard and do not hear its leader, for another reason than that the two are parted.
fn unled(seen: &[Seen]) -> Vec<String> {
    let of = |node: u64| seen.iter().find(|seen| seen.status.number == node);
    let sentence = |leader: &Seen, shard: usize, follower: &FollowerView| {
        let voter = of(follower.node).filter(|_| follower.votes)?;
        let view = voter.view.as_ref().filter(|view| !view.has_forgotten)?;
        let own = view.shards.get(shard).filter(|own| own.leaderless_ms >= PARTED_MS)?;
        parted_ms(leader, voter).is_none().then(|| {
            format!(
                "node {} votes in shard {shard} and has not heard its leader, node {}, for {}, so that it does not count: \
                 look at the logs of both, and start it again if that does not end",
                follower.node,
                leader.status.number,
                duration(own.leaderless_ms)
            )
        })
    };
    let of_leader = |leader: &Seen| {
        let shards = leader.view.iter().flat_map(|view| view.shards.iter().enumerate());
        let led = shards.filter(|(_, shard)| shard.leader == Some(leader.status.number));
        let told = led.flat_map(|(number, shard)| shard.followers.iter().map(move |it| (number, it)));
        told.filter_map(|(number, follower)| sentence(leader, number, follower)).collect::<Vec<_>>()
    };
    seen.iter().flat_map(of_leader).collect()
}

fn disk(node: u64, view: &View) -> Vec<String> {
    let any = |is: fn(&ShardView) -> bool| view.shards.iter().any(is);
    let mut problems = Vec::new();
    if any(|shard| shard.is_stalled) {
        problems.push(format!(
            "the disk of node {node} does not finish its writes, so that it neither leads nor votes: look at the disk"
        ));
    }
    if any(|shard| shard.is_full) {
        problems.push(format!(
            "the disk of node {node} is full, so that it takes no new messages: free some space there"
        ));
    } else if any(|shard| shard.is_low) {
        problems.push(format!("the disk of node {node} is nearly full: free some space there"));
    }
    problems
}

/// Shards whose data on a node is damaged.
fn damage(node: u64, view: &View) -> Vec<String> {
    let sentence = |(number, shard): (usize, &ShardView)| match (&shard.damaged, &shard.set_aside) {
        (Some(what), _) => Some(format!(
            "shard {number} of node {node} is damaged ({what}): the node gets the data from the others as soon as a \
             leader gives it a new number; until then nothing of it is changed. Look at the disk"
        )),
        (None, Some(aside)) => Some(format!(
            "shard {number} of node {node} was damaged, and gets its data from the others: {aside} keeps what it had, \
             and is removed by itself when the shard has everything. Look at the disk"
        )),
        (None, None) => None,
    };
    view.shards.iter().enumerate().filter_map(sentence).collect()
}

fn cut_off(node: u64, leader: u64) -> String {
    format!(
        "node {node} could not pass requests on to node {leader} within the last minute: see that it reaches the port \
         of that node"
    )
}

/// A follower that votes and is behind; of one that does not vote yet [`learning`] tells.
fn behind(shard: usize, follower: &FollowerView) -> Option<String> {
    let node = Some(follower.node).filter(|_| follower.votes && is_behind(follower))?;
    if follower.needs_state {
        return Some(format!(
            "node {node} needs the state of shard {shard}, since the log that it has missed is gone: it gets it by itself, \
             which takes time"
        ));
    }
    follower.is_heard.then(|| {
        format!(
            "node {node} is {} and {} bytes behind in shard {shard}: it catches up, unless its disk or network is too slow",
            duration(follower.ms),
            follower.bytes
        )
    })
}

/// Policies that differ, while the cluster has none of its own.
fn policies(views: &[(u64, &View)]) -> Option<String> {
    let files: Option<Vec<(u64, &str)>> =
        views.iter().map(|(node, view)| Some((*node, view.policy.as_deref()?))).collect();
    let files = files?.into_iter();
    let told = grouped(files.map(|(node, file)| (node, if file.is_empty() { "none" } else { file })))?;
    Some(format!(
        "the nodes have different policy files ({told}), so that rights depend on which node leads: \
         `sluice policy set FILE` stores one for all of them"
    ))
}

fn versions(views: &[(u64, &View)]) -> Option<String> {
    let told = grouped(views.iter().map(|(node, view)| (*node, view.version.as_str())))?;
    Some(format!("the nodes run different versions ({told}): upgrade the older ones"))
}

/// Nodes by the text of each, such as `0.1.0 on 1, 3; 0.2.0 on 2`; `None`: all have the same.
fn grouped<'t>(texts: impl Iterator<Item = (u64, &'t str)>) -> Option<String> {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (node, text) in texts {
        groups.entry(text).or_default().push(node.to_string());
    }
    (groups.len() > 1).then(|| {
        let told = groups.iter().map(|(text, nodes)| format!("{text} on {}", nodes.join(", ")));
        told.collect::<Vec<_>>().join("; ")
    })
}

/// An upgrade that all nodes have made, and that is not in force.
fn finalize(seen: &[Seen]) -> Option<String> {
    let in_force = behaviour(seen)?;
    let newest = |seen: &Seen| seen.view.as_ref().map(|view| view.newest_behaviour);
    let known = seen.first().and_then(newest)?;
    let by_all = seen.iter().all(|seen| newest(seen) == Some(known));
    (by_all && known > in_force).then(|| {
        format!(
            "behaviour version {in_force} is in force, and all nodes know version {known}: when none is to go back to \
             the former program, `sluice cluster finalize` puts it into force"
        )
    })
}

/// The behaviour version in force on all shards, as the nodes have applied it; `None`: not known.
pub(super) fn behaviour(seen: &[Seen]) -> Option<u16> {
    let shards = seen.iter().filter_map(|seen| seen.view.as_ref()).map(|view| &view.shards);
    let count = shards.clone().map(Vec::len).max()?;
    let of_shard =
        |number: usize| shards.clone().filter_map(move |shards| Some(shards.get(number)?.behaviour)).max();
    (0..count).filter_map(of_shard).min().filter(|behaviour| *behaviour > 0)
}

fn clock(seen: &Seen) -> Option<String> {
    let ahead_ms = seen.status.clock_ahead_ms.filter(|ahead_ms| ahead_ms.abs() >= CLOCK_MS)?;
    let place = if ahead_ms > 0 { "ahead of" } else { "behind" };
    Some(format!(
        "the clock of node {} was {} {place} this node's when they connected: set the clocks right",
        seen.status.number,
        duration(ahead_ms.unsigned_abs())
    ))
}

/// Limits in the settings of a node, where they have no effect.
fn settings(node: u64, view: &View, limits: &Limits) -> Option<String> {
    let in_force = by_setting(limits);
    let differing = view.differing(limits);
    let told = |(name, own)| Some(format!("{name} is {own} instead of {}", in_force.get(name)?));
    let told: Vec<String> = differing.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| {
        format!(
            "the settings of node {node} have other limits than those in force in the cluster, which count ({}): set \
             them alike there, or put them into force with `sluice cluster limits set --from-node {node}`",
            told.join(", ")
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::health::NodeStatus;
    use crate::view::LinkView;

    /// Three nodes, of which the first leads the one shard.
    pub(in crate::health) fn well() -> Vec<Seen> {
        let seen = |number: u64| {
            let follower =
                |node| FollowerView { node, votes: true, is_heard: true, ..FollowerView::default() };
            let followers = if number == 1 { vec![follower(2), follower(3)] } else { Vec::new() };
            let shard = ShardView { leader: Some(1), term: 7, followers, ..ShardView::default() };
            let links = (1..=3).filter(|node| *node != number);
            let links = links.map(|node| LinkView { node, ..LinkView::default() }).collect();
            let view = View { version: "0.1.0".to_owned(), shards: vec![shard], links, ..View::default() };
            let address = format!("10.0.0.{number}:7070");
            let status = NodeStatus { number, address, reached: true, ..NodeStatus::default() };
            Seen { status, view: Some(view) }
        };
        (1..=3).map(seen).collect()
    }

    fn lose(place: usize, seen: &mut [Seen]) {
        for view in seen.iter_mut().filter_map(|seen| seen.view.as_mut()) {
            let links = view.links.iter_mut().filter(|link| link.node == place as u64 + 1);
            links.for_each(|link| link.silent_ms = Some(150_000));
        }
        let seen = &mut seen[place];
        seen.view = None;
        let silent_because = Some("it is older".to_owned());
        seen.status =
            NodeStatus { reached: false, silent_ms: Some(150_000), silent_because, ..seen.status.clone() };
    }

    fn beginnings(seen: &[Seen]) -> Vec<String> {
        let until_colon = |problem: String| problem.split(": ").next().unwrap_or_default().to_owned();
        problems(1, &Limits::default(), seen).into_iter().map(until_colon).collect()
    }

    #[test]
    fn a_cluster_that_is_well_has_no_problem() {
        assert_eq!(beginnings(&well()), [""; 0]);
    }

    #[test]
    fn a_lost_node_is_named_with_what_is_left() {
        let mut seen = well();
        lose(2, &mut seen);
        let told = [
            "2 of 3 nodes are left, and the loss of one more stops the cluster",
            "node 3 (10.0.0.3:7070) has not been connected for 2 min (it is older)",
        ];
        assert_eq!(beginnings(&seen), told);
        lose(1, &mut seen);
        let shard = &mut seen[0].view.as_mut().unwrap().shards[0];
        (shard.leader, shard.leaderless_ms) = (None, 5_000);
        let told = [
            "node 1 reaches 1 of 3 nodes, itself included, and nothing can be done without 2",
            "shard 0 has had no leader for 5 s",
        ];
        assert_eq!(beginnings(&seen)[..2], told);
    }

    #[test]
    fn a_shard_has_a_leader_that_others_hear_though_this_node_does_not() {
        let mut seen = well();
        lose(0, &mut seen);
        let shard = |seen: &mut [Seen], place: usize, leader, leaderless_ms| {
            let shard = &mut seen[place].view.as_mut().unwrap().shards[0];
            (shard.leader, shard.leaderless_ms) = (leader, leaderless_ms);
        };
        shard(&mut seen, 1, None, 40_000);
        shard(&mut seen, 2, Some(1), 0);
        let is_leaderless =
            |seen: &[Seen]| beginnings(seen).iter().any(|told| told.starts_with("shard 0 has had no leader"));
        assert!(!is_leaderless(&seen));
        // It is lost for both.
        shard(&mut seen, 2, None, 2_000);
        assert!(is_leaderless(&seen));
    }

    #[test]
    fn machines_with_a_number_that_never_came_are_not_counted() {
        let mut seen = well();
        for number in [4, 5] {
            let status = NodeStatus { silent_ms: Some(150_000), ..NodeStatus::of(number) };
            seen.push(Seen { status, view: None });
        }
        let told =
            |seen: &[Seen]| beginnings(seen).into_iter().filter(|told| told.contains("nodes are left"));
        assert_eq!(told(&seen).count(), 0);
        lose(2, &mut seen);
        let left = "2 of 3 nodes are left, and the loss of one more stops the cluster";
        assert_eq!(told(&seen).collect::<Vec<_>>(), [left]);
    }

    #[test]
    fn a_cluster_that_outlives_no_loss_is_told_how_many_nodes_it_lacks() {
        let told = |nodes: usize| problems(1, &Limits::default(), &well()[..nodes]);
        let two = "the cluster has 2 nodes, and the loss of one stops it: let 1 more machine join";
        let one = "the cluster has 1 node, and the loss of one stops it: let 2 more machines join";
        assert_eq!([told(2), told(1)], [[two], [one]]);
    }

    #[test]
    fn a_node_that_votes_and_does_not_hear_its_leader_is_named() {
        let mut seen = well();
        let own = |seen: &mut [Seen], leader, leaderless_ms| {
            let shard = &mut seen[2].view.as_mut().unwrap().shards[0];
            (shard.leader, shard.leaderless_ms) = (leader, leaderless_ms);
        };
        own(&mut seen, None, 900);
        assert_eq!(beginnings(&seen), [""; 0], "as after a change of leaders");
        own(&mut seen, None, 40_000);
        let told = "node 3 votes in shard 0 and has not heard its leader, node 1, for 40 s, so that it does not count";
        assert_eq!(beginnings(&seen), [told]);
        seen[0].view.as_mut().unwrap().shards[0].followers[1].votes = false;
        let told = "node 3 gets the data of 1 shard, and does not vote there until it has caught up";
        assert_eq!(beginnings(&seen), [told], "it only follows");
    }

    #[test]
    fn nodes_that_may_have_forgotten_something_are_named_and_a_majority_of_them_with_the_remedy() {
        let mut seen = well();
        let mut forget = |place: usize| {
            seen[place].view.as_mut().unwrap().has_forgotten = true;
            problems(1, &Limits::default(), &seen).swap_remove(0)
        };
        assert!(forget(2).starts_with("node 3 may have forgotten what was acknowledged"));
        assert!(forget(0).contains("node 1 and node 3 may have forgotten"));
        assert!(forget(1).contains("`sluice cluster recover`"));
    }

    #[test]
    fn damage_is_told_with_what_becomes_of_it() {
        let mut seen = well();
        let shard = &mut seen[2].view.as_mut().unwrap().shards[0];
        shard.damaged = Some("manifest is damaged at byte 16".to_owned());
        assert_eq!(beginnings(&seen), ["shard 0 of node 3 is damaged (manifest is damaged at byte 16)"]);
        let shard = &mut seen[2].view.as_mut().unwrap().shards[0];
        (shard.damaged, shard.set_aside) = (None, Some("data/shard-000.damaged".to_owned()));
        let told = problems(1, &Limits::default(), &seen);
        assert!(told.len() == 1 && told[0].contains("data/shard-000.damaged keeps what it had"), "{told:?}");
    }

    #[test]
    fn a_version_that_all_nodes_know_is_told_until_it_is_in_force() {
        let mut seen = well();
        let mut know = |place: usize, newest, behaviour| {
            let view = seen[place].view.as_mut().unwrap();
            (view.newest_behaviour, view.shards[0].behaviour) = (newest, behaviour);
            beginnings(&seen).join(" ")
        };
        assert_eq!([know(0, 10, 9), know(1, 10, 9)], ["", ""]);
        assert_eq!(know(2, 10, 9), "behaviour version 9 is in force, and all nodes know version 10");
        assert_eq!(know(0, 10, 10), "");
    }

    #[test]
    fn settings_with_other_limits_than_those_in_force_are_told_with_both_values() {
        let mut seen = well();
        for seen in &mut seen {
            seen.view.as_mut().unwrap().limits = by_setting(&Limits::default());
        }
        assert_eq!(beginnings(&seen), [""; 0]);
        let fewer = Limits { queues: 5, auto_create: false, ..Limits::default() };
        seen[1].view.as_mut().unwrap().limits = by_setting(&fewer);
        let [told] = &problems(1, &Limits::default(), &seen)[..] else { panic!("one problem") };
        let differing = "(limits.auto_create is 0 instead of 1, limits.queues is 5 instead of 100000)";
        assert!(told.contains("node 2") && told.contains(differing), "{told}");
        assert!(told.ends_with("`sluice cluster limits set --from-node 2`"), "{told}");
    }

    #[test]
    fn policy_files_that_differ_are_told_while_none_is_stored() {
        let mut seen = well();
        let mut set = |policies: [Option<&str>; 3]| {
            for (seen, policy) in seen.iter_mut().zip(policies) {
                seen.view.as_mut().unwrap().policy = policy.map(str::to_owned);
            }
            beginnings(&seen).join(" ")
        };
        let told = "the nodes have different policy files (9f86d081 on 2; none on 1, 3), so that rights depend on \
                    which node leads";
        assert_eq!(set([Some(""), Some("9f86d081"), Some("")]), told);
        assert_eq!(set([Some("9f86d081"); 3]), "");
        assert_eq!(set([Some(""), Some("9f86d081"), None]), "", "it is on its way to the others");
        assert_eq!(set([None; 3]), "");
    }

    #[test]
    fn disks_links_lags_versions_and_clocks_are_told() {
        let mut seen = well();
        let view = seen[1].view.as_mut().unwrap();
        (view.shards[0].is_stalled, view.shards[0].is_full, view.shards[0].is_low) = (true, true, true);
        (view.version, view.unreached) = ("0.2.0".to_owned(), vec![1]);
        let followers = &mut seen[0].view.as_mut().unwrap().shards[0].followers;
        (followers[0].bytes, followers[1].needs_state) = (64 << 20, true);
        seen[2].status.clock_ahead_ms = Some(-90_000);
        let told = [
            "the disk of node 2 does not finish its writes, so that it neither leads nor votes",
            "the disk of node 2 is full, so that it takes no new messages",
            "node 2 could not pass requests on to node 1 within the last minute",
            "node 2 is 0 s and 67108864 bytes behind in shard 0",
            "node 3 needs the state of shard 0, since the log that it has missed is gone",
            "the nodes run different versions (0.1.0 on 1, 3; 0.2.0 on 2)",
            "the clock of node 3 was 90 s behind this node's when they connected",
        ];
        assert_eq!(beginnings(&seen), told);
    }
}
