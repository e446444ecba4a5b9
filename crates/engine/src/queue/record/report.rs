//! The layout of a report: items of a fixed length; notes and checkpoints are blobs.

use crate::blob::BlobHead;
use crate::command::{RecordSink, ReportItem};
use crate::id::{BlobRef, NamespaceId, Receipt};
use crate::layout::{LIST_HEAD_BYTES, RECEIPT_BYTES, receipt_at, receipt_into};
use crate::queue::record::cost::{with_cost, without_cost};
use crate::wire::Reader;

/// Receipt, lease, flags, percent, and the lengths of note and checkpoint; where a flag says so, a cost to
/// add is the upper part of the lease.
const ITEM_BYTES: usize = RECEIPT_BYTES + 16;
const HAS_PROGRESS: u8 = 1;
const HAS_CHECKPOINT: u8 = 2;
const HAS_COST: u8 = 4;

pub(crate) fn blob_count(items: &[ReportItem<'_>]) -> u32 {
    let of_item = |item: &ReportItem<'_>| {
        let noted = item.progress.is_some_and(|progress| !progress.note.is_empty());
        u32::from(noted) + u32::from(item.checkpoint.is_some())
    };
    items.iter().map(of_item).sum()
}

/// Writes the items and their blobs; the list's head is written.
pub(crate) fn encode_items(items: &[ReportItem<'_>], sink: &mut impl RecordSink) {
    for item in items {
        let mut fixed = [0; ITEM_BYTES];
        receipt_into(&mut fixed, &item.receipt);
        let mut lease_ms = item.lease_ms;
        if item.add_cost > 0 {
            fixed[36] |= HAS_COST;
            lease_ms = with_cost(lease_ms, item.add_cost);
        }
        fixed[28..36].copy_from_slice(&lease_ms.to_le_bytes());
        if let Some(progress) = item.progress {
            fixed[36] |= HAS_PROGRESS;
            fixed[37] = progress.percent;
            fixed[38..40].copy_from_slice(&(progress.note.len() as u16).to_le_bytes());
        }
        if let Some(checkpoint) = item.checkpoint {
            fixed[36] |= HAS_CHECKPOINT;
            let len = BlobHead::len("", &[]) + checkpoint.len();
            fixed[40..].copy_from_slice(&(len as u32).to_le_bytes());
        }
        sink.body(&fixed);
    }
    for item in items {
        if let Some(progress) = item.progress.filter(|progress| !progress.note.is_empty()) {
            sink.blob(&[progress.note.as_bytes()]);
        }
        if let Some(checkpoint) = item.checkpoint {
            BlobHead::with("", &[], &[], |head| sink.blob(&[head, checkpoint]));
        }
    }
}

/// The body of a report record without its notes. `None`: it has a checkpoint, which is not to be lost.
pub(crate) fn report_without_notes(body: &[u8]) -> Option<Vec<u8>> {
    let mut body = body.to_vec();
    let (_, items) = body.split_at_mut_checked(LIST_HEAD_BYTES)?;
    for item in items.chunks_exact_mut(ITEM_BYTES) {
        if item[36] & HAS_CHECKPOINT != 0 {
            return None;
        }
        item[38..40].fill(0);
    }
    Some(body)
}

/// Progress and checkpoints of several leases.
#[derive(Clone, Copy)]
pub(crate) struct ReportRecord<'a> {
    pub(crate) namespace: NamespaceId,
    items: &'a [[u8; ITEM_BYTES]],
}

/// One item of a report.
#[derive(Clone, Copy)]
pub(crate) struct ReportItemRecord {
    pub(crate) receipt: Receipt,
    pub(crate) lease_ms: u64,
    pub(crate) percent: Option<u8>,
    pub(crate) note: Option<BlobRef>,
    pub(crate) checkpoint: Option<BlobRef>,
    pub(crate) add_cost: u32,
}

impl ReportItemRecord {
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + use<> {
        [self.note, self.checkpoint].into_iter().flatten()
    }
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Option<ReportRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let items: &[[u8; ITEM_BYTES]] = crate::layout::fixed_items(reader)?;
    let sound =
        |item: &[u8; ITEM_BYTES]| item[36] <= HAS_PROGRESS | HAS_CHECKPOINT | HAS_COST && item[37] <= 100;
    items.iter().all(sound).then_some(ReportRecord { namespace, items })
}

impl<'a> ReportRecord<'a> {
    /// The items of the record with this index.
    pub(crate) fn items(&self, index: u64) -> impl Iterator<Item = ReportItemRecord> + use<'a> {
        let mut blobs = 0;
        let mut blob = move |len: u32| {
            let item = blobs;
            blobs += 1;
            BlobRef { index, item, len }
        };
        self.items.iter().map(move |bytes| {
            let mut reader = Reader::new(&bytes[RECEIPT_BYTES..]);
            let (mut lease_ms, mut add_cost) = (reader.u64().unwrap_or_default(), 0);
            let (flags, percent) = (reader.u8().unwrap_or_default(), reader.u8().unwrap_or_default());
            let (note_len, len) = (reader.u16().unwrap_or_default(), reader.u32().unwrap_or_default());
            let progress = flags & HAS_PROGRESS != 0;
            if flags & HAS_COST != 0 {
                (lease_ms, add_cost) = without_cost(lease_ms);
            }
            ReportItemRecord {
                receipt: receipt_at(bytes),
                lease_ms,
                percent: progress.then_some(percent),
                note: (progress && note_len > 0).then(|| blob(note_len.into())),
                checkpoint: (flags & HAS_CHECKPOINT != 0).then(|| blob(len)),
                add_cost,
            }
        })
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        self.items(index).flat_map(|item| item.blobs())
    }
}
