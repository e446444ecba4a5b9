//! Nodes of the cluster, tokens to join it, joining, removal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::call::{Body, Done, How, Unary};
use crate::cluster::join_token::JoinSecret;
use crate::cluster::{ClusterCa, ClusterNode, NewNode};
use crate::error::CallError;
use crate::fault::Fault;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::server::Clustered;
use crate::value::Within;

/// Longest validity of a join token, in milliseconds: a week.
const TTL_MS_MAX: u64 = 7 * 86_400_000;
/// Validity of a join token for which none is named, in milliseconds: an hour.
const TTL_MS: u64 = 3_600_000;

/// A cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cluster", example = json!({
    "cluster": "5b0c9a1f22d347e8", "node": 1,
    "nodes": [{"number": 1, "name": "one", "address": "192.0.2.7:7070", "joined_at_ms": AT_MS_EXAMPLE, "leads": [0]}],
}))]
pub struct Shown {
    /// Id of the cluster.
    cluster: String,
    /// Number of the node that answers.
    node: u64,
    /// Its nodes.
    nodes: Vec<ShownNode>,
}

/// A node of a cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownNode {
    /// Its number: another one each time that a machine joins.
    number: u64,
    /// Its name.
    name: String,
    /// Its address, as `host:port`.
    address: String,
    /// When it joined, in milliseconds since the Unix epoch.
    joined_at_ms: u64,
    /// The shards that it leads, as far as the node that answers knows.
    leads: Vec<u32>,
}

/// The cluster to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Shown;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown>, CallError> {
        let clustered = clustered(permit)?;
        let own = clustered.own.number();
        let nodes = clustered.cluster.nodes(&permit.node().stale()).await?;
        let leaders: Vec<Option<u64>> =
            permit.node().leaders().iter().map(|leader| leader.number(own)).collect();
        let shown = |node: ClusterNode| {
            let leads = leaders.iter().enumerate().filter(|(_, leader)| **leader == Some(node.number));
            ShownNode {
                number: node.number,
                name: node.name,
                address: node.address,
                joined_at_ms: node.joined_at_ms,
                leads: leads.map(|(shard, _)| shard as u32).collect(),
            }
        };
        let nodes = nodes.into_iter().filter(|node| !node.is_removed).map(shown).collect();
        Ok(Shown { cluster: clustered.own.cluster().to_owned(), node: own, nodes }.into())
    }
}

/// The certificate of the cluster's CA, which is to be compared with the fingerprint in a join token.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterAuthority", example = json!({"ca": "-----BEGIN CERTIFICATE-----..."}))]
pub struct ShownAuthority {
    /// The certificate, as PEM.
    ca: String,
}

/// The CA to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterAuthorityRequest")]
pub struct Authority {}

impl Unary for Authority {
    type Answer = ShownAuthority;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<ShownAuthority>, CallError> {
        Ok(ShownAuthority { ca: authority(clustered(permit)?)?.certificate }.into())
    }
}

/// A token to make, with which one machine can join.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterTokenRequest")]
pub struct TokenCreate {
    /// Time until it expires, in milliseconds; an hour if it is not named.
    ttl_ms: Option<Within<1, TTL_MS_MAX>>,
}

/// A join token that was made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterToken", example = json!({
    "token": "sluice_join_..._4f1d20c5a3b2e697_...", "expires_at_ms": AT_MS_EXAMPLE,
}))]
pub struct TokenMade {
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

impl Unary for TokenCreate {
    type Answer = TokenMade;
    const HOW: &'static [How] = &[How::Created];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<TokenMade>, CallError> {
        let clustered = clustered(permit)?;
        let ttl_ms = self.ttl_ms.map_or(TTL_MS, Within::get);
        let fingerprint = authority(clustered)?.fingerprint;
        let (token, secret) = clustered.cluster.token_create(permit.node(), &fingerprint, ttl_ms).await?;
        let made = TokenMade { token: secret, expires_at_ms: token.expires_at_ms };
        Ok(Done::named(made, How::Created, token.id))
    }
}

/// A machine that wants to join.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterJoinRequest")]
pub struct Join {
    /// The join token; required.
    token: Option<String>,
    /// Name of the machine, which no other node has; required.
    name: Option<String>,
    /// Address at which clients and other nodes will reach it, as `host:port`; required.
    address: Option<String>,
}

/// Parts that make a machine a node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterJoined", example = json!({
    "cluster": "5b0c9a1f22d347e8", "node": 2, "ca": "-----BEGIN CERTIFICATE-----...",
    "ca_key": "-----BEGIN PRIVATE KEY-----...",
    "nodes": [{"number": 1, "name": "one", "address": "192.0.2.7:7070"}],
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

/// A node, as one that joins has to know it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Neighbour {
    /// Its number.
    number: u64,
    /// Its name.
    name: String,
    /// Its address, as `host:port`.
    address: String,
}

impl Unary for Join {
    type Answer = Joined;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Joined>, CallError> {
        let clustered = clustered(permit)?;
        let Join { token, name, address } = self;
        let token = token.ok_or_else(|| Fault::missing("token", "as `sluice cluster token` prints it"))?;
        let name = name.ok_or_else(|| Fault::missing("name", "a name that no other node has"))?;
        let address = address.ok_or_else(|| Fault::missing("address", "the machine's HOST:PORT"))?;
        let ca = authority(clustered)?;
        let node = clustered.cluster.join(permit.node(), &token, &NewNode { name, address }).await?;
        let nodes = clustered.cluster.nodes(permit.node()).await?.into_iter();
        let neighbour = |ClusterNode { number, name, address, .. }| Neighbour { number, name, address };
        let joined = Joined {
            cluster: clustered.own.cluster().to_owned(),
            node: node.number,
            ca: ca.certificate,
            ca_key: ca.key,
            nodes: nodes.filter(|node| !node.is_removed).map(neighbour).collect(),
        };
        Ok(Done::named(joined, How::Done, node.name))
    }
}

/// A node to remove for good.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterRemoveRequest")]
pub struct Remove {}

impl Unary for Remove {
    type Answer = Neighbour;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Neighbour>, CallError> {
        let clustered = clustered(permit)?;
        let expected = || Fault::invalid("expected the number of a node").inside("node");
        let number = permit.name().parse().map_err(|_| expected())?;
        let ClusterNode { number, name, address, .. } =
            clustered.cluster.remove(permit.node(), number).await?;
        Ok(Neighbour { number, name, address }.into())
    }
}

fn clustered<'p>(permit: &'p Permit<'_>) -> Result<&'p Clustered, CallError> {
    let alone = "this server belongs to no cluster: `sluice cluster init` makes it the first node of one";
    permit.calls().clustered().ok_or_else(|| CallError::new("no_cluster", alone))
}

fn authority(clustered: &Clustered) -> Result<ClusterCa, CallError> {
    let told = |error| sluice_engine::Error::Internal {
        reason: format!("the files of the cluster's CA cannot be read: {error}"),
    };
    Ok(clustered.own.authority().map_err(told)?)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::cluster::OwnNode;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[derive(Debug)]
    struct First;

    impl OwnNode for First {
        fn cluster(&self) -> &str {
            "5b0c9a1f22d347e8"
        }

        fn number(&self) -> u64 {
            1
        }

        fn authority(&self) -> io::Result<ClusterCa> {
            Ok(ClusterCa { certificate: "CA".to_owned(), fingerprint: [7; 32], key: "KEY".to_owned() })
        }
    }

    async fn call<R: Unary>(open: &Open, operation: Operation, name: &str, request: R) -> Value {
        let permit = open.permit(operation, name);
        let done = request.run(&permit).await.unwrap_or_else(|error| panic!("{}", error.message()));
        serde_json::to_value(done.answer).unwrap()
    }

    #[tokio::test]
    async fn a_machine_joins_with_a_token_is_shown_and_removed() {
        let open = Open::in_cluster(Arc::new(First));
        let clustered = open.calls().clustered().unwrap();
        let first = NewNode { name: "one".to_owned(), address: "127.0.0.1:1".to_owned() };
        clustered.cluster.begin(open.node(), &first).await.unwrap();
        let token = call(&open, Operation::ClusterTokenCreate, "", TokenCreate::default()).await;
        let join = |address: &str| Join {
            token: token["token"].as_str().map(str::to_owned),
            name: Some("two".to_owned()),
            address: Some(address.to_owned()),
        };
        let joined = call(&open, Operation::ClusterJoin, "", join("127.0.0.1:2")).await;
        let (node, key) = (&joined["node"], &joined["ca_key"]);
        assert_eq!((node, key, joined["nodes"].as_array().unwrap().len()), (&json!(2), &json!("KEY"), 2));
        let shown = call(&open, Operation::ClusterShow, "", Show {}).await;
        assert_eq!((&shown["node"], &shown["nodes"][0]["leads"]), (&json!(1), &json!([0])));
        assert_eq!((&shown["nodes"][1]["name"], &shown["nodes"][1]["leads"]), (&json!("two"), &json!([])));
        call(&open, Operation::ClusterRemove, "2", Remove {}).await;
        let shown = call(&open, Operation::ClusterShow, "", Show {}).await;
        assert_eq!(shown["nodes"].as_array().unwrap().len(), 1);
        let again = join("127.0.0.1:2").run(&open.permit(Operation::ClusterJoin, "")).await;
        assert_eq!(again.unwrap_err().code(), "unauthenticated");
    }

    #[tokio::test]
    async fn a_server_alone_says_that_it_belongs_to_no_cluster() {
        let open = Open::new();
        let shown = Show {}.run(&open.permit(Operation::ClusterShow, "")).await;
        assert_eq!(shown.unwrap_err().code(), "no_cluster");
    }
}
