//! Random lists against another implementation, in both directions, and random octets.

use super::super::{DecodeError, Encoded, Encoder, HeaderArena};
use super::{Fields, decode, decoder, listed, slices};

/// xorshift64*: the same lists in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn text(&mut self, len_max: usize) -> Vec<u8> {
        let len = self.below(len_max + 1);
        let (from, to) = [(b'a', b'z'), (b' ', b'~'), (0, 255)][self.below(3)];
        (0..len).map(|_| from + self.below(usize::from(to - from) + 1) as u8).collect()
    }

    /// Fields of every kind, of which many come again.
    fn list(&mut self) -> Fields {
        const NAMES: [&str; 12] = [
            ":status",
            ":path",
            ":method",
            "content-type",
            "content-length",
            "date",
            "cookie",
            "authorization",
            "accept-encoding",
            "x-request-id",
            "x-served-by",
            "sluice-id",
        ];
        const VALUES: [&str; 6] = ["200", "/", "GET", "application/json", "gzip, deflate", ""];
        let field = |chance: &mut Chance| {
            let name = match chance.below(8) {
                0 => [&b"x"[..], &chance.text(20)].concat(),
                _ => NAMES[chance.below(NAMES.len())].as_bytes().to_vec(),
            };
            let value = match chance.below(4) {
                0 => chance.text(40),
                1 if chance.below(10) == 0 => chance.text(3_000),
                1 => format!("value-{}", chance.below(30)).into_bytes(),
                _ => VALUES[chance.below(VALUES.len())].as_bytes().to_vec(),
            };
            (name, value)
        };
        (0..1 + self.below(12)).map(|_| field(self)).collect()
    }
}

/// This decoder and another implementation decode the encoder's output to the same fields, with changing
/// table sizes and precomputed sets in between.
#[test]
fn what_we_encode_is_what_everybody_decodes() {
    for seed in 1..=15 {
        let (mut chance, mut encoder, mut ours) = (Chance(seed), Encoder::new(), decoder());
        let mut other = fluke_hpack::Decoder::new();
        let sets = [(); 6].map(|()| chance.list());
        let encoded = sets.each_ref().map(|list| Encoded::new(slices(list)));
        for _ in 0..100 {
            if chance.below(20) == 0 {
                encoder.set_max_table_size(chance.below(6_000) as u32);
            }
            let mut list = chance.list();
            let mut block = Vec::new();
            encoder.encode(slices(&list), &mut block);
            for _ in 0..chance.below(3) {
                // Mostly the same.
                let set = chance.below(6).min(chance.below(6));
                encoder.append_set(&encoded[set], &mut block);
                list.extend(sets[set].iter().cloned());
            }
            assert_eq!(decode(&mut ours, &block).as_ref(), Ok(&list), "seed {seed}");
            assert_eq!(other.decode(&block).expect("a block"), list, "seed {seed}");
            assert_eq!(ours.table_size_bytes(), encoder.table_size_bytes(), "seed {seed}");
        }
    }
}

#[test]
fn what_another_encodes_we_decode() {
    for seed in 1..=15 {
        let (mut chance, mut ours) = (Chance(seed), decoder());
        let mut other = fluke_hpack::Encoder::new();
        for _ in 0..100 {
            let list = chance.list();
            let block = other.encode(slices(&list));
            assert_eq!(decode(&mut ours, &block), Ok(list), "seed {seed}");
        }
    }
}

/// Damaged blocks end in an error or in another list, within the limits, and the arena is whole.
#[test]
fn damaged_blocks() {
    let mut arena = HeaderArena::new();
    for seed in 1..=200 {
        let (mut chance, mut encoder, mut ours) = (Chance(seed), Encoder::new(), decoder());
        for _ in 0..20 {
            let mut block = Vec::new();
            encoder.encode(slices(&chance.list()), &mut block);
            for _ in 0..chance.below(3).min(block.len()) {
                let at = chance.below(block.len());
                block[at] = chance.below(256) as u8;
            }
            let result = ours.decode(&block, &mut arena);
            let bytes: usize = listed(&arena).iter().map(|(name, value)| name.len() + value.len() + 32).sum();
            assert!(bytes <= super::LIST_BYTES_MAX as usize);
            if matches!(result, Err(DecodeError::Compression(_))) {
                break;
            }
        }
    }
}
