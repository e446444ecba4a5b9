//! Check of encrypted writes: within a file no two different contents are sealed with the same nonce,
//! whatever fails and is repeated.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::names::Inode;

/// Layout of a batch's header, as in `journal/src/log/header.rs`.
const MAGIC: &[u8] = b"SLB1";
const HEADER: usize = 112;
const LEN: usize = 80;
const CIPHER: usize = 96;
const NONCE: usize = 104;

/// Number of bytes sealed with one nonce; length of their authentication tag.
const CHUNK: u64 = 8 << 10;
const TAG: u64 = 16;

/// Contents sealed with each nonce of each file.
#[derive(Debug, Default)]
pub(super) struct Nonces(HashMap<(Inode, u64), u64>);

impl Nonces {
    /// Panics when a nonce is reused, which ends a run like every broken rule.
    pub(super) fn watch(&mut self, inode: Inode, mut bytes: &[u8]) {
        while bytes.len() >= HEADER && bytes.starts_with(MAGIC) && number(bytes, CIPHER, 2) == 1 {
            let (len, first) = (number(bytes, LEN, 4), number(bytes, NONCE, 8));
            let chunks = len.div_ceil(CHUNK).max(1);
            let end = HEADER + (chunks * TAG + len) as usize;
            let Some(batch) = bytes.get(..end) else { return };
            let mut hasher = DefaultHasher::new();
            batch.hash(&mut hasher);
            for nonce in first..first + chunks {
                let before = *self.0.entry((inode, nonce)).or_insert(hasher.finish());
                assert_eq!(before, hasher.finish(), "nonce {nonce} is used twice");
            }
            bytes = &bytes[end..];
        }
    }
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
