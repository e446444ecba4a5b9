//! Claims to locks.

use std::time::Duration;

use sluice_engine::command::{Command, LockAcquire};
use sluice_engine::limits::LOCK_WAIT_MS_MAX;
use sluice_engine::locks::LockGrant;
use sluice_engine::{Error, NamespaceId};
use sluice_journal::{Batch, Class};
use sluice_record::record_of;
use tokio::sync::oneshot;

use super::proposal::class_of;
use super::read::FoundDocument;

/// A grant that its caller is given.
#[derive(Debug)]
pub struct Granted {
    /// The grant.
    pub grant: LockGrant,
    /// The document of the first key, if it was asked for and there is one.
    pub document: Option<Box<FoundDocument>>,
}

/// A claim that is to be made, and its caller.
#[derive(Debug)]
pub struct Acquiring {
    /// Number by which the caller can cancel it.
    pub ticket: u64,
    /// Exactly one record.
    pub record: Batch,
    /// Class, by which a full disk refuses it.
    pub class: Class,
    /// Namespace of the keys.
    pub namespace: NamespaceId,
    /// The first of the keys.
    pub key: Box<str>,
    /// True: the caller wants the document of that key with its grant.
    pub with_document: bool,
    /// Time for which the locks are held without renewal, in milliseconds.
    pub ttl_ms: u32,
    /// Time for which the caller waits, in microseconds.
    pub wait_us: u64,
    /// Destination of the answer.
    pub reply: oneshot::Sender<Result<Granted, Error>>,
}

impl Acquiring {
    /// The claim as a record. It waits in the state for a part of `wait` at a time, while the caller is
    /// there.
    pub fn new(
        ticket: u64,
        acquire: LockAcquire<'_>,
        wait: Duration,
        reply: oneshot::Sender<Result<Granted, Error>>,
    ) -> Acquiring {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).min(LOCK_WAIT_MS_MAX);
        let command = Command::LockAcquire(LockAcquire { wait_ms, ..acquire });
        Acquiring {
            ticket,
            record: record_of(&command),
            class: class_of(&command),
            namespace: acquire.namespace,
            key: acquire.keys.first().copied().unwrap_or_default().into(),
            with_document: false,
            ttl_ms: acquire.ttl_ms,
            wait_us: u64::try_from(wait.as_micros()).unwrap_or(u64::MAX),
            reply,
        }
    }

    /// Answers that nothing was done, or that this is not known.
    pub(in crate::shard) fn refuse(self, why: &Error) {
        let _ = self.reply.send(Err(why.clone()));
    }
}
