//! Join tokens in their list, and machines that join with them.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_node::Node;
use sluice_node::steering::Wanted;

use super::join_token::{JoinSecret, JoinToken, parts};
use super::nodes::ListedNode;
use super::{Roster, TOKENS};
use crate::error::CallError;
use crate::system::{Entry, OnceKey};

/// Largest number of tokens that are valid at once.
const TOKENS_MAX: usize = 100;

/// A machine that is to become a node.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// Address at which clients and other nodes will reach it, as `host:port`.
    pub address: &'a str,
    /// Text that only this machine knows, by which it is known when it asks again.
    pub secret: &'a str,
}

impl Roster {
    /// Makes a token with which one machine can join the cluster whose CA has this fingerprint, in the place
    /// of the node `replaces` or as one more. Its text is in the answer and nowhere else.
    ///
    /// # Errors
    /// `node_not_found`, `limit_exceeded`; those of [`Roster::nodes`].
    pub async fn create_token(
        &self,
        node: &Node,
        fingerprint: &[u8; 32],
        ttl_ms: u64,
        replaces: Option<u64>,
    ) -> Result<(JoinToken, JoinSecret), CallError> {
        let _turn = self.changes.lock().await;
        if let Some(number) = replaces {
            self.expect_present(node, number).await?;
        }
        if self.drop_expired(node).await? >= TOKENS_MAX {
            let message = format!("there are {TOKENS_MAX} join tokens, the maximum: they end by themselves");
            return Err(CallError::new("limit_exceeded", message));
        }
        let made = JoinToken::make(fingerprint, node.clock().now_ms() + ttl_ms, replaces);
        let (token, secret) =
            made.ok_or_else(|| Error::Internal { reason: "the system gives no random numbers".to_owned() })?;
        TOKENS.add(node, &self.written_token(&token), OnceKey::default()).await?;
        Ok((token, secret))
    }

    /// Lets a machine join. A token works for one machine, which may ask again until it has the answer.
    ///
    /// # Errors
    /// `unauthenticated`: the text is no token, or one that is not known, has expired or was used;
    /// `node_exists`, `limit_exceeded`, `invalid_argument`; those of [`Roster::nodes`].
    pub async fn join(&self, node: &Node, text: &str, machine: Machine<'_>) -> Result<ListedNode, CallError> {
        let _turn = self.changes.lock().await;
        let refused = |message: String| CallError::new("unauthenticated", message);
        let parts = parts(text).map_err(refused)?;
        let entries = TOKENS.all(node).await?;
        let mut tokens = entries.iter().filter_map(|entry| self.token_of(entry));
        let token = tokens.find(|token| token.id == parts.id && token.is(text));
        let unknown = || refused("the join token is not one of this cluster's, or is over".to_owned());
        let token = token.ok_or_else(unknown)?;
        let hash = HEXLOWER.encode(digest(&SHA256, machine.secret.as_bytes()).as_ref());
        let nodes = self.nodes(node).await?;
        if nodes.is_empty() {
            // The first node is about to begin the list, and its number must not be given.
            return Err(Error::NoLeader {}.into());
        }
        let used = nodes.into_iter().find(|listed| listed.token == token.id);
        match used {
            Some(listed) if listed.machine == hash && listed.address != machine.address => {
                Err(refused(format!(
                    "the machine has joined as node {number} at {}: start it with that address, or let `sluice cluster \
                 address {number} {}` set this one first",
                    listed.address,
                    machine.address,
                    number = listed.number
                )))
            }
            Some(listed) if listed.machine == hash && listed.wanted == Wanted::Voter => Ok(listed),
            Some(ListedNode { number, address, .. }) => Err(refused(format!(
                "the join token was used by node {number} at {address}: make another with `sluice cluster add`"
            ))),
            None if token.expires_at_ms <= node.clock().now_ms() => {
                Err(refused("the join token has expired: make another with `sluice cluster add`".to_owned()))
            }
            None => self.add(node, machine.address, token.replaces, &token.id, &hash).await,
        }
    }

    /// Takes away tokens that have expired, but those of nodes that are to vote: their machines may not have
    /// their answers yet. Returns the number of those that have not expired.
    async fn drop_expired(&self, node: &Node) -> Result<usize, CallError> {
        let (nodes, now_ms, mut left) = (self.nodes(node).await?, node.clock().now_ms(), 0);
        let voters = || nodes.iter().filter(|listed| listed.wanted == Wanted::Voter);
        let is_of_voter = |id: &str| voters().any(|listed| listed.token == id);
        for entry in TOKENS.all(node).await? {
            match self.token_of(&entry) {
                Some(token) if token.expires_at_ms > now_ms => left += 1,
                Some(token) if is_of_voter(&token.id) => {}
                _ => entry.remove(node).await?,
            }
        }
        Ok(left)
    }

    fn written_token(&self, token: &JoinToken) -> Value {
        json!({
            "cluster": *self.cluster,
            "id": token.id,
            "sha256": HEXLOWER.encode(&token.hash),
            "expires_at_ms": token.expires_at_ms,
            "replaces": token.replaces,
        })
    }

    /// The token of an entry; `None`: it is damaged, or that of another cluster.
    pub(super) fn token_of(&self, entry: &Entry) -> Option<JoinToken> {
        let value = entry.value.as_ref()?;
        let text = |name: &str| value.get(name)?.as_str();
        if text("cluster")? != &*self.cluster {
            return None;
        }
        Some(JoinToken {
            id: text("id")?.to_owned(),
            expires_at_ms: value.get("expires_at_ms")?.as_u64()?,
            replaces: value.get("replaces")?.as_u64(),
            hash: HEXLOWER.decode(text("sha256")?.as_bytes()).ok()?.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn machine<'a>(address: &'a str, secret: &'a str) -> Machine<'a> {
        Machine { address, secret }
    }

    async fn token(roster: &Roster, node: &Node, ttl_ms: u64, replaces: Option<u64>) -> String {
        roster.create_token(node, &[7; 32], ttl_ms, replaces).await.unwrap().1.0
    }

    async fn code(roster: &Roster, node: &Node, text: &str, machine: Machine<'_>) -> &'static str {
        roster.join(node, text, machine).await.unwrap_err().code()
    }

    #[tokio::test]
    async fn a_machine_joins_once_with_a_token_and_may_ask_again() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        roster.begin(&node, 1, "one:1").await.unwrap();
        let text = token(&roster, &node, 60_000, None).await;
        let joined = roster.join(&node, &text, machine("two:1", "m")).await.unwrap();
        assert_eq!((joined.number, joined.address.as_str()), (2, "two:1"));
        assert_eq!(roster.join(&node, &text, machine("two:1", "m")).await.unwrap(), joined);
        assert_eq!(code(&roster, &node, &text, machine("two:1", "other")).await, "unauthenticated");
        assert_eq!(code(&roster, &node, &text, machine("two:2", "m")).await, "unauthenticated");
        let next = token(&roster, &node, 60_000, None).await;
        assert_eq!(code(&roster, &node, &next, machine("two:1", "x")).await, "node_exists");
        assert_eq!(roster.join(&node, &next, machine("three:1", "x")).await.unwrap().number, 3);
        assert_eq!(roster.nodes(&node).await.unwrap().len(), 3);
        // Another cluster begins with the data of this one.
        let other = Roster::new("77");
        assert_eq!(other.nodes(&node).await.unwrap(), []);
        other.begin(&node, 4, "new:1").await.unwrap();
        assert_eq!(other.nodes(&node).await.unwrap()[0].number, 4);
        assert_eq!(code(&other, &node, &next, machine("four:1", "m")).await, "unauthenticated");
        assert_eq!(roster.nodes(&node).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_token_that_is_made_before_the_list_begins_is_taken() {
        let (node, former, roster) = (testing::node(), Roster::new("77"), Roster::new("5b0c"));
        // The second time with the data of another cluster.
        for has_former in [false, true] {
            if has_former {
                former.begin(&node, 1, "former:1").await.unwrap();
                token(&former, &node, 60_000, None).await;
            }
            let roster = if has_former { Roster::new("5b0d") } else { roster.clone() };
            let text = token(&roster, &node, 60_000, None).await;
            assert_eq!(code(&roster, &node, &text, machine("two:1", "m")).await, "no_leader");
            roster.begin(&node, 1, "one:1").await.unwrap();
            assert_eq!(roster.join(&node, &text, machine("two:1", "m")).await.unwrap().number, 2);
            assert_eq!(TOKENS.all(&node).await.unwrap().len(), 1, "those of the former cluster are gone");
        }
    }

    #[tokio::test]
    async fn wrong_and_expired_tokens_are_refused() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        let expired = token(&roster, &node, 0, None).await;
        let (_, JoinSecret(foreign)) = JoinToken::make(&[7; 32], u64::MAX, None).unwrap();
        for text in [expired.as_str(), foreign.as_str(), "rubbish", ""] {
            assert_eq!(code(&roster, &node, text, machine("two:1", "m")).await, "unauthenticated");
        }
        let made = roster.create_token(&node, &[7; 32], 1, Some(2)).await;
        assert_eq!(made.unwrap_err().code(), "node_not_found");
    }

    #[tokio::test]
    async fn a_machine_whose_join_was_cut_may_ask_again_when_its_token_has_expired() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        let text = token(&roster, &node, 60_000, None).await;
        let joined = roster.join(&node, &text, machine("two:1", "m")).await.unwrap();
        let entry = TOKENS.all(&node).await.unwrap().remove(0);
        let expired = JoinToken { expires_at_ms: 1, ..roster.token_of(&entry).unwrap() };
        entry.remove(&node).await.unwrap();
        TOKENS.add(&node, &roster.written_token(&expired), OnceKey::default()).await.unwrap();
        let count = async || TOKENS.all(&node).await.unwrap().len();
        // Of those that expire at once the next one takes away the former.
        for _ in 0..3 {
            token(&roster, &node, 0, None).await;
            assert_eq!(count().await, 2, "the node's, and the newest");
        }
        assert_eq!(roster.join(&node, &text, machine("two:1", "m")).await.unwrap(), joined);
        roster.remove(&node, 2, &[1, 2]).await.unwrap();
        token(&roster, &node, 0, None).await;
        assert_eq!(count().await, 1, "the node's is of no use any more");
    }

    #[tokio::test]
    async fn a_node_gets_another_address_and_keeps_what_else_it_has() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        let text = token(&roster, &node, 60_000, None).await;
        let joined = roster.join(&node, &text, machine("two:1", "m")).await.unwrap();
        for address in ["two:2", "two:2", "two:1", "two:2"] {
            let moved = roster.set_address(&node, 2, address).await.unwrap();
            assert_eq!(moved, ListedNode { address: address.to_owned(), ..joined.clone() });
            assert_eq!(roster.nodes(&node).await.unwrap()[1], moved);
        }
        assert_eq!(roster.nodes(&node).await.unwrap().len(), 2);
        assert_eq!(roster.join(&node, &text, machine("two:2", "m")).await.unwrap().number, 2);
        let refused =
            async |number, address| roster.set_address(&node, number, address).await.unwrap_err().code();
        assert_eq!(refused(2, "one:1").await, "node_exists");
        assert_eq!(refused(2, "nowhere").await, "invalid_argument");
        assert_eq!(refused(9, "two:3").await, "node_not_found");
        // What a change cut half way has left: the later entry counts, and the next change tidies up.
        roster.enter_again(&node, &ListedNode { address: "two:3".to_owned(), ..joined }).await.unwrap();
        assert_eq!(roster.nodes(&node).await.unwrap()[1].address, "two:3");
        assert_eq!(roster.remove(&node, 2, &[1, 2]).await.unwrap().wanted, Wanted::Leaving);
        assert_eq!(roster.nodes(&node).await.unwrap()[1].wanted, Wanted::Leaving);
        assert_eq!(refused(2, "two:4").await, "node_not_found");
    }

    #[tokio::test]
    async fn a_number_is_never_given_again() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        let text = token(&roster, &node, 60_000, None).await;
        roster.join(&node, &text, machine("two:1", "m")).await.unwrap();
        assert_eq!(roster.remove(&node, 3, &[1, 2]).await.unwrap_err().code(), "node_not_found");
        assert_eq!(roster.remove(&node, 2, &[1, 2]).await.unwrap().wanted, Wanted::Leaving);
        roster.removed(&node, 2).await.unwrap();
        assert_eq!(roster.nodes(&node).await.unwrap()[1].wanted, Wanted::Removed);
        assert_eq!(roster.remove(&node, 2, &[1]).await.unwrap().wanted, Wanted::Removed);
        assert_eq!(roster.remove(&node, 1, &[1]).await.unwrap_err().code(), "wrong_state");
        assert_eq!(code(&roster, &node, &text, machine("two:1", "m")).await, "unauthenticated");
        let text = token(&roster, &node, 60_000, Some(1)).await;
        let joined = roster.join(&node, &text, machine("one:1", "m")).await.unwrap();
        assert_eq!((joined.number, joined.replaces), (3, Some(1)));
    }
}
