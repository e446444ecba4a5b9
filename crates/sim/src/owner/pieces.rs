//! Pieces of a snapshot: which blobs are live.

use std::collections::BTreeMap;

use sluice_journal::BlobKey;

/// A piece of a snapshot: a live blob's key and length.
pub(super) fn write_piece(key: BlobKey, len: u32) -> Vec<u8> {
    [&key.index.to_le_bytes()[..], &key.item.to_le_bytes(), &len.to_le_bytes()].concat()
}

/// All pieces of the state with these live blobs.
pub(super) fn write_state(live: &BTreeMap<BlobKey, Vec<u8>>) -> Vec<u8> {
    live.iter().flat_map(|(key, blob)| write_piece(*key, blob.len() as u32)).collect()
}

/// Reads the pieces of a snapshot, which may be cut at other places than they were made.
pub(super) fn read_pieces(bytes: &[u8]) -> BTreeMap<BlobKey, u32> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let piece = |piece: &[u8]| {
        let key = BlobKey { index: number(&piece[..8]), item: number(&piece[8..12]) as u32 };
        (key, number(&piece[12..]) as u32)
    };
    bytes.chunks_exact(16).map(piece).collect()
}
