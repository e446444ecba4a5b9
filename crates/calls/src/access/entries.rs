//! The queue `audit` of namespace `$sys`, whose messages are the entries of the audit log.

use std::time::Duration;

use sluice_engine::change::{Change, ChangeAction};
use sluice_engine::command::{Send, SendItem};
use sluice_engine::item::{Expires, SendOptions};
use sluice_engine::settings::{OnExpire, QueuePatch};
use sluice_engine::{Error, NamespaceId};
use sluice_node::Node;
use tokio::time::sleep;

/// Name of the queue.
pub(super) const QUEUE: &str = "audit";
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

/// Appends an entry on the node that leads shard 0, once for each key that is not empty.
pub(super) async fn append(node: &Node, entry: &[u8], idempotency_key: &[u8]) -> Result<(), Error> {
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
    let items = &[item];
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
