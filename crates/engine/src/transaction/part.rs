//! The commands that a transaction can have.

use crate::command::{
    AttachmentCommit, AttachmentDelete, Command, DocumentCheck, DocumentDelete, DocumentPut, LockAcquire,
    Send, SettleItem,
};
use crate::id::NamespaceId;
use crate::locks::LockToken;
use crate::transaction::kind;

/// A command as an operation of a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Part<'c, 'a> {
    /// One message.
    Send(&'c Send<'a>),
    /// One settlement.
    Settle(NamespaceId, &'c SettleItem<'a>),
    /// A write of a document.
    Put(&'c DocumentPut<'a>),
    /// A deletion of a document.
    Delete(&'c DocumentDelete<'a>),
    /// A condition on a document.
    Check(&'c DocumentCheck<'a>),
    /// An upload that becomes an attachment.
    Attach(&'c AttachmentCommit<'a>),
    /// A deletion of an attachment.
    Detach(&'c AttachmentDelete<'a>),
    /// A claim that does not wait.
    Acquire(&'c LockAcquire<'a>),
    /// A release of a grant.
    Release(NamespaceId, LockToken),
}

impl Command<'_> {
    /// The name that it has as an operation of a transaction; `None`: no transaction can have it.
    pub fn operation_name(&self) -> Option<&'static str> {
        Part::of(self).map(|part| part.kind())
    }
}

impl<'c, 'a> Part<'c, 'a> {
    /// The command as an operation; `None`: no transaction can have it.
    pub(crate) fn of(command: &'c Command<'a>) -> Option<Part<'c, 'a>> {
        if let Command::Settle { namespace, items: [item] } = command {
            return Some(Part::Settle(*namespace, item));
        }
        if let Command::DocumentPut(put) = command {
            return Some(Part::Put(put));
        }
        if let Command::DocumentDelete(delete) = command {
            return Some(Part::Delete(delete));
        }
        if let Command::DocumentCheck(check) = command {
            return Some(Part::Check(check));
        }
        if let Command::AttachmentCommit(commit) = command {
            return Some(Part::Attach(commit));
        }
        if let Command::AttachmentDelete(delete) = command {
            return Some(Part::Detach(delete));
        }
        if let Command::LockAcquire(acquire) = command {
            return Some(Part::Acquire(acquire));
        }
        if let Command::LockRelease { namespace, token } = command {
            return Some(Part::Release(*namespace, *token));
        }
        command.as_send().filter(|send| send.items.len() == 1).map(Part::Send)
    }

    /// Its name, as requests and errors have it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Part::Send(_) => kind::SEND,
            Part::Settle(..) => kind::SETTLE,
            Part::Put(_) => kind::PUT,
            Part::Delete(_) => kind::DELETE,
            Part::Check(_) => kind::CHECK,
            Part::Attach(_) => kind::ATTACH,
            Part::Detach(_) => kind::DETACH,
            Part::Acquire(_) => kind::ACQUIRE,
            Part::Release(..) => kind::RELEASE,
        }
    }

    /// The namespace of what it is about.
    pub(crate) fn namespace(&self) -> NamespaceId {
        match self {
            Part::Send(send) => send.namespace,
            Part::Settle(namespace, _) | Part::Release(namespace, _) => *namespace,
            Part::Put(put) => put.namespace,
            Part::Delete(delete) => delete.namespace,
            Part::Check(check) => check.namespace,
            Part::Attach(commit) => commit.namespace,
            Part::Detach(delete) => delete.namespace,
            Part::Acquire(acquire) => acquire.namespace,
        }
    }
}
