//! The task of one bulk, which brings what its steps ask for to the shard.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::id::MessageId;
use tokio::time::Instant;

use super::steps::{Heard, Next, Steps};
use super::{Bulk, BulkRequest};
use crate::blobs;
use crate::handle::Node;
use crate::shard::request::Answer;

/// Goes through the queue to the end.
pub(super) async fn run(node: Node, shard: u32, bulk: Arc<Bulk>, mut steps: Steps) {
    let began = Instant::now();
    let mut heard = Heard::Time;
    loop {
        if bulk.cancelled.load(Ordering::Relaxed) {
            steps.cancel();
        }
        let next = steps.step(began.elapsed().as_micros() as u64, heard);
        bulk.view().clone_from(steps.view());
        heard = match next {
            Next::Look(page) => {
                Heard::Seen(node.look(shard, move |at| page.see(at)).await.and_then(|seen| seen))
            }
            Next::Read(reads) => Heard::Read(blobs::load(reads).await),
            Next::Change(items) => Heard::Changed(change(&node, shard, &steps.view().request, &items).await),
            Next::Rest { until_us } => {
                tokio::time::sleep_until(began + Duration::from_micros(until_us)).await;
                Heard::Time
            }
            Next::End => break,
        };
    }
    bulk.ended.send_replace(Some(std::time::Instant::now()));
}

async fn change(
    node: &Node,
    shard: u32,
    request: &BulkRequest,
    items: &[(MessageId, u64)],
) -> Result<Answer, Error> {
    let answer = request.with_change(items, |command| node.begin_proposal(shard, command))?;
    answer.await.map_err(|_| Error::OutcomeUnknown {})
}
