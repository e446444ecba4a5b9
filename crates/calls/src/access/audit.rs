//! The audit log: who has done what to the server, in queue `audit` of namespace `$sys`, so that it is in the
//! journal and in every backup. An entry is kept for [`KEPT_MS`], or until newer ones need its room: the
//! newest are always there. What was refused is summed up where it is much.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_engine::blob::MessageBlob;
use sluice_engine::change::{Change, ChangeAction};
use sluice_engine::command::{Send, SendItem};
use sluice_engine::item::{Expires, SendOptions};
use sluice_engine::settings::{OnExpire, QueuePatch};
use sluice_engine::{Error, NamespaceId};
use sluice_node::Node;
use tokio::time::sleep;

use super::identity::{Caller, Proof};
use super::{Access, Peer};
use crate::time::now_ms;

const QUEUE: &str = "audit";
/// Retention of an entry, in milliseconds: one year.
const KEPT_MS: u64 = 365 * 86_400_000;
/// Most entries: beyond it the oldest go.
const ENTRIES_MAX: u64 = 1_000_000;
/// Most entries that go at once.
const DROPPED_MAX: u64 = 100;
/// Retries of an entry for which there is no room.
const RETRIES: usize = 10;
/// Longest pause before it is.
const RETRY_PAUSE_MS: u64 = 200;
/// Longest target of an entry, in characters.
const TARGET_CHARS_MAX: usize = 512;
/// Most entries of a page.
pub const AUDIT_PAGE_MAX: usize = 1_000;

/// An administrative act, after it was done or refused.
#[derive(Clone, Copy, Debug)]
pub struct Act<'a> {
    /// The operation, by its name in the API description.
    pub operation: &'a str,
    /// Path of the request, or its object in the words of its protocol.
    pub target: &'a str,
    /// True if it was refused; else it was done, or the server failed in it.
    pub refused: bool,
    /// The outcome: a status or an error code.
    pub outcome: &'a str,
    /// The request's id.
    pub request_id: &'a str,
}

/// An entry of the audit log, as JSON.
#[derive(Clone, PartialEq, Debug)]
pub struct AuditEntry(pub Value);

impl Access {
    /// Records an act, durably. Where callers need not authenticate, nothing is recorded; refused acts may be
    /// recorded later, summed up, by [`Access::sum_up_refusals`].
    pub async fn record(&self, node: &Node, peer: &Peer, caller: &Caller, act: Act<'_>) {
        if !self.asks() {
            return;
        }
        let entry = || entry(peer, caller, act);
        let entry = match caller {
            Caller::Anybody | Caller::Known(_) if !act.refused => Some(entry()),
            _ => self.shared.refusals.add(peer, caller, now_ms(), entry),
        };
        if let Some(entry) = entry {
            take_down(node, &entry).await;
        }
    }

    /// Takes down what was refused and not taken down one by one: when ten minutes of it are over, or `all`
    /// of it.
    pub async fn sum_up_refusals(&self, node: &Node, all: bool) {
        for entry in self.shared.refusals.take(now_ms(), all) {
            take_down(node, &entry).await;
        }
    }

    /// Entries, the oldest first, after `cursor`; at most `limit`, and the cursor of the next page.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`.
    pub async fn audit(
        &self,
        node: &Node,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<AuditEntry>, Option<u64>), Error> {
        let limit = limit.clamp(1, AUDIT_PAGE_MAX);
        match node.messages(NamespaceId::SYS, QUEUE, None, cursor, limit, true).await {
            Err(Error::QueueNotFound { .. }) => Ok((Vec::new(), None)),
            Err(error) => Err(error),
            Ok(page) => {
                let read = |blob: &[u8]| serde_json::from_slice(MessageBlob::parse(blob)?.payload).ok();
                let damaged = || json!({"damaged": true});
                let entries = page.items.iter();
                let entries =
                    entries.map(|stored| stored.blob.as_deref().and_then(read).unwrap_or_else(damaged));
                Ok((entries.map(AuditEntry).collect(), page.next))
            }
        }
    }
}

fn entry(peer: &Peer, caller: &Caller, act: Act<'_>) -> Value {
    let proof = caller.identity().map(|identity| match identity.proof() {
        Proof::Certificate(serial) => format!("certificate {serial}"),
        Proof::Token(id) => format!("token {id}"),
    });
    json!({
        "at_ms": now_ms(),
        "who": caller.name(),
        "proof": proof,
        "address": peer.address().to_string(),
        "operation": act.operation,
        "target": target(act.target),
        "outcome": act.outcome,
        "request_id": act.request_id,
    })
}

/// Stores an entry; one that cannot be stored goes to the server's log.
async fn take_down(node: &Node, entry: &Value) {
    let entry = entry.to_string();
    if let Err(error) = append(node, entry.as_bytes()).await {
        tracing::error!("the audit log could not take down {entry}: {error}");
    }
}

/// A target as it stands in an entry: cut, and what would steer a terminal or begin another line escaped. Who
/// is refused has chosen its name freely.
fn target(given: &str) -> String {
    let given = given.chars().take(TARGET_CHARS_MAX);
    let escaped = given.flat_map(|c| match c.is_control() {
        true => c.escape_default().collect::<Vec<char>>(),
        false => vec![c],
    });
    escaped.take(TARGET_CHARS_MAX).collect()
}

async fn append(node: &Node, entry: &[u8]) -> Result<(), Error> {
    if node.queue(NamespaceId::SYS, QUEUE).await.is_err() {
        let patch = QueuePatch {
            // Nobody takes entries out of it.
            paused: Some(true),
            on_expire: Some(OnExpire::Drop),
            max_messages: Some(ENTRIES_MAX),
            ..QueuePatch::default()
        };
        node.queue_set(NamespaceId::SYS, QUEUE, patch, true).await?;
    }
    let options = SendOptions { expires: Expires::AfterMs(KEPT_MS), ..SendOptions::default() };
    let item = SendItem {
        payload: entry,
        content_type: "application/json",
        options: Some(&options),
        ..SendItem::default()
    };
    let (idempotency_key, items) = (&b""[..], &[item]);
    let send = Send { namespace: NamespaceId::SYS, queue: QUEUE, idempotency_key, request_digest: 0, items };
    let mut retries = 0..RETRIES;
    loop {
        match node.send(&send).await {
            Err(Error::QueueFull { held, .. }) if retries.next().is_some() => drop_oldest(node, held).await?,
            Err(Error::Overloaded { retry_after_ms, .. }) if retries.next().is_some() => {
                sleep(Duration::from_millis(retry_after_ms.min(RETRY_PAUSE_MS))).await;
            }
            sent => return sent.map(drop),
        }
    }
}

/// Makes room where so many are held.
async fn drop_oldest(node: &Node, held: u64) -> Result<(), Error> {
    let most = (held / 100).clamp(1, DROPPED_MAX) as usize;
    let page = node.messages(NamespaceId::SYS, QUEUE, None, None, most, false).await?;
    let items: Vec<_> = page.items.iter().map(|stored| (stored.view.id, 0)).collect();
    let action = ChangeAction::Cancel;
    // One that is gone already has made room as well.
    node.change(&Change { namespace: NamespaceId::SYS, items: &items, action, by: "", why: "" })
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_one_line_and_short() {
        assert_eq!(target("/v1/queues/zwölf/purge"), "/v1/queues/zwölf/purge");
        assert_eq!(target("x  403\n2026-11-21 \u{1b}[8m"), "x  403\\n2026-11-21 \\u{1b}[8m");
        assert_eq!(target(&"\n".repeat(1_000)).len(), TARGET_CHARS_MAX);
    }
}
