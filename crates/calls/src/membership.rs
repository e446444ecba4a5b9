//! Tokens to join the cluster, joining, removal.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION};
use sluice_node::Protocols;
use sluice_node::steering::Wanted;

use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::fault::Fault;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::roster::join_token::JoinSecret;
use crate::roster::{ClusterCa, ListedNode, Machine};
use crate::server::Clustered;
use crate::time::now_ms;
use crate::value::Within;
use crate::wording::counted;

/// Longest validity of a join token, in milliseconds: a week.
const TTL_MS_MAX: u64 = 7 * 86_400_000;
/// Validity of a join token for which none is named, in milliseconds: an hour.
const TTL_MS: u64 = 3_600_000;
/// Largest difference between the wall clocks of a machine that joins and of the leader, in milliseconds.
const CLOCK_MS_MAX: u64 = 60_000;

/// A token to make, with which one machine can join.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterTokenRequest", example = json!({"ttl_ms": TTL_MS, "replaces": 3}))]
pub struct CreateToken {
    /// Time until it expires, in milliseconds; an hour if it is not named.
    ttl_ms: Option<Within<1, TTL_MS_MAX>>,
    /// Number of the node that the machine replaces: that one is removed when the new one has caught up.
    replaces: Option<u64>,
}

/// A join token that was made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterToken", example = json!({
    "token": "sluice_join_9f86d0..._4f1d20c5a3b2e697_Zm9v...", "expires_at_ms": AT_MS_EXAMPLE,
}))]
pub struct MadeToken {
    /// Its text, which is nowhere else.
    #[serde(serialize_with = "secret")]
    #[schemars(with = "String")]
    token: JoinSecret,
    /// When it expires, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
}

fn secret<S: Serializer>(JoinSecret(text): &JoinSecret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

impl Unary for CreateToken {
    type Answer = MadeToken;
    const HOW: &'static [How] = &[How::Created];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<MadeToken>, CallError> {
        let clustered = clustered(permit)?;
        let ttl_ms = self.ttl_ms.map_or(TTL_MS, Within::get);
        let fingerprint = authority(clustered)?.fingerprint;
        let made = clustered.roster.create_token(permit.node(), &fingerprint, ttl_ms, self.replaces).await?;
        let (token, secret) = made;
        let made = MadeToken { token: secret, expires_at_ms: token.expires_at_ms };
        Ok(Done::named(made, How::Created, token.id))
    }
}

/// A machine that wants to join.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterJoinRequest", example = json!({
    "token": "sluice_join_9f86d0..._4f1d20c5a3b2e697_Zm9v...", "address": "192.0.2.8:7070", "machine": "c2VjcmV0",
    "now_ms": AT_MS_EXAMPLE, "behaviour": BEHAVIOUR_VERSION, "oldest_behaviour": BEHAVIOUR_OLDEST,
    "protocol": Protocols::OWN.newest(), "oldest_protocol": Protocols::OWN.oldest(), "shards": 1,
}))]
pub struct Join {
    /// The join token; required.
    token: Option<String>,
    /// Address at which clients and other nodes will reach it, as `host:port`; required.
    address: Option<String>,
    /// Text that only this machine knows, by which it is known when it asks again; required.
    machine: Option<String>,
    /// Its wall clock, in milliseconds since the Unix epoch; required.
    now_ms: Option<u64>,
    /// Newest behaviour version that its program knows; required.
    behaviour: Option<u64>,
    /// Oldest one that it knows; the newest if it is not named.
    oldest_behaviour: Option<u64>,
    /// Newest version of the protocol between nodes that its program speaks; required.
    protocol: Option<u8>,
    /// Oldest one that it speaks; the newest if it is not named.
    oldest_protocol: Option<u8>,
    /// The number of its shards; required.
    shards: Option<u64>,
}

/// Parts that make a machine a node.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterJoined", example = json!({
    "cluster": "5b0c9a1f22d347e8", "node": 2, "ca": "-----BEGIN CERTIFICATE-----...",
    "ca_key": "-----BEGIN PRIVATE KEY-----...", 
    "nodes": [{"node": 1, "address": "192.0.2.7:7070"}, {"node": 2, "address": "192.0.2.8:7070"}],
}))]
pub struct Joined {
    /// Id of the cluster.
    cluster: String,
    /// Number of the new node.
    node: u64,
    /// Certificate of the cluster's CA, as PEM.
    ca: String,
    /// Private key of the cluster's CA, as PEM: every node signs its own certificates with it.
    ca_key: String,
    /// All nodes, the new one among them.
    nodes: Vec<Neighbour>,
}

/// Without the key.
impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Unary for Join {
    type Answer = Joined;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Joined>, CallError> {
        let clustered = clustered(permit)?;
        let missing = Fault::missing;
        let token = self.token.ok_or_else(|| missing("token", "as `sluice cluster add` prints it"))?;
        let address = self.address.ok_or_else(|| missing("address", "the machine's HOST:PORT"))?;
        let secret = self.machine.ok_or_else(|| missing("machine", "a text that nobody else knows"))?;
        let now = self.now_ms.ok_or_else(|| missing("now_ms", "the machine's wall clock"))?;
        let behaviour = self.behaviour.ok_or_else(|| missing("behaviour", "a number"))?;
        let protocol = self.protocol.ok_or_else(|| missing("protocol", "a number"))?;
        let shards = self.shards.ok_or_else(|| missing("shards", "a number"))?;
        let known = self.oldest_behaviour.unwrap_or(behaviour)..=behaviour;
        check_clock(now)?;
        check_shards(shards, permit.node().leaders().len() as u64)?;
        check_protocols(self.oldest_protocol.unwrap_or(protocol), protocol)?;
        check_behaviours(&known, &permit.node().behaviours().await?)?;
        let ca = authority(clustered)?;
        let machine = Machine { address: &address, secret: &secret };
        let joined = clustered.roster.join(permit.node(), &token, machine).await?;
        let listed = clustered.roster.nodes(permit.node()).await?;
        let present = listed.into_iter().filter(|listed| listed.wanted != Wanted::Removed);
        let answer = Joined {
            cluster: clustered.own.cluster().to_owned(),
            node: joined.number,
            ca: ca.certificate,
            ca_key: ca.key,
            nodes: present.map(Neighbour::from).collect(),
        };
        Ok(Done::named(answer, How::Done, joined.number.to_string()))
    }
}

/// Error of a machine that cannot work together with the cluster.
fn node_refused(reason: String) -> CallError {
    CallError::new("node_refused", reason)
}

/// Checks the wall clock of a machine, in milliseconds since the Unix epoch, against that of this one.
fn check_clock(now: u64) -> Result<(), CallError> {
    let apart = now.abs_diff(now_ms());
    if apart > CLOCK_MS_MAX {
        let seconds = apart / 1_000;
        return Err(node_refused(format!(
            "the machine's clock and that of the node which leads are {seconds} s apart: set the wrong one right"
        )));
    }
    Ok(())
}

/// Checks that a machine has as many shards as the cluster.
fn check_shards(shards: u64, own: u64) -> Result<(), CallError> {
    if shards != own {
        let own = counted(own, "shard");
        return Err(node_refused(format!("the cluster has {own}, and the machine {shards}: set shards")));
    }
    Ok(())
}

/// Checks that a machine's program and this one speak a common version of the protocol between nodes.
fn check_protocols(oldest: u8, newest: u8) -> Result<(), CallError> {
    let expected = || Fault::invalid("expected at least 1, and at least oldest_protocol").inside("protocol");
    let (theirs, own) = (Protocols::new(oldest, newest).ok_or_else(expected)?, Protocols::OWN);
    if theirs.common(own).is_some() {
        return Ok(());
    }
    let (program, advice) = if newest < own.newest() {
        ("older", "install a newer one")
    } else {
        ("newer", "upgrade the nodes of the cluster first")
    };
    Err(node_refused(format!(
        "the machine's program is {program} than that of the node which it asks: it speaks {theirs} of the \
         protocol between nodes, and the node {own}: {advice}"
    )))
}

/// Checks that a machine's program knows the behaviour versions in force.
fn check_behaviours(known: &RangeInclusive<u64>, in_force: &[u16]) -> Result<(), CallError> {
    let unknown = in_force.iter().map(|version| u64::from(*version)).find(|version| !known.contains(version));
    let Some(in_force) = unknown else { return Ok(()) };
    let program = if *known.start() > in_force { "newer" } else { "older" };
    Err(node_refused(format!(
        "the machine's program is {program} than the cluster's: it knows the behaviour versions {} to {}, and in \
         the cluster version {in_force} is in force",
        known.start(),
        known.end()
    )))
}

/// A node to remove for good.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterRemoveRequest")]
pub struct Remove {}

/// The address of a node to set.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterAddressRequest", example = json!({"address": "192.0.2.9:7070"}))]
pub struct SetAddress {
    /// Address at which clients and other nodes will reach it, as `host:port`; required.
    address: Option<String>,
}

impl Unary for SetAddress {
    type Answer = Neighbour;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Neighbour>, CallError> {
        let clustered = clustered(permit)?;
        let address = self.address.ok_or_else(|| Fault::missing("address", "the machine's HOST:PORT"))?;
        let moved = clustered.roster.set_address(permit.node(), number_of(permit)?, &address).await?;
        Ok(Neighbour::from(moved).into())
    }
}

/// The number of the node that the path names.
fn number_of(permit: &Permit<'_>) -> Result<u64, CallError> {
    let expected = || Fault::invalid("expected the number of a node").inside("node");
    Ok(permit.name().parse().map_err(|_| expected())?)
}

/// A node and its address.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterNeighbour", example = json!({"node": 3, "address": "192.0.2.9:7070"}))]
pub struct Neighbour {
    /// Its number.
    node: u64,
    /// Its address, as `host:port`.
    address: String,
}

impl Unary for Remove {
    type Answer = Neighbour;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Neighbour>, CallError> {
        let clustered = clustered(permit)?;
        let number = number_of(permit)?;
        let mut connected = clustered.own.connected();
        connected.push(clustered.own.number());
        let leaving = clustered.roster.remove(permit.node(), number, &connected).await?;
        Ok(Neighbour::from(leaving).into())
    }
}

impl From<ListedNode> for Neighbour {
    fn from(listed: ListedNode) -> Neighbour {
        Neighbour { node: listed.number, address: listed.address }
    }
}

fn clustered<'p>(permit: &'p Permit<'_>) -> Result<&'p Clustered, CallError> {
    let alone = "this server belongs to no cluster: `sluice cluster init` makes it the first node of one";
    permit.calls().clustered().ok_or_else(|| CallError::new("no_cluster", alone))
}

fn authority(clustered: &Clustered) -> Result<ClusterCa, CallError> {
    clustered.own.authority().map_err(|reason| CallError::new("wrong_state", reason))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::{FirstNode, Open};

    async fn call<R: Unary>(
        open: &Open,
        operation: Operation,
        name: &str,
        request: R,
    ) -> Result<Value, &'static str> {
        let done = request.run(&open.permit(operation, name)).await;
        done.map(|done| serde_json::to_value(done.answer).unwrap()).map_err(|error| error.code())
    }

    fn join(token: &Value) -> Join {
        Join {
            token: token["token"].as_str().map(str::to_owned),
            address: Some("127.0.0.1:2".to_owned()),
            machine: Some("m".to_owned()),
            now_ms: Some(now_ms()),
            behaviour: Some(u64::from(BEHAVIOUR_VERSION)),
            oldest_behaviour: None,
            protocol: Some(Protocols::OWN.newest()),
            oldest_protocol: None,
            shards: Some(1),
        }
    }

    #[tokio::test]
    async fn a_machine_joins_with_a_token_and_is_removed() {
        let open = Open::in_cluster(Arc::new(FirstNode));
        open.calls().clustered().unwrap().roster.begin(open.node(), 1, "127.0.0.1:1").await.unwrap();
        let token = call(&open, Operation::ClusterTokenCreate, "", CreateToken::default()).await.unwrap();
        let joined = call(&open, Operation::ClusterJoin, "", join(&token)).await.unwrap();
        assert_eq!((&joined["node"], &joined["ca_key"]), (&json!(2), &json!("KEY")));
        let [one, two] = [1, 2].map(|node| json!({"node": node, "address": format!("127.0.0.1:{node}")}));
        assert_eq!(joined["nodes"], json!([one, two]));
        // Without the new node the cluster still has its first; without that one nobody is connected.
        let removed = |number: &'static str| call(&open, Operation::ClusterRemove, number, Remove {});
        assert_eq!(removed("1").await, Err("wrong_state"));
        let address = SetAddress { address: Some("127.0.0.1:3".to_owned()) };
        let moved = call(&open, Operation::ClusterAddress, "2", address).await;
        assert_eq!(moved, Ok(json!({"node": 2, "address": "127.0.0.1:3"})));
        let nowhere = call(&open, Operation::ClusterAddress, "2", SetAddress::default()).await;
        assert_eq!(nowhere, Err("missing_field"));
        assert_eq!(removed("2").await, Ok(moved.unwrap()));
        assert_eq!(removed("9").await, Err("node_not_found"));
        assert!(removed("two").await.is_err());
        assert_eq!(call(&open, Operation::ClusterJoin, "", join(&token)).await, Err("unauthenticated"));
    }

    #[tokio::test]
    async fn a_machine_that_does_not_fit_is_refused() {
        let open = Open::in_cluster(Arc::new(FirstNode));
        open.calls().clustered().unwrap().roster.begin(open.node(), 1, "127.0.0.1:1").await.unwrap();
        let token = call(&open, Operation::ClusterTokenCreate, "", CreateToken::default()).await.unwrap();
        let good = join(&token);
        for (refused, code) in [
            (Join { now_ms: Some(now_ms() - 3_600_000), ..good.clone() }, "node_refused"),
            (Join { behaviour: Some(1), ..good.clone() }, "node_refused"),
            (Join { behaviour: Some(9_999), ..good.clone() }, "node_refused"),
            (Join { behaviour: Some(9_999), oldest_behaviour: Some(9_998), ..good.clone() }, "node_refused"),
            (Join { protocol: Some(99), ..good.clone() }, "node_refused"),
            (Join { protocol: Some(0), ..good.clone() }, "invalid_argument"),
            (Join { protocol: None, ..good.clone() }, "missing_field"),
            (Join { shards: Some(2), ..good.clone() }, "node_refused"),
            (Join { address: Some("nowhere".to_owned()), ..good.clone() }, "invalid_argument"),
            (Join { address: Some("0.0.0.0:7".to_owned()), ..good.clone() }, "invalid_argument"),
            (Join { machine: None, ..good.clone() }, "missing_field"),
        ] {
            let answer = call(&open, Operation::ClusterJoin, "", refused.clone()).await;
            assert_eq!(answer, Err(code), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_server_alone_says_that_it_belongs_to_no_cluster() {
        let made = call(&Open::new(), Operation::ClusterTokenCreate, "", CreateToken::default()).await;
        assert_eq!(made, Err("no_cluster"));
    }
}
