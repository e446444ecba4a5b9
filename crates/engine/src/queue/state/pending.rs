//! State of pending sends: messages that follow from the end of another one.

use crate::id::{BlobRef, MessageId, NamespaceId};
use crate::queue::state::PendingSlot;
use crate::queue::state::chain::Chain;
use crate::queue::state::origin::Origin;
use crate::store::slab::{PlainItem, Slab};
use crate::wire::{Put, Reader};

/// The kind of a pending send.
#[derive(Clone, Debug)]
pub(crate) enum PendingKind {
    /// The result of a message, to a queue by name.
    Reply(Box<str>),
    /// The step for the failure of a message, among all that it carried.
    Failure(Chain, Origin),
    /// Nothing: it was sent before its turn.
    Sent,
}

/// One message that is yet to be sent, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct PendingSend {
    /// The message that it follows, which may be gone.
    pub(crate) follows: MessageId,
    /// Number of that message's queue.
    pub(crate) from: u32,
    pub(crate) correlation_id: Box<[u8]>,
    /// The payload, unless the step has one of its own; held by the pending send.
    pub(crate) blob: BlobRef,
    pub(crate) kind: PendingKind,
    next_vacant: Option<PendingSlot>,
}

/// All that are yet to be sent.
pub(crate) type PendingSends = Slab<PendingSend, 64>;

impl PendingSend {
    pub(crate) fn new(
        follows: MessageId,
        from: u32,
        correlation_id: &[u8],
        blob: BlobRef,
        kind: PendingKind,
    ) -> PendingSend {
        PendingSend { follows, from, correlation_id: correlation_id.into(), blob, kind, next_vacant: None }
    }

    /// A pending send that was sent before its turn, and is still listed.
    pub(crate) fn sent() -> PendingSend {
        let nobody = MessageId { namespace: NamespaceId(0), sequence: 0 };
        PendingSend::new(nobody, 0, &[], BlobRef::EMPTY, PendingKind::Sent)
    }

    /// Blobs that it holds.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let of_chain = match &self.kind {
            PendingKind::Reply(_) | PendingKind::Sent => None,
            PendingKind::Failure(chain, _) => Some(chain.blobs()),
        };
        std::iter::once(self.blob).chain(of_chain.into_iter().flatten())
    }
}

impl PlainItem for PendingSend {
    const BLOCK: usize = 16;

    fn vacant(next: PendingSlot) -> Self {
        PendingSend { next_vacant: Some(next), ..PendingSend::sent() }
    }

    fn next_vacant(&self) -> Option<PendingSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u32(self.follows.namespace.0);
        out.u64(self.follows.sequence);
        out.u32(self.from);
        out.bytes16(&self.correlation_id);
        out.blob(self.blob);
        match &self.kind {
            PendingKind::Reply(to) => {
                out.u8(0);
                out.name(to);
            }
            PendingKind::Failure(chain, origin) => {
                out.u8(1);
                chain.write_used(out);
                origin.write_used(out);
            }
            PendingKind::Sent => out.u8(2),
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let follows = MessageId { namespace: NamespaceId(reader.u32()?), sequence: reader.u64()? };
        let from = reader.u32()?;
        let correlation_id = reader.bytes16()?;
        let blob = reader.blob()?;
        let kind = match reader.u8()? {
            0 => PendingKind::Reply(reader.name()?.into()),
            1 => PendingKind::Failure(Chain::read_used(reader)?, Origin::read_used(reader)?),
            2 => PendingKind::Sent,
            _ => return None,
        };
        Some(PendingSend::new(follows, from, correlation_id, blob, kind))
    }
}
