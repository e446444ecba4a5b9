//! Pieces of which records are laid out: ids, receipts, lists of items with a fixed length.

use crate::id::{MessageId, NamespaceId, Receipt};
use crate::wire::Reader;

/// Bytes of a receipt: namespace, sequence, token and tag.
pub(crate) const RECEIPT_BYTES: usize = 28;
/// Bytes before the items of a record that is a list: kind, layout, namespace, number of items.
pub(crate) const LIST_HEAD_BYTES: usize = 10;

#[inline]
pub(crate) fn fixed_items<'a, const N: usize>(reader: &mut Reader<'a>) -> Option<&'a [[u8; N]]> {
    let count = reader.u32()? as usize;
    let (items, rest) = reader.raw(count.checked_mul(N)?)?.as_chunks::<N>();
    rest.is_empty().then_some(items)
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(crate) fn id_at(bytes: &[u8]) -> MessageId {
    MessageId { namespace: NamespaceId(u32_at(bytes, 0)), sequence: u64_at(bytes, 4) }
}

pub(crate) fn receipt_at(bytes: &[u8]) -> Receipt {
    Receipt { id: id_at(bytes), token: u64_at(bytes, 12), tag: u64_at(bytes, 20) }
}

pub(crate) fn list_head(first: [u8; 2], namespace: NamespaceId, count: usize) -> [u8; LIST_HEAD_BYTES] {
    let mut head = [0u8; LIST_HEAD_BYTES];
    [head[0], head[1]] = first;
    head[2..6].copy_from_slice(&namespace.0.to_le_bytes());
    head[6..].copy_from_slice(&(count as u32).to_le_bytes());
    head
}

pub(crate) fn receipt_into(bytes: &mut [u8], receipt: &Receipt) {
    bytes[..4].copy_from_slice(&receipt.id.namespace.0.to_le_bytes());
    bytes[4..12].copy_from_slice(&receipt.id.sequence.to_le_bytes());
    bytes[12..20].copy_from_slice(&receipt.token.to_le_bytes());
    bytes[20..RECEIPT_BYTES].copy_from_slice(&receipt.tag.to_le_bytes());
}
