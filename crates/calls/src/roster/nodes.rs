//! The list of nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_node::Node;
use sluice_node::steering::{NoMajority, Part, Wanted, check_removal, former, votes};

use super::{Roster, TOKENS};
use crate::error::CallError;
use crate::system::{Entry, OnceKey, SystemList};
use crate::time::now_ms;

const NODES: SystemList = SystemList("nodes");
/// Tag of a node that is to be removed.
const LEAVING: &str = "leaving";
/// Tag of a node that was removed.
const REMOVED: &str = "removed";
/// Largest number of nodes of a cluster; two less than its log allows, for those that replace others.
pub const NODES_MAX: usize = 5;
/// Length of the longest address, in bytes.
const ADDRESS_BYTES_MAX: usize = 256;

/// A node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedNode {
    /// Number, from 1: another one each time that a machine joins.
    pub number: u64,
    /// Address at which clients and other nodes reach it, as `host:port`.
    pub address: String,
    /// Time at which it joined, in milliseconds since the Unix epoch.
    pub joined_at_ms: u64,
    /// Number of the node in whose place it comes.
    pub replaces: Option<u64>,
    /// Id of the token with which it joined; empty for the first node.
    pub(super) token: String,
    /// Hash of the secret by which its machine is known again.
    pub(super) machine: String,
    /// Its wanted part.
    pub wanted: Wanted,
}

impl ListedNode {
    /// A node that has joined without a token, as the first one does.
    pub fn new(number: u64, address: &str, wanted: Wanted) -> ListedNode {
        ListedNode {
            number,
            address: address.to_owned(),
            joined_at_ms: now_ms(),
            replaces: None,
            token: String::new(),
            machine: String::new(),
            wanted,
        }
    }

    /// The part of it on which the members of logs depend.
    pub fn part(&self) -> Part {
        Part { number: self.number, replaces: self.replaces, wanted: self.wanted }
    }
}

impl Roster {
    /// All nodes by number, removed ones among them. None: the server belongs to no cluster, or this node has
    /// not got the list yet.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`, `not_leader`, `no_leader`; `internal` for a list that is damaged.
    pub async fn nodes(&self, node: &Node) -> Result<Vec<ListedNode>, Error> {
        let entries = self.entries(node).await?;
        Ok(entries.into_iter().map(|(_, listed)| listed).collect())
    }

    /// Enters the node with which the cluster begins, unless there is one; removes what is left of another
    /// cluster, from which a backup was restored or this one recovered, join tokens too: without the list of
    /// their cluster nobody knows which were used.
    ///
    /// # Errors
    /// `invalid_argument`: the address; those of [`Roster::nodes`].
    pub async fn begin(&self, node: &Node, number: u64, address: &str) -> Result<(), CallError> {
        let _turn = self.changes.lock().await;
        if !self.nodes(node).await?.is_empty() {
            return Ok(());
        }
        let mut former = NODES.all(node).await?;
        former.retain(|entry| matches!(self.read(entry), Ok(None)));
        let mut tokens = TOKENS.all(node).await?;
        // Those of this cluster may be made before it begins.
        tokens.retain(|entry| self.token_of(entry).is_none());
        for entry in tokens.iter().chain(&former) {
            entry.remove(node).await?;
        }
        self.enter(node, &ListedNode::new(number, address, Wanted::Voter)).await
    }

    /// Marks a node that is to be removed; one that was marked before is no error. `connected`: numbers of
    /// the nodes that are connected now, the one that is asked among them.
    ///
    /// # Errors
    /// `node_not_found`; `wrong_state`: it is the last one, no node is listed, or it votes in a shard and
    /// those that are left have no majority that is connected; those of [`Roster::nodes`].
    pub async fn remove(&self, node: &Node, number: u64, connected: &[u64]) -> Result<ListedNode, CallError> {
        let _turn = self.changes.lock().await;
        let mut entries = self.entries(node).await?;
        let parts: Vec<Part> = entries.iter().map(|(_, listed)| listed.part()).collect();
        let at = entries.iter().position(|(_, listed)| listed.number == number);
        let at = at.ok_or_else(|| no_such_node(number, parts.is_empty()))?;
        let (entry, listed) = entries.swap_remove(at);
        if listed.wanted != Wanted::Voter {
            return Ok(listed);
        }
        if let Err(why) = check_removal(&parts, number, connected)
            && (why.is_last() || counts_on(node, number).await)
        {
            return Err(no_majority(number, &why));
        }
        entry.set_tags(node, &[LEAVING]).await?;
        Ok(ListedNode { wanted: Wanted::Leaving, ..listed })
    }

    /// Sets the address of a node that is to stay.
    ///
    /// # Errors
    /// `node_not_found`; `wrong_state`: no node is listed; `node_exists`: another node has the address;
    /// `invalid_argument`; those of [`Roster::nodes`].
    pub async fn set_address(
        &self,
        node: &Node,
        number: u64,
        address: &str,
    ) -> Result<ListedNode, CallError> {
        let _turn = self.changes.lock().await;
        let listed = self.expect_present(node, number).await?;
        if listed.address == address {
            return Ok(listed);
        }
        check_free(address, self.nodes(node).await?.iter().filter(|other| other.wanted == Wanted::Voter))?;
        let moved = ListedNode { address: address.to_owned(), ..listed };
        let former = NODES.all(node).await?;
        self.enter_again(node, &moved).await?;
        let is_former =
            |entry: &&Entry| matches!(self.read(entry), Ok(Some(former)) if former.number == number);
        for entry in former.iter().filter(is_former) {
            // One that stays counts no more.
            if let Err(error) = entry.remove(node).await {
                tracing::debug!("the former address of node {number} could not be removed yet: {error}");
            }
        }
        Ok(moved)
    }

    /// Enters a node that is in the list already: the latest entry of a number counts.
    pub(super) async fn enter_again(&self, node: &Node, moved: &ListedNode) -> Result<(), CallError> {
        check_field(&moved.address)?;
        NODES.add(node, &self.written(moved), OnceKey::default()).await?;
        Ok(())
    }

    /// Notes that no log counts on a node any more.
    ///
    /// # Errors
    /// Those of [`Roster::nodes`].
    pub async fn removed(&self, node: &Node, number: u64) -> Result<(), Error> {
        let _turn = self.changes.lock().await;
        for (entry, listed) in self.entries(node).await? {
            if listed.number == number && listed.wanted == Wanted::Leaving {
                entry.set_tags(node, &[REMOVED]).await?;
            }
        }
        Ok(())
    }

    /// Adds a node with the next number. The caller holds the lock of changes.
    pub(super) async fn add(
        &self,
        node: &Node,
        address: &str,
        replaces: Option<u64>,
        token: &str,
        machine: &str,
    ) -> Result<ListedNode, CallError> {
        let nodes = self.nodes(node).await?;
        let replaces = replaces.map(|number| renewed(&nodes, number).last().unwrap_or(number));
        check_room(address, replaces, &nodes)?;
        let number = nodes.iter().map(|listed| listed.number).max().unwrap_or(0) + 1;
        let (token, machine) = (token.to_owned(), machine.to_owned());
        let added =
            ListedNode { replaces, token, machine, ..ListedNode::new(number, address, Wanted::Voter) };
        self.enter(node, &added).await?;
        Ok(added)
    }

    async fn enter(&self, node: &Node, added: &ListedNode) -> Result<(), CallError> {
        check_field(&added.address)?;
        // Two leaders, of which one does not know yet that it is none, cannot give one number twice.
        let key = format!("{} {}", self.cluster, added.number);
        let once = OnceKey { key: key.as_bytes(), digest: added.joined_at_ms };
        NODES.add(node, &self.written(added), once).await?;
        Ok(())
    }

    /// The node with this number, which is to stay.
    ///
    /// # Errors
    /// `node_not_found`; `wrong_state`: no node is listed; those of [`Roster::nodes`].
    pub(super) async fn expect_present(&self, node: &Node, number: u64) -> Result<ListedNode, CallError> {
        let nodes = self.nodes(node).await?;
        let is_fixed = nodes.is_empty();
        let is_present = |listed: &ListedNode| listed.number == number && listed.wanted == Wanted::Voter;
        nodes.into_iter().find(is_present).ok_or_else(|| no_such_node(number, is_fixed))
    }

    async fn entries(&self, node: &Node) -> Result<Vec<(Entry, ListedNode)>, Error> {
        let mut latest = BTreeMap::new();
        for entry in NODES.all(node).await? {
            if let Some(listed) = self.read(&entry)? {
                latest.insert(listed.number, (entry, listed));
            }
        }
        Ok(latest.into_values().collect())
    }

    fn written(&self, node: &ListedNode) -> Value {
        json!({
            "cluster": *self.cluster,
            "number": node.number,
            "address": node.address,
            "joined_at_ms": node.joined_at_ms,
            "replaces": node.replaces,
            "token": node.token,
            "machine": node.machine,
        })
    }

    /// The node of an entry; `None`: it belongs to another cluster. A list without one that cannot be read
    /// would show its node as removed.
    fn read(&self, entry: &Entry) -> Result<Option<ListedNode>, Error> {
        let read = || {
            let value = entry.value.as_ref()?;
            let is_own = value.get("cluster")?.as_str()? == &*self.cluster;
            if is_own { listed(value, &entry.tags).map(Some) } else { Some(None) }
        };
        let unreadable = || format!("the entry {:?} of the list of nodes cannot be read", entry.id);
        read().ok_or_else(|| Error::Internal { reason: unreadable() })
    }
}

/// The node of an entry with this value; `None`: it is damaged.
fn listed(value: &Value, tags: &[String]) -> Option<ListedNode> {
    let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    let has = |tag: &str| tags.iter().any(|has| has == tag);
    let wanted = match (has(REMOVED), has(LEAVING)) {
        (true, _) => Wanted::Removed,
        (false, true) => Wanted::Leaving,
        (false, false) => Wanted::Voter,
    };
    Some(ListedNode {
        number: value.get("number")?.as_u64()?,
        address: text("address")?,
        joined_at_ms: value.get("joined_at_ms")?.as_u64()?,
        replaces: value.get("replaces")?.as_u64(),
        token: text("token")?,
        machine: text("machine")?,
        wanted,
    })
}

/// The refusal of a number; `is_fixed`: no node is listed, since the settings name them all.
fn no_such_node(number: u64, is_fixed: bool) -> CallError {
    if is_fixed {
        let message = "the nodes of this cluster are those of cluster_members: that setting says where they are, \
                       and none can be removed";
        return CallError::new("wrong_state", message);
    }
    let message = format!("no node has the number {number}: `sluice cluster members` shows them");
    CallError::new("node_not_found", message)
}

/// The refusal to remove a node.
fn no_majority(number: u64, why: &NoMajority) -> CallError {
    if why.is_last() {
        return CallError::new("wrong_state", "the last node of a cluster cannot be removed");
    }
    let NoMajority { reached, lost } = why;
    let left = *reached + lost.len();
    let lost: Vec<String> = lost.iter().map(u64::to_string).collect();
    CallError::new(
        "wrong_state",
        format!(
            "without node {number} the cluster would have no majority: of its {left} other nodes {reached} can be \
             reached. Bring back or remove first: node {}",
            lost.join(", node ")
        ),
    )
}

/// Numbers that the node with this one has got since ([`super::renewal`]), the newest last.
fn renewed(nodes: &[ListedNode], number: u64) -> impl Iterator<Item = u64> {
    let next = |number: u64| {
        let is_renewed = |listed: &&ListedNode| {
            listed.replaces == Some(number) && listed.token.is_empty() && listed.wanted == Wanted::Voter
        };
        nodes.iter().find(is_renewed).map(|listed| listed.number)
    };
    std::iter::successors(next(number), move |number| next(*number))
}

/// True when a node votes in a shard, or that is not known.
async fn counts_on(node: &Node, number: u64) -> bool {
    node.current_members().await.map_or(true, |shards| votes(&shards, number))
}

/// Checks that a text is an address at which other machines may reach one.
///
/// # Errors
/// A sentence that says what is expected.
pub fn check_address(address: &str) -> Result<(), String> {
    let expected = || {
        let given: String = address.chars().take(ADDRESS_BYTES_MAX).collect();
        format!("{given:?} is not an address at which other machines reach this one: expected HOST:PORT")
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(expected)?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    let is_good = !host.is_empty() && host.chars().all(is_host) && address.len() <= ADDRESS_BYTES_MAX;
    let is_wildcard = matches!(host, "0.0.0.0" | "[::]");
    if !is_good || is_wildcard || port.parse::<u16>().map_or(true, |port| port == 0) {
        return Err(expected());
    }
    Ok(())
}

/// The same, of a request.
fn check_field(address: &str) -> Result<(), Error> {
    check_address(address).map_err(|reason| Error::InvalidArgument { field: "address".to_owned(), reason })
}

/// Checks that there is room for a node with this address, in the place of another or not.
fn check_room(address: &str, replaces: Option<u64>, nodes: &[ListedNode]) -> Result<(), CallError> {
    let parts: Vec<Part> = nodes.iter().map(ListedNode::part).collect();
    let goes = |listed: &ListedNode| former(&parts, replaces).any(|former| former.number == listed.number);
    let stays = |listed: &&ListedNode| listed.wanted == Wanted::Voter && !goes(listed);
    check_free(address, nodes.iter().filter(stays))?;
    if nodes.iter().filter(stays).count() >= NODES_MAX {
        let message = format!("the cluster has {NODES_MAX} nodes, the maximum: remove one first");
        return Err(CallError::new("limit_exceeded", message));
    }
    Ok(())
}

/// Checks that no node has this address.
fn check_free<'n>(address: &str, mut nodes: impl Iterator<Item = &'n ListedNode>) -> Result<(), CallError> {
    let Some(other) = nodes.find(|listed| listed.address == address) else { return Ok(()) };
    let message = format!(
        "node {} has the address {address} already: choose another, or remove that node first",
        other.number
    );
    Err(CallError::new("node_exists", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn an_entry_that_cannot_be_read_removes_nobody() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        let add = async |value: Value| NODES.add(&node, &value, OnceKey::default()).await;
        add(json!({"cluster": "another", "number": 2})).await.unwrap();
        assert_eq!(roster.nodes(&node).await.unwrap().len(), 1);
        add(json!({"cluster": "5b0c", "number": 2})).await.unwrap();
        assert!(matches!(roster.nodes(&node).await, Err(Error::Internal { .. })));
        let entry = Entry { id: NODES.all(&node).await.unwrap()[0].id, value: None, tags: Vec::new() };
        assert!(matches!(roster.read(&entry), Err(Error::Internal { .. })));
    }

    #[tokio::test]
    async fn nodes_that_the_settings_name_stay_as_they_are() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        let removed = roster.remove(&node, 3, &[1, 2, 3]).await.unwrap_err();
        let moved = roster.set_address(&node, 3, "three:1").await.unwrap_err();
        assert_eq!((removed.code(), moved.code()), ("wrong_state", "wrong_state"));
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for good in ["one:7070", "192.0.2.7:1", "[2001:db8::1]:7070", "a-b.example.org:65535"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in ["", "one", "one:", ":7070", "one:0", "one:65536", "a b:1", "a/b:1", "one:x"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
