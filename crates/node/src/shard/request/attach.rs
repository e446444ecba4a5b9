//! Consumers that are to be attached.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::{Attach, Command};
use sluice_engine::id::{ConsumerId, NamespaceId};
use sluice_journal::Batch;
use tokio::sync::oneshot;

use super::proposal::write_record;
use crate::shard::channel::Channel;

/// A consumer that is about to be attached.
#[derive(Debug)]
pub struct Attaching {
    /// The command, as a record.
    pub(in crate::shard) record: Batch,
    pub(in crate::shard) namespace: NamespaceId,
    pub(in crate::shard) grace_ms: u64,
    /// Where its messages go.
    pub(in crate::shard) channel: Arc<Channel>,
    /// Told when it is attached, or why not.
    pub(in crate::shard) reply: oneshot::Sender<Result<ConsumerId, Error>>,
}

impl Attaching {
    /// `grace_ms`: how long its receipts count on after the server has said that it is about to stop.
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

    /// What it about takes in memory while it waits.
    pub(crate) fn bytes(&self) -> usize {
        self.record.bytes()
    }

    /// It will not be attached.
    pub(crate) fn refuse(self, why: &Error) {
        let _ = self.reply.send(Err(why.clone()));
    }
}
