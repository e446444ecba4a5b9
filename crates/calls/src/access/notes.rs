//! Notes for namespace `$sys`, which the leader of shard 0 writes down: in a cluster another node passes them
//! on to it.
//!
//! What one node sends to another is a byte, 16, and the note as JSON; the answer is one byte, 1 when it is
//! written down.

use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_engine::Error;
use sluice_node::Node;
use tokio::time::{Instant, sleep};

use super::Access;
use super::entries::append;

/// First byte of a note between nodes.
const NOTE: u8 = 16;
/// The answer that a note is written down.
const DONE: &[u8] = &[1];
/// The answer that it is not.
const NOT_NOW: &[u8] = &[0];
/// Time for which a note is passed on again that no leader has taken.
const PASS_TIME: Duration = Duration::from_secs(10);
/// Pause before it is.
const PASS_PAUSE: Duration = Duration::from_millis(50);

/// Note for namespace `$sys`. To take it down twice does no harm.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Note {
    /// Entry of the audit log.
    Entry(Value),
    /// Ids of tokens, and when each was last used, in milliseconds since the Unix epoch.
    Uses(Vec<(String, u64)>),
}

impl Access {
    /// The answer to a note that another node has passed on; `None`: the content is none.
    pub async fn answer(&self, node: &Node, content: &[u8]) -> Option<Bytes> {
        let note = serde_json::from_slice(content.strip_prefix(&[NOTE])?).ok()?;
        let is_done = node.first_leader_elsewhere().is_none() && self.write(node, &note).await.is_ok();
        Some(Bytes::from_static(if is_done { DONE } else { NOT_NOW }))
    }

    /// Takes a note down, durably, on the node that leads shard 0.
    ///
    /// # Errors
    /// What the engine says; in a cluster `no_leader` when no leader has taken it within 10 s.
    pub(super) async fn note(&self, node: &Node, note: &Note) -> Result<(), Error> {
        let until = Instant::now() + PASS_TIME;
        loop {
            match node.first_leader_elsewhere() {
                None => match self.write(node, note).await {
                    Err(Error::NotLeader { .. } | Error::NoLeader {}) => {}
                    written => return written,
                },
                Some(leader) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if pass(node, leader, note, left).await {
                        return Ok(());
                    }
                }
            }
            if Instant::now() >= until {
                return Err(Error::NoLeader {});
            }
            sleep(PASS_PAUSE).await;
        }
    }

    /// Takes a note down on this node.
    async fn write(&self, node: &Node, note: &Note) -> Result<(), Error> {
        match note {
            Note::Entry(entry) => {
                let entry = entry.to_string();
                let digest = digest(&SHA256, entry.as_bytes());
                // A note may come again whose answer was lost.
                let key = if node.is_clustered() { digest.as_ref() } else { b"" };
                append(node, entry.as_bytes(), key).await
            }
            Note::Uses(uses) => {
                self.were_used(uses);
                Ok(())
            }
        }
    }
}

async fn pass(node: &Node, leader: u64, note: &Note, within: Duration) -> bool {
    let mut content = vec![NOTE];
    // A value of JSON is written without fail.
    content.extend(serde_json::to_vec(note).unwrap_or_default());
    node.ask(leader, content.into(), within).await.is_some_and(|answer| answer == DONE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::access::{NewToken, Scope};
    use crate::testing::node;

    async fn answer(access: &Access, node: &Node, note: &Note) -> Option<Bytes> {
        let content = [&[NOTE][..], &serde_json::to_vec(note).unwrap()].concat();
        access.answer(node, &content).await
    }

    #[tokio::test]
    async fn a_note_of_another_node_is_taken_down_and_nothing_else_is() {
        let (node, access) = (node(), Access::default());
        let entry = json!({"who": "ops"});
        let done = answer(&access, &node, &Note::Entry(entry.clone())).await;
        assert_eq!(done.as_deref(), Some(DONE));
        let (entries, _) = access.audit(&node, None, 10).await.unwrap();
        assert_eq!(entries.iter().map(|it| &it.0).collect::<Vec<_>>(), [&entry]);
        for content in [&b""[..], b"\x10", b"\x10{}", b"\x01{\"entry\":1}"] {
            assert_eq!(access.answer(&node, content).await, None, "{content:?}");
        }
    }

    #[tokio::test]
    async fn the_latest_use_of_a_token_counts_on_whatever_node_it_was() {
        let (node, access) = (node(), Access::default());
        let scopes = vec![Scope::new("*", "admin").unwrap()];
        let new = NewToken { name: "ops".to_owned(), scopes, expires_at_ms: None };
        let (token, _) = access.token_create(&node, new, "").await.unwrap();
        for at_ms in [7_000, 5_000] {
            let uses = vec![(token.id.to_string(), at_ms), ("gone".to_owned(), at_ms)];
            assert_eq!(answer(&access, &node, &Note::Uses(uses)).await.as_deref(), Some(DONE));
        }
        access.note_uses(&node).await.unwrap();
        access.load_tokens(&node).await.unwrap();
        let used = access.tokens()[0].last_used_ms.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(used, 7_000);
    }
}
