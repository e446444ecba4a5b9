//! Bulks through the handle, and the task of each, which brings what its steps ask for to the shard.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::id::{MessageId, NamespaceId};
use tokio::time::Instant;

use crate::blobs;
use crate::bulk::{Bulk, BulkRequest, BulkView, Next, Portions, StepInput, Steps};
use crate::handle::Node;
use crate::search::in_turn;
use crate::shard::request::{Answer, ShardView};

impl Node {
    /// Begins a bulk; it goes on whatever becomes of its caller. Only messages that are there now are
    /// changed.
    ///
    /// # Errors
    /// `queue_not_found` for the queue and the one to move to; `invalid_argument` for a filter that cannot
    /// match, or fields out of range; `overloaded` when too many run.
    pub async fn bulk_start(&self, request: BulkRequest) -> Result<BulkView, Error> {
        request.check(&self.limits())?;
        let shard = self.inner.placement.shard_of(request.namespace)?;
        let request = Arc::new(request);
        let begin = move |at: &mut ShardView<'_>| Steps::begin(at, request, Portions::default());
        let mut steps = self.look(shard, begin).await??;
        let bulk = self.inner.bulks.begin(&mut steps.view)?;
        let view = bulk.view().clone();
        tokio::spawn(run(self.clone(), shard, bulk, steps));
        Ok(view)
    }

    /// State of a bulk.
    ///
    /// # Errors
    /// `bulk_not_found` when there was none with this id, or it ended long ago or before a restart.
    pub fn bulk(&self, namespace: NamespaceId, id: u64) -> Result<BulkView, Error> {
        Ok(self.inner.bulks.find(namespace, id)?.view().clone())
    }

    /// The bulks of a namespace, oldest first.
    pub fn bulks(&self, namespace: NamespaceId) -> Vec<BulkView> {
        let all = self.inner.bulks.lock();
        let views = all.values().map(|bulk| bulk.view().clone());
        views.filter(|view| view.request.namespace == namespace).collect()
    }

    /// Ends a bulk: what it has not come to stays as it is. Waits until it has ended; one that had is left as
    /// it is.
    ///
    /// # Errors
    /// As [`Node::bulk`].
    pub async fn bulk_cancel(&self, namespace: NamespaceId, id: u64) -> Result<BulkView, Error> {
        let bulk = self.inner.bulks.find(namespace, id)?;
        bulk.cancelled.store(true, Ordering::Relaxed);
        // It cannot close while the bulk is here.
        let _ = bulk.ended.subscribe().wait_for(Option::is_some).await;
        let view = bulk.view().clone();
        Ok(view)
    }
}

/// Goes through the queue to the end.
async fn run(node: Node, shard: u32, bulk: Arc<Bulk>, mut steps: Steps) {
    let began = Instant::now();
    let mut heard = StepInput::Time;
    loop {
        if bulk.cancelled.load(Ordering::Relaxed) {
            steps.cancel();
        }
        let now_us = began.elapsed().as_micros() as u64;
        let stepped = in_turn(heard.bytes(), move || {
            let next = steps.step(now_us, heard);
            (steps, next)
        });
        let next;
        (steps, next) = match stepped.await {
            Ok(stepped) => stepped,
            Err(error) => {
                bulk.fail(error, node.clock().now_ms() * 1_000);
                break;
            }
        };
        bulk.view().clone_from(steps.view());
        heard = match next {
            Next::Look(page) => {
                StepInput::Seen(node.look(shard, move |at| page.see(at)).await.and_then(|seen| seen))
            }
            Next::Read(reads) => StepInput::Read(blobs::load(reads).await),
            Next::Change(items) => {
                StepInput::Changed(change(&node, shard, &steps.view().request, &items).await)
            }
            Next::Rest { until_us } => {
                tokio::time::sleep_until(began + Duration::from_micros(until_us)).await;
                StepInput::Time
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
