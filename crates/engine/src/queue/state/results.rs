//! Results of a message: reply queue, progress, checkpoint, result.

use crate::id::BlobRef;
use crate::queue::state::ResultsSlot;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Progress that the holder of a message has reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// 0 to 100.
    pub(crate) percent: u8,
    pub(crate) note: Option<BlobRef>,
    pub(crate) at_us: u64,
}

/// Results, progress and checkpoint of one message, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// Time that it is kept after its ack, in milliseconds; 0: it is not kept.
    pub(crate) ttl_ms: u64,
    pub(crate) correlation_id: Box<[u8]>,
    /// Name of the queue that gets the result; empty: none.
    pub(crate) reply_to: Box<str>,
    pub(crate) progress: Option<Progress>,
    /// The checkpoint that the next attempt gets.
    pub(crate) checkpoint: Option<BlobRef>,
    /// Result that the ack has brought.
    pub(crate) result: Option<BlobRef>,
    next_vacant: Option<ResultsSlot>,
}

/// The results of all messages that have anything of it.
pub(crate) type AllResults = Slab<Results, 1024>;

impl Results {
    /// Nothing asked for and nothing told.
    pub(crate) fn none() -> Results {
        Results { next_vacant: None, ..Results::vacant(Slot::NIL) }
    }

    /// Everything that it refers to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + use<> {
        let note = self.progress.and_then(|progress| progress.note);
        [note, self.checkpoint, self.result].into_iter().flatten()
    }

    /// Forgets how far the work has come; returns what is to be released.
    pub(crate) fn end_work(&mut self) -> impl Iterator<Item = BlobRef> + use<> {
        let note = self.progress.take().and_then(|progress| progress.note);
        [note, self.checkpoint.take()].into_iter().flatten()
    }
}

impl PlainItem for Results {
    const BLOCK: usize = 32;

    fn vacant(next: ResultsSlot) -> Self {
        Results {
            ttl_ms: 0,
            correlation_id: Box::default(),
            reply_to: Box::default(),
            progress: None,
            checkpoint: None,
            result: None,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<ResultsSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u64(self.ttl_ms);
        out.bytes16(&self.correlation_id);
        out.name(&self.reply_to);
        out.bool(self.progress.is_some());
        if let Some(progress) = &self.progress {
            out.u8(progress.percent);
            out.u64(progress.at_us);
            write_blob(out, progress.note);
        }
        write_blob(out, self.checkpoint);
        write_blob(out, self.result);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Results {
            ttl_ms: reader.u64()?,
            correlation_id: reader.bytes16()?.into(),
            reply_to: reader.name()?.into(),
            progress: if reader.bool()? { Some(read_progress(reader)?) } else { None },
            checkpoint: read_blob(reader)?,
            result: read_blob(reader)?,
            next_vacant: None,
        })
    }
}

fn read_progress(reader: &mut Reader<'_>) -> Option<Progress> {
    let (percent, at_us) = (reader.u8()?, reader.u64()?);
    Some(Progress { percent, at_us, note: read_blob(reader)? })
}

fn write_blob(out: &mut Vec<u8>, blob: Option<BlobRef>) {
    out.bool(blob.is_some());
    if let Some(blob) = blob {
        out.blob(blob);
    }
}

fn read_blob(reader: &mut Reader<'_>) -> Option<Option<BlobRef>> {
    Some(if reader.bool()? { Some(reader.blob()?) } else { None })
}
