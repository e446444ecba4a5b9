//! Connections between the nodes of a cluster, in sentences.

use std::collections::BTreeMap;

use super::Seen;
use crate::view::LinkView;
use crate::wording::duration;

/// Time without a connection, in milliseconds, from which it is not for the moment only, as while a server
/// starts again.
pub(super) const PARTED_MS: u64 = 3_000;

/// True for a node that runs: it answers, or another one that answers is connected with it.
pub(super) fn is_running(node: &Seen, seen: &[Seen]) -> bool {
    node.view.is_some() || connected_elsewhere(node, seen).is_some()
}

/// Nodes that node `own` does not reach.
pub(super) fn unreached(own: u64, seen: &[Seen]) -> Vec<String> {
    let sentence = |node: &Seen| {
        let status = &node.status;
        let name = format!("node {} ({})", status.number, status.address);
        let Some(silent_ms) = status.silent_ms else {
            return format!(
                "{name} is connected and does not answer: start it, or look at its program, machine and network"
            );
        };
        let (since, because) = (duration(silent_ms), in_brackets(status.silent_because.as_deref()));
        match connected_elsewhere(node, seen) {
            Some(other) => format!(
                "{name} has not been connected with node {own} for {since}{because}, but is with node {other}: see \
                 that the two machines reach each other"
            ),
            None => format!(
                "{name} has not been connected for {since}{because}: start it, or look at its program, machine and \
                 network"
            ),
        }
    };
    seen.iter().filter(|node| !node.status.reached).map(sentence).collect()
}

/// Pairs of nodes that both answer, and are not connected with each other.
pub(super) fn parted(seen: &[Seen]) -> Vec<String> {
    let pairs = seen.iter().enumerate().flat_map(|(place, one)| {
        seen[place + 1..].iter().filter_map(move |other| {
            let sides = [(one, silence(one, other)?), (other, silence(other, one)?)];
            Some((sides, parted_ms(one, other)?))
        })
    });
    let sentence = |(sides, since_ms): ([(&Seen, &LinkView); 2], u64)| {
        let reasons = sides.map(|(side, link)| {
            let because = link.silent_because.as_ref();
            because.map(|because| format!("node {}: {because}", side.status.number))
        });
        let reasons = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let [one, other] = sides.map(|(side, _)| &side.status);
        format!(
            "node {} and node {} have not been connected with each other for {}{}: see that they reach each other at \
             {} and {}; `sluice cluster address` sets one that is wrong",
            one.number,
            other.number,
            duration(since_ms),
            in_brackets(Some(reasons.as_str()).filter(|reasons| !reasons.is_empty())),
            one.address,
            other.address
        )
    };
    pairs.map(sentence).collect()
}

/// Nodes as which other processes have tried to connect.
pub(super) fn twins(seen: &[Seen]) -> Vec<String> {
    let links = seen.iter().filter_map(|node| node.view.as_ref()).flat_map(|view| &view.links);
    let places: BTreeMap<u64, &str> =
        links.filter_map(|link| Some((link.node, link.twin_at.as_deref()?))).collect();
    let sentence = |(node, place): (u64, &str)| {
        format!(
            "another server, at {place}, uses a copy of the files of node {node}, and is refused: stop it, and \
             never start such a copy; a machine joins with an empty data directory"
        )
    };
    places.into_iter().map(sentence).collect()
}

/// A node that answers, is connected with this one, and shows by it that it runs.
fn connected_elsewhere(node: &Seen, seen: &[Seen]) -> Option<u64> {
    // Until then the others may not have learnt that it has ended.
    node.status.silent_ms.filter(|silent_ms| *silent_ms >= PARTED_MS)?;
    let is_connected = |link: &LinkView| link.node == node.status.number && link.silent_ms.is_none();
    let sees_it = |other: &&Seen| other.view.as_ref().is_some_and(|view| view.links.iter().any(is_connected));
    seen.iter().find(sees_it).map(|other| other.status.number)
}

/// Time for which two nodes that both answer are parted, in milliseconds; `None`: they are not.
pub(super) fn parted_ms(one: &Seen, other: &Seen) -> Option<u64> {
    let sides = [silence(one, other)?, silence(other, one)?];
    sides.iter().filter_map(|link| link.silent_ms).max().filter(|since_ms| *since_ms >= PARTED_MS)
}

/// The connection of a node that answers with another one that does; `None`: there is one, or one of them
/// does not answer.
fn silence<'s>(from: &'s Seen, to: &Seen) -> Option<&'s LinkView> {
    to.view.as_ref()?;
    let link = from.view.as_ref()?.links.iter().find(|link| link.node == to.status.number)?;
    link.silent_ms.is_some().then_some(link)
}

/// A reason behind a sentence.
fn in_brackets(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

#[cfg(test)]
mod tests {
    use sluice_engine::Limits;

    use super::super::diagnosis::{problems, tests as diagnosis};
    use super::*;

    /// Three nodes, of which the second and third are connected with the first, and not with each other.
    fn cut() -> Vec<Seen> {
        let mut seen = diagnosis::well();
        let reasons = [(1, 3, "No route to host (os error 113)"), (2, 2, "it does not answer in time")];
        for (place, node, reason) in reasons {
            let links = &mut seen[place].view.as_mut().unwrap().links;
            let link = links.iter_mut().find(|link| link.node == node).unwrap();
            (link.silent_ms, link.silent_because) = (Some(15_000), Some(reason.to_owned()));
        }
        seen
    }

    #[test]
    fn a_node_that_reaches_both_tells_of_a_link_that_is_cut() {
        let told = "node 2 and node 3 have not been connected with each other for 15 s (node 2: No route to host \
                    (os error 113); node 3: it does not answer in time): see that they reach each other at \
                    10.0.0.2:7070 and 10.0.0.3:7070; `sluice cluster address` sets one that is wrong";
        assert_eq!(problems(1, &Limits::default(), &cut()), [told]);
        let mut seen = cut();
        // While a server starts again.
        for view in seen.iter_mut().filter_map(|node| node.view.as_mut()) {
            view.links.iter_mut().filter_map(|link| link.silent_ms.as_mut()).for_each(|since| *since = 900);
        }
        assert_eq!(problems(1, &Limits::default(), &seen), [""; 0]);
    }

    #[test]
    fn a_node_that_others_reach_is_not_told_as_lost() {
        let mut seen = cut();
        seen[2].view = None;
        let status = &mut seen[2].status;
        (status.reached, status.silent_ms) = (false, Some(15_000));
        let told = "node 3 (10.0.0.3:7070) has not been connected with node 2 for 15 s, but is with node 1: see that \
                    the two machines reach each other";
        assert_eq!(problems(2, &Limits::default(), &seen), [told]);
        // Just now nobody else may have learnt that it has ended.
        seen[2].status.silent_ms = Some(900);
        assert!(problems(2, &Limits::default(), &seen)[0].starts_with("2 of 3 nodes are left"));
    }

    #[test]
    fn a_copy_of_a_nodes_files_that_is_used_is_told_once() {
        let mut seen = diagnosis::well();
        for place in [0, 2] {
            let links = &mut seen[place].view.as_mut().unwrap().links;
            links.iter_mut().find(|link| link.node == 2).unwrap().twin_at = Some("10.0.0.9".to_owned());
        }
        let told = "another server, at 10.0.0.9, uses a copy of the files of node 2, and is refused: stop it, and \
                    never start such a copy; a machine joins with an empty data directory";
        assert_eq!(problems(1, &Limits::default(), &seen), [told]);
    }
}
