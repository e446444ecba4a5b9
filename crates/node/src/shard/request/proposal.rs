//! Records proposed by callers.

use bytes::Bytes;
use sluice_engine::change::ChangeAction;
use sluice_engine::command::Command;
use sluice_engine::settings::QueuePatch;
use sluice_journal::{Batch, Class};
use sluice_record::{ITEM_BYTES, record_of};
use tokio::sync::oneshot;

use super::answer::{Answer, Completion};
use crate::mailbox::Mailbox;

/// A record, encoded by its caller.
#[derive(Debug)]
pub struct Proposal {
    /// Exactly one record.
    pub record: Batch,
    /// Class, by which a full disk refuses it.
    pub class: Class,
    /// Destination of the answer.
    pub reply: ReplyTo,
    /// True when it may remove queues on which receives wait.
    pub removes_queues: bool,
    /// True when it ends or keeps work that others have begun: accepted while new work is refused.
    pub relieves: bool,
}

impl Proposal {
    /// Encodes a command on the caller's thread.
    pub fn new(command: &Command<'_>, reply: ReplyTo) -> Proposal {
        let record = record_of(command);
        // A queue that was made for messages which are not sent is deleted with them.
        let finishes = matches!(command, Command::TransactionFinish { .. } | Command::TransactionAsk { .. });
        let removes_queues =
            finishes || matches!(command, Command::QueueDelete { .. } | Command::NamespaceDelete { .. });
        let relieves = finishes
            || matches!(
                command,
                Command::Settle { .. }
                    | Command::Extend { .. }
                    | Command::Resume { .. }
                    | Command::Detach { .. }
                    | Command::LockRenew { .. }
                    | Command::LockRelease { .. }
            )
            || matches!(command, Command::Transaction(whole) if whole.operations.iter().any(relieves));
        Proposal { record, class: class_of(command), reply, removes_queues, relieves }
    }

    /// A record of a transaction over several namespaces that was encoded before.
    pub(crate) fn of_record(body: &[u8], blobs: &[Bytes], class: Class, reply: ReplyTo) -> Proposal {
        let bytes = blobs.iter().map(Bytes::len).sum::<usize>();
        let mut record = Batch::with_capacity(body.len() + bytes + ITEM_BYTES * (1 + blobs.len()));
        let mut writer = record.record(blobs.len() as u32);
        writer.body(body);
        blobs.iter().for_each(|blob| writer.blob(&[blob]));
        drop(writer);
        let finishes = class == Class::Draining;
        Proposal { record, class, reply, removes_queues: finishes, relieves: finishes }
    }

    /// Class of a command.
    pub(crate) fn class_of(command: &Command<'_>) -> Class {
        class_of(command)
    }
}

/// True for an operation of a transaction that ends work that others have begun.
fn relieves(operation: &Command<'_>) -> bool {
    matches!(operation, Command::Settle { .. } | Command::LockRelease { .. })
}

/// Class of a command. Settling without texts and results frees space, so that the reserve serves it on a
/// full disk, where texts are left out (`leading/proposals.rs`); pausing or closing a queue reduces what
/// comes.
pub(in crate::shard) fn class_of(command: &Command<'_>) -> Class {
    match command {
        Command::Settle { .. } | Command::Report { .. } if command.blob_count() == 0 => Class::Draining,
        Command::Change(change) if change.action == ChangeAction::Cancel && command.blob_count() == 0 => {
            Class::Draining
        }
        Command::QueueSet { patch, create: false, .. } if only_marks(patch) => Class::Draining,
        Command::Transaction(whole)
            if whole.operations.iter().all(|operation| class_of(operation) == Class::Draining) =>
        {
            Class::Draining
        }
        Command::Tick
        | Command::Epoch { .. }
        | Command::Raise { .. }
        | Command::ReceiptKey(_)
        | Command::Consensus { .. }
        | Command::Receive(_)
        | Command::Extend { .. }
        | Command::Attach(_)
        | Command::Credit { .. }
        | Command::Resume { .. }
        | Command::Detach { .. }
        | Command::QueuePurge { .. }
        | Command::QueueDelete { .. }
        | Command::NamespaceDelete { .. }
        | Command::DeadDelete { .. }
        | Command::ScheduleDelete { .. }
        | Command::SchedulePause { .. }
        | Command::LockRenew { .. }
        | Command::LockRelease { .. }
        | Command::LockBreak { .. }
        | Command::LockWait { .. }
        | Command::LockLeave { .. }
        | Command::DocumentDelete(_)
        | Command::IndexDelete { .. }
        | Command::UploadEnd { .. }
        | Command::AttachmentDelete(_)
        | Command::DocumentCheck(_)
        | Command::TransactionFinish { .. }
        | Command::TransactionAsk { .. }
        | Command::HoldDamaged { .. } => Class::Draining,
        _ => Class::Growing,
    }
}

/// True when the patch only pauses, resumes, closes or opens.
fn only_marks(patch: &QueuePatch) -> bool {
    *patch == QueuePatch { paused: patch.paused, closed: patch.closed, ..QueuePatch::default() }
}

/// Destination of an answer.
#[derive(Debug)]
pub enum ReplyTo {
    /// None.
    Nobody,
    /// A caller that waits.
    Once(oneshot::Sender<Answer>),
    /// A caller with a mailbox, and its number for the request.
    Mail(Mailbox<Completion>, u64),
}

impl ReplyTo {
    /// Sends the answer; a caller that has gone is ignored.
    pub fn send(self, answer: Answer) {
        match self {
            ReplyTo::Nobody => {}
            ReplyTo::Once(sender) => {
                let _ = sender.send(answer);
            }
            ReplyTo::Mail(mailbox, tag) => {
                let _ = mailbox.push(Completion::Answer(tag, answer));
            }
        }
    }
}
