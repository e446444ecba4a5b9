//! A new number for a node that may have forgotten what it acknowledged under its former one. It asks the
//! other nodes with one byte, 18; the answer of the node that leads shard 0 is the number, as `u64` in little
//! endian, and that of any other is empty. The connection proves who asks.

use std::time::Duration;

use bytes::Bytes;
use sluice_node::Node;
use sluice_node::steering::Wanted;

use super::Roster;
use super::nodes::ListedNode;
use crate::error::CallError;

/// The question.
const ASK: &[u8] = &[18];
/// Time for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Asks another node for a number under which this one comes in the place of its former; `None`: that node
/// has none to give just now.
pub async fn ask(node: &Node, other: u64) -> Option<u64> {
    let answer = node.ask(other, Bytes::from_static(ASK), ANSWER_TIME).await?;
    Some(u64::from_le_bytes(answer.as_ref().try_into().ok()?))
}

impl Roster {
    /// True if another node asks for a number.
    pub(crate) fn is_asked_to_renew(content: &[u8]) -> bool {
        content == ASK
    }

    /// The answer to a node with this number.
    pub(crate) async fn answer_renewal(&self, node: &Node, number: u64) -> Bytes {
        match self.renew(node, number).await {
            Ok(listed) => Bytes::copy_from_slice(&listed.number.to_le_bytes()),
            Err(why) => {
                tracing::debug!("node {number} gets no new number here: {}", why.message());
                Bytes::new()
            }
        }
    }

    /// Enters a node anew, in the place of its former number. The same again gives the same number.
    ///
    /// # Errors
    /// `node_not_found`: it was removed, or is about to be, or another machine replaces it; those of
    /// [`Roster::nodes`].
    async fn renew(&self, node: &Node, number: u64) -> Result<ListedNode, CallError> {
        let _turn = self.changes.lock().await;
        let former = self.expect_present(node, number).await?;
        let nodes = self.nodes(node).await?;
        let is_successor =
            |listed: &ListedNode| listed.replaces == Some(number) && listed.wanted == Wanted::Voter;
        match nodes.into_iter().find(is_successor) {
            None => self.add(node, &former.address, Some(number), "", "").await,
            Some(listed) if listed.token.is_empty() => Ok(listed),
            Some(listed) => {
                let message = format!("node {} comes in the place of node {number}", listed.number);
                Err(CallError::new("node_not_found", message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::Machine;
    use crate::testing;

    #[tokio::test]
    async fn a_node_gets_one_new_number_for_each_that_it_had() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        for (asking, given) in [(1, 2), (1, 2), (2, 3)] {
            let renewed = roster.renew(&node, asking).await.unwrap();
            assert_eq!((renewed.number, renewed.replaces), (given, Some(asking)));
            assert_eq!(renewed.address, "one:1");
        }
        assert_eq!(roster.answer_renewal(&node, 3).await.as_ref(), 4u64.to_le_bytes());
        roster.remove(&node, 4, &[1, 2, 3]).await.unwrap();
        for gone in [4, 9] {
            assert!(roster.answer_renewal(&node, gone).await.is_empty());
        }
    }

    #[tokio::test]
    async fn who_replaces_a_node_replaces_the_number_that_it_has_got_since() {
        let (node, roster) = (testing::node(), Roster::new("5b0c"));
        roster.begin(&node, 1, "one:1").await.unwrap();
        let token = async |replaces| {
            let made = roster.create_token(&node, &[7; 32], 60_000, replaces).await;
            made.unwrap().1.0
        };
        let machine = |address| Machine { address, secret: address };
        let two = roster.join(&node, &token(None).await, machine("two:1")).await.unwrap();
        let instead_of_two = token(Some(two.number)).await;
        let renewed = roster.renew(&node, two.number).await.unwrap();
        let three = roster.join(&node, &instead_of_two, machine("three:1")).await.unwrap();
        assert_eq!(three.replaces, Some(renewed.number));
        let replaced = roster.renew(&node, renewed.number).await.unwrap_err();
        assert_eq!(replaced.code(), "node_not_found");
    }
}
