//! The first node of a cluster, join tokens, and nodes that join with them.

use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_node::Node;

use data_encoding::HEXLOWER;

use super::Cluster;
use super::join_token::{JoinSecret, JoinToken, parts};
use super::nodes::{ClusterNode, NewNode};
use crate::error::CallError;
use crate::system::{Entry, OnceKey, SystemList};
use crate::time::now_ms;

const TOKENS: SystemList = SystemList("join-tokens");
/// Most tokens that are valid at once.
const TOKENS_MAX: usize = 100;

impl Cluster {
    /// Makes the server the first node of a cluster; the same node again is no error.
    ///
    /// # Errors
    /// `node_exists`: the server is a node already, under another name or address; `invalid_argument`.
    pub async fn begin(&self, node: &Node, first: &NewNode) -> Result<ClusterNode, CallError> {
        let _turn = self.changes.lock().await;
        let nodes = self.nodes(node).await?;
        match nodes.first() {
            None => self.add(node, first, "").await,
            Some(known) if known.name == first.name && known.address == first.address => Ok(known.clone()),
            Some(ClusterNode { number, name, address, .. }) => {
                let message =
                    format!("the server belongs to a cluster, whose node {number} is {name} at {address}");
                Err(CallError::new("node_exists", message))
            }
        }
    }

    /// Makes a token with which one node can join the cluster whose CA has this fingerprint. Its text is in
    /// the answer and nowhere else.
    ///
    /// # Errors
    /// `limit_exceeded`; what the engine says.
    pub async fn token_create(
        &self,
        node: &Node,
        fingerprint: &[u8; 32],
        ttl_ms: u64,
    ) -> Result<(JoinToken, JoinSecret), CallError> {
        let _turn = self.changes.lock().await;
        if self.drop_expired(node).await? >= TOKENS_MAX {
            let message = format!("there are {TOKENS_MAX} join tokens, the maximum: they end by themselves");
            return Err(CallError::new("limit_exceeded", message));
        }
        let made = JoinToken::make(fingerprint, now_ms() + ttl_ms);
        let (token, secret) =
            made.ok_or_else(|| Error::Internal { reason: "the system gives no random numbers".to_owned() })?;
        TOKENS.add(node, &written(&token), OnceKey::default()).await?;
        Ok((token, secret))
    }

    /// Lets a machine join. A token works for one node; the same machine may ask again until it has the
    /// answer.
    ///
    /// # Errors
    /// `unauthenticated`: the text is no token, or one that is not known, has expired or was used;
    /// `node_exists`, `limit_exceeded`, `invalid_argument`.
    pub async fn join(&self, node: &Node, text: &str, new: &NewNode) -> Result<ClusterNode, CallError> {
        let _turn = self.changes.lock().await;
        let refused = |message: &str| CallError::new("unauthenticated", message.to_owned());
        let parts = parts(text).map_err(|message| refused(&message))?;
        let entries = TOKENS.all(node).await?;
        let mut tokens = entries.iter().filter_map(read);
        let token = tokens.find(|token| token.id == parts.id && token.is(text));
        let token =
            token.ok_or_else(|| refused("the join token is not one of this cluster's, or is over"))?;
        let used = self.nodes(node).await?.into_iter().find(|node| node.token == token.id);
        match used {
            Some(known) if known.name == new.name && known.address == new.address && !known.is_removed => {
                Ok(known)
            }
            Some(known) => Err(refused(&format!(
                "the join token was used by node {}, {} at {}: make another with `sluice cluster token`",
                known.number, known.name, known.address
            ))),
            None if token.expires_at_ms <= now_ms() => {
                Err(refused("the join token has expired: make another with `sluice cluster token`"))
            }
            None => self.add(node, new, &token.id).await,
        }
    }

    /// Takes away tokens that have expired; returns the number of those that are left.
    async fn drop_expired(&self, node: &Node) -> Result<usize, Error> {
        let mut left = 0;
        for entry in TOKENS.all(node).await? {
            match read(&entry) {
                Some(token) if token.expires_at_ms > now_ms() => left += 1,
                _ => entry.remove(node).await?,
            }
        }
        Ok(left)
    }
}

fn written(token: &JoinToken) -> Value {
    json!({
        "id": token.id,
        "sha256": HEXLOWER.encode(&token.hash),
        "expires_at_ms": token.expires_at_ms,
    })
}

fn read(entry: &Entry) -> Option<JoinToken> {
    let value = entry.value.as_ref()?;
    let text = |name: &str| value.get(name)?.as_str();
    Some(JoinToken {
        id: text("id")?.to_owned(),
        expires_at_ms: value.get("expires_at_ms")?.as_u64()?,
        hash: HEXLOWER.decode(text("sha256")?.as_bytes()).ok()?.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    fn new(name: &str, port: u16) -> NewNode {
        NewNode { name: name.to_owned(), address: format!("127.0.0.1:{port}") }
    }

    fn code(error: CallError) -> &'static str {
        error.code()
    }

    #[tokio::test]
    async fn a_token_lets_one_node_join_as_often_as_it_asks_for_the_same() {
        let (node, cluster) = (node(), Cluster::default());
        assert_eq!(cluster.begin(&node, &new("one", 1)).await.unwrap().number, 1);
        assert_eq!(cluster.begin(&node, &new("one", 1)).await.unwrap().number, 1);
        assert_eq!(code(cluster.begin(&node, &new("two", 2)).await.unwrap_err()), "node_exists");
        let (_, JoinSecret(text)) = cluster.token_create(&node, &[7; 32], 60_000).await.unwrap();
        let joined = cluster.join(&node, &text, &new("two", 2)).await.unwrap();
        assert_eq!((joined.number, joined.name.as_str()), (2, "two"));
        assert_eq!(cluster.join(&node, &text, &new("two", 2)).await.unwrap(), joined);
        assert_eq!(code(cluster.join(&node, &text, &new("three", 3)).await.unwrap_err()), "unauthenticated");
        assert_eq!(cluster.nodes(&node).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_number_is_never_given_twice_and_a_removed_node_does_not_come_back_with_its_token() {
        let (node, cluster) = (node(), Cluster::default());
        cluster.begin(&node, &new("one", 1)).await.unwrap();
        let (_, JoinSecret(first)) = cluster.token_create(&node, &[7; 32], 60_000).await.unwrap();
        cluster.join(&node, &first, &new("two", 2)).await.unwrap();
        assert!(cluster.remove(&node, 2).await.unwrap().is_removed);
        assert_eq!(code(cluster.join(&node, &first, &new("two", 2)).await.unwrap_err()), "unauthenticated");
        let (_, JoinSecret(second)) = cluster.token_create(&node, &[7; 32], 60_000).await.unwrap();
        assert_eq!(cluster.join(&node, &second, &new("two", 2)).await.unwrap().number, 3);
        assert_eq!(code(cluster.remove(&node, 9).await.unwrap_err()), "node_not_found");
        cluster.remove(&node, 3).await.unwrap();
        assert_eq!(code(cluster.remove(&node, 1).await.unwrap_err()), "invalid_argument");
        let seen = cluster.nodes(&node).await.unwrap();
        let seen: Vec<(u64, bool)> = seen.iter().map(|node| (node.number, node.is_removed)).collect();
        assert_eq!(seen, [(1, false), (2, true), (3, true)]);
    }

    #[tokio::test]
    async fn names_addresses_and_tokens_that_are_wrong_are_refused_and_add_nothing() {
        let (node, cluster) = (node(), Cluster::default());
        cluster.begin(&node, &new("one", 1)).await.unwrap();
        let (_, JoinSecret(text)) = cluster.token_create(&node, &[7; 32], 60_000).await.unwrap();
        for (name, address, expected) in [
            ("one", "127.0.0.1:2", "node_exists"),
            ("two", "127.0.0.1:1", "node_exists"),
            ("a b", "127.0.0.1:2", "invalid_argument"),
            ("two", "127.0.0.1", "invalid_argument"),
            ("two", "127.0.0.1:0", "invalid_argument"),
            ("two", "a b:1", "invalid_argument"),
            ("two", ":1", "invalid_argument"),
        ] {
            let new = NewNode { name: name.to_owned(), address: address.to_owned() };
            assert_eq!(
                code(cluster.join(&node, &text, &new).await.unwrap_err()),
                expected,
                "{name} {address}"
            );
        }
        let other = text.replace("sluice_join_07", "sluice_join_08");
        for wrong in [other.as_str(), "", "sluice_join_x"] {
            let refused = cluster.join(&node, wrong, &new("two", 2)).await.unwrap_err();
            assert_eq!(code(refused), "unauthenticated", "{wrong}");
        }
        assert_eq!(cluster.nodes(&node).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_expired_token_is_refused_but_not_to_the_node_that_used_it() {
        let (node, cluster) = (node(), Cluster::default());
        cluster.begin(&node, &new("one", 1)).await.unwrap();
        let (_, JoinSecret(used)) = cluster.token_create(&node, &[7; 32], 1_000).await.unwrap();
        let (_, JoinSecret(unused)) = cluster.token_create(&node, &[7; 32], 1_000).await.unwrap();
        cluster.join(&node, &used, &new("two", 2)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        assert_eq!(cluster.join(&node, &used, &new("two", 2)).await.unwrap().number, 2);
        let refused = cluster.join(&node, &unused, &new("three", 3)).await.unwrap_err();
        assert!(format!("{refused:?}").contains("has expired"), "{refused:?}");
    }
}
