//! SHA-256 (FIPS 180-4) in steps between which its state is kept: an upload goes on after a restart, or on
//! another node, without a second look at the bytes before.

use sha2::compress256;
use sha2::digest::generic_array::GenericArray;

const BLOCK_BYTES: usize = 64;
/// Number of the blocks that are compressed at a time.
const BLOCKS: usize = 32;
const WORDS: usize = 8;
/// The initial hash value, FIPS 180-4 §5.3.3.
const INITIAL: [u32; WORDS] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The state after some bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sha256 {
    words: [u32; WORDS],
    /// Bytes that fill no block yet.
    rest: Vec<u8>,
    /// Number of all bytes.
    bytes: u64,
}

impl Sha256 {
    /// The state after `bytes` bytes, as [`Sha256::state`] gave it; `None`: it is none. The empty state is
    /// that of no bytes.
    pub(crate) fn resume(state: &[u8], bytes: u64) -> Option<Sha256> {
        if state.is_empty() {
            return (bytes == 0).then_some(Sha256 { words: INITIAL, rest: Vec::new(), bytes });
        }
        let (words, rest) = state.split_at_checked(4 * WORDS)?;
        let word = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).unwrap_or_default();
        let mut resumed = Sha256 { words: [0; WORDS], rest: rest.to_vec(), bytes };
        resumed.words.iter_mut().zip(words.chunks_exact(4)).for_each(|(into, from)| *into = word(from));
        (rest.len() as u64 == bytes % BLOCK_BYTES as u64).then_some(resumed)
    }

    /// The state as bytes.
    pub(crate) fn state(&self) -> Vec<u8> {
        let words = self.words.iter().flat_map(|word| word.to_be_bytes());
        words.chain(self.rest.iter().copied()).collect()
    }

    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            let missing = (BLOCK_BYTES - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.rest.len() < BLOCK_BYTES {
                return;
            }
            let rest = std::mem::take(&mut self.rest);
            self.compress(&rest);
        }
        let (blocks, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
        self.compress(blocks);
        self.rest.extend_from_slice(rest);
    }

    fn compress(&mut self, blocks: &[u8]) {
        let mut several = [GenericArray::default(); BLOCKS];
        for bytes in blocks.chunks(BLOCKS * BLOCK_BYTES) {
            let blocks = bytes.chunks_exact(BLOCK_BYTES);
            let count = blocks.len();
            several.iter_mut().zip(blocks).for_each(|(into, block)| into.copy_from_slice(block));
            compress256(&mut self.words, &several[..count]);
        }
    }

    /// The digest of all bytes.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut whole = self.clone();
        let mut end = self.rest.clone();
        end.push(0x80);
        let zeros = (2 * BLOCK_BYTES - 8 - end.len()) % BLOCK_BYTES;
        end.extend(std::iter::repeat_n(0, zeros));
        end.extend_from_slice(&(self.bytes * 8).to_be_bytes());
        whole.compress(&end);
        let mut digest = [0; 32];
        let words = digest.chunks_exact_mut(4).zip(whole.words);
        words.for_each(|(into, word)| into.copy_from_slice(&word.to_be_bytes()));
        digest
    }
}

#[cfg(test)]
mod tests {
    use ring::digest::{SHA256, digest};
    use sluice_engine::attachments::SHA256_OF_NOTHING;
    use sluice_engine::limits::UPLOAD_HASH_BYTES_MAX;

    use super::*;

    #[test]
    fn the_digest_in_steps_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..5_000_u32).map(|number| (number * number) as u8).collect();
        for step in [1, 7, 55, 56, 63, 64, 65, 128, 1_000, 2_047, 2_048, 2_112, 5_000] {
            let (mut state, mut until) = (Vec::new(), 0);
            for piece in bytes.chunks(step) {
                let mut hash = Sha256::resume(&state, until as u64).unwrap();
                hash.update(piece);
                until += piece.len();
                assert_eq!(hash.digest(), digest(&SHA256, &bytes[..until]).as_ref(), "{until} in {step}");
                state = hash.state();
                assert!(state.len() <= UPLOAD_HASH_BYTES_MAX);
            }
        }
        assert_eq!(Sha256::resume(&[], 0).unwrap().digest(), SHA256_OF_NOTHING);
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for (state, bytes) in [(&[][..], 1), (&[0; 31], 0), (&[0; 33], 64), (&[0; 32], 1)] {
            assert_eq!(Sha256::resume(state, bytes), None);
        }
    }
}
