//! Requests to attach consumers.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::{Attach, Command};
use sluice_engine::id::{ConsumerId, NamespaceId};
use sluice_journal::Batch;
use sluice_record::write_record;
use tokio::sync::oneshot;

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
    /// A request to attach this consumer; its messages go into `channel`.
    pub fn new(
        attach: &Attach<'_>,
        channel: Arc<Channel>,
        reply: oneshot::Sender<Result<ConsumerId, Error>>,
    ) -> Attaching {
        let mut record = Batch::with_capacity(0);
        write_record(&mut record, &Command::Attach(*attach));
        let (namespace, grace_ms) = (attach.namespace, attach.grace_ms);
        Attaching { record, namespace, grace_ms, channel, reply }
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
