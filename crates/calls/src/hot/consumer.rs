//! A consumer that is attached, and what it is given.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::id::{ConsumerId, Receipt};
use sluice_node::Event;
use sluice_telemetry::spans::Traces;

use super::traced::delivered;

/// A consumer. Dropping it detaches it.
#[derive(Debug)]
pub struct Consumer {
    of_node: sluice_node::Consumer,
    traces: Option<Arc<Traces>>,
}

impl Consumer {
    pub(super) fn new(of_node: sluice_node::Consumer, traces: Option<&Arc<Traces>>) -> Consumer {
        Consumer { of_node, traces: traces.cloned() }
    }

    /// Its number.
    pub fn id(&self) -> ConsumerId {
        self.of_node.id()
    }

    /// Takes over deliveries of a consumer that was lost. One result for each, in their order.
    ///
    /// # Errors
    /// Those of the node. A receipt that fails does not fail the others.
    pub async fn resume(&mut self, receipts: &[Receipt]) -> Result<Vec<Result<(), Error>>, Error> {
        self.of_node.resume(receipts).await
    }

    /// Waits until there is something for [`Consumer::next`] with the same bounds; tells how many bytes of
    /// payloads that will be, an empty one counted as 1.
    pub async fn ready(&self, messages: usize, bytes: u64) -> u64 {
        self.of_node.ready(messages, bytes).await
    }

    /// Waits for the next event. Messages: at most so many, and so many bytes of them, though at least one.
    /// The future may be dropped and made anew: nothing is lost.
    ///
    /// # Errors
    /// `shutting_down` or `journal_failed` when the shard has ended.
    pub async fn next(&mut self, messages: usize, bytes: u64) -> Result<Event, Error> {
        let event = self.of_node.next(messages, bytes).await;
        if let (Some(traces), Ok(Event::Delivered(messages))) = (&self.traces, &event) {
            delivered(traces, messages);
        }
        event
    }

    /// Drops it, and gives back messages that it did give out and that did not reach whoever was to work on
    /// them: all from one of them on.
    pub fn abandon(self, unsent: impl IntoIterator<Item = Receipt>) {
        self.of_node.abandon(unsent);
    }
}
