//! Following of tokens and of the stored policy by all nodes of a cluster: the node on which one is changed
//! answers when those that it reaches count it.
//!
//! What one node sends to another is a byte, 19; the answer is one byte, 1 when the other counts all that was
//! acknowledged before.

use std::time::Duration;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_node::Node;
use tokio::task::JoinSet;

use super::Access;

/// The request to follow.
const FOLLOW: &[u8] = &[19];
/// The answer that it is done.
const DONE: &[u8] = &[1];
/// The answer that it is not.
const NOT_NOW: &[u8] = &[0];
/// Longest wait for the other nodes.
const WAIT_MAX: Duration = Duration::from_secs(1);

impl Access {
    /// Takes up the tokens and the policy that other nodes have made, set and removed, as far as this node
    /// has applied that.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`.
    pub async fn follow(&self, node: &Node) -> Result<(), Error> {
        let stale = node.stale();
        self.refresh_tokens(&stale).await?;
        self.refresh_policy(&stale).await
    }

    /// True for the request of another node to follow what it has changed.
    pub(crate) fn is_asked_to_follow(content: &[u8]) -> bool {
        content == FOLLOW
    }

    /// Follows all that was acknowledged before this call, and answers.
    pub(crate) async fn answer_following(&self, node: &Node) -> Bytes {
        let is_done = node.catch_up(0).await.is_ok() && self.follow(node).await.is_ok();
        Bytes::from_static(if is_done { DONE } else { NOT_NOW })
    }

    /// Waits until the nodes that are connected count a change of tokens or policy that this one has
    /// acknowledged, for a second at most; the log names those that have not answered by then.
    pub(crate) async fn spread(&self, node: &Node) {
        let mut asked = JoinSet::new();
        for (other, _) in node.links().into_iter().filter(|(_, link)| link.silent_ms.is_none()) {
            let node = node.clone();
            asked.spawn(async move {
                let answer = node.ask(other, Bytes::from_static(FOLLOW), WAIT_MAX).await;
                if answer.as_deref() != Some(DONE) {
                    tracing::warn!(
                        node = other,
                        "this node has not said that it counts a change of tokens or of the stored policy: it does as \
                         soon as it has applied that"
                    );
                }
            });
        }
        asked.join_all().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{NewToken, Scope};
    use crate::testing::node;

    #[tokio::test]
    async fn a_node_that_is_asked_to_follow_counts_what_was_changed_and_says_so() {
        let (node, here, there) = (node(), Access::default(), Access::default());
        let scopes = vec![Scope::new("*", "admin").unwrap()];
        let new = NewToken { name: "ops".to_owned(), scopes, expires_at_ms: None };
        let (token, _) = here.token_create(&node, new.clone(), "").await.unwrap();
        assert!(Access::is_asked_to_follow(FOLLOW) && !Access::is_asked_to_follow(b""));
        assert_eq!(there.answer_following(&node).await, DONE);
        assert_eq!(there.tokens().len(), 1);
        here.token_create(&node, NewToken { name: "other".to_owned(), ..new }, "").await.unwrap();
        here.token_revoke(&node, &token.id).await.unwrap();
        assert_eq!(there.answer_following(&node).await, DONE);
        assert_eq!(there.tokens().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["other"]);
    }
}
