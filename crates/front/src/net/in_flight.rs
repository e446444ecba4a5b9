//! A request in flight: from its head until the last byte of its answer has left our memory.

use std::sync::Arc;

use sluice_calls::operation::{Operation, Trait};
use sluice_engine::Error;

use super::activity::Activity;
use super::context::Context;
use super::memory::answers::Share;

/// Counts as one request, of the server and of its connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    context: Arc<Context>,
    activity: Arc<Activity>,
    /// Requests in flight when this one came, itself included.
    pub(crate) rank: usize,
    /// Memory for its answer.
    pub(crate) share: Arc<Share>,
}

impl InFlight {
    pub(crate) fn enter(context: &Arc<Context>, activity: &Arc<Activity>) -> Arc<InFlight> {
        let rank = context.request_began();
        activity.request_began();
        Arc::new(InFlight {
            rank,
            share: Arc::new(Share::new(&context.answers, &activity.answers)),
            context: Arc::clone(context),
            activity: Arc::clone(activity),
        })
    }

    /// Sets aside the memory of an answer of so many bytes that only shows something: several calls may have
    /// begun while there was room for one.
    ///
    /// # Errors
    /// `overloaded`, when there is no memory for it.
    pub(crate) fn reserve(&self, operation: Operation, bytes: usize) -> Result<(), Error> {
        if operation.is(Trait::Long) && operation.only_looks() {
            self.share.reserve_made(bytes)?;
        }
        Ok(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.context.request_ended();
        self.activity.request_ended();
    }
}
