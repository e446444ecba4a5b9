//! The audit log: who has done what to the server, in queue `audit` of namespace `$sys`, so that it is in the
//! journal and in every backup. An entry is kept for a year, or until newer ones need its room: the
//! newest are always there. What was refused is summed up where it is much.

use serde_json::{Value, json};
use sluice_engine::blob::MessageBlob;
use sluice_engine::{Error, NamespaceId};
use sluice_node::Node;

use super::entries::QUEUE;
use super::identity::{Caller, Proof};
use super::notes::Note;
use super::{Access, Peer};

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
    /// The change as an object, where operation and target do not tell it.
    pub details: Option<&'a Value>,
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
        let now_ms = node.clock().now_ms();
        let entry = || entry(peer, caller, act, now_ms);
        let entry = match caller {
            Caller::Anybody | Caller::Known(_) if !act.refused => Some(entry()),
            _ => self.shared.refusals.add(peer, caller, now_ms, entry),
        };
        if let Some(entry) = entry {
            self.take_down(node, entry).await;
        }
    }

    /// Records what the server has done by itself, durably. Where callers need not authenticate, nothing is
    /// recorded.
    pub(crate) async fn record_own(&self, node: &Node, operation: &str, target: &str, outcome: &str) {
        if self.asks() {
            let at_ms = node.clock().now_ms();
            let entry = json!({
                "at_ms": at_ms, "who": "server", "proof": null, "address": null, "operation": operation,
                "target": self::target(target), "outcome": outcome, "request_id": null,
            });
            self.take_down(node, entry).await;
        }
    }

    /// Takes down what was refused and not taken down one by one: when ten minutes of it are over, or `all`
    /// of it.
    pub async fn sum_up_refusals(&self, node: &Node, all: bool) {
        for entry in self.shared.refusals.take(node.clock().now_ms(), all) {
            self.take_down(node, entry).await;
        }
    }

    /// Gives all of that to the server's log, on a node that can store nothing any more for this reason.
    pub fn log_refusals(&self, reason: &str) {
        for entry in self.shared.refusals.take(self.clock().now_ms(), true) {
            log_lacking(&entry.to_string(), reason);
        }
    }

    /// Stores an entry; one that cannot be stored goes to the server's log.
    async fn take_down(&self, node: &Node, entry: Value) {
        let text = entry.to_string();
        if let Err(error) = self.note(node, &Note::Entry(entry)).await {
            log_lacking(&text, &error.to_string());
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

/// Logs an entry, as JSON, that the audit log has not got.
fn log_lacking(entry: &str, reason: &str) {
    tracing::error!(%entry, "the audit log lacks this entry: {reason}");
}

fn entry(peer: &Peer, caller: &Caller, act: Act<'_>, now_ms: u64) -> Value {
    let proof = caller.identity().map(|identity| {
        let proof = identity.proof();
        let (Proof::Certificate(number) | Proof::Token(number)) = proof;
        format!("{} {number}", proof.kind())
    });
    let mut entry = json!({
        "at_ms": now_ms,
        "who": caller.name(),
        "proof": proof,
        "address": peer.address().to_string(),
        "operation": act.operation,
        "target": target(act.target),
        "outcome": act.outcome,
        "request_id": act.request_id,
    });
    if let Some(details) = act.details {
        entry["details"] = details.clone();
    }
    entry
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
