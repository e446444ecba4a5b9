//! Requests to attach consumers.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::{Attach, Command};
use sluice_engine::id::{ConsumerId, NamespaceId};
use sluice_journal::Batch;
use tokio::sync::oneshot;

use super::proposal::write_record;
use crate::shard::channel::Channel;

/// A consumer to be attached.
#[derive(Debug)]
pub struct Attaching {
    /// The encoded command.
    pub(in crate::shard) record: Batch,
    pub(in crate::shard) namespace: NamespaceId,
    pub(in crate::shard) grace_ms: u64,
    /// Channel for its messages.
    pub(in crate::shard) channel: Arc<Channel>,
    /// Gets the consumer's number, or the error.
    pub(in crate::shard) reply: oneshot::Sender<Result<ConsumerId, Error>>,
}

impl Attaching {
    /// `grace_ms`: time for which its receipts stay valid after the server begins to stop, in milliseconds.
    pub fn new(
        attach: &Attach<'_>,
        grace_ms: u64,
        channel: Arc<Channel>,
        reply: oneshot::Sender<Result<ConsumerId, Error>>,
    ) -> Attaching {
        let mut record = Batch::with_capacity(0);
        write_record(&mut record, &Command::Attach(*attach));
        Attaching { record, namespace: attach.namespace, grace_ms, channel, reply }
    }

    /// Estimate of its memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.record.bytes()
    }

    /// Answers that it is not attached, with this error.
    pub(crate) fn refuse(self, why: &Error) {
        let _ = self.reply.send(Err(why.clone()));
    }
}
