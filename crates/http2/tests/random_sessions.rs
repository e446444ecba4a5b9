//! Sessions of random frames, right and wrong ones: no panic, and nothing goes out that a client would
//! refuse.

use sluice_http2::fuzzing::session;
use sluice_http2::hpack::Encoder;

#[path = "frames/mod.rs"]
mod frames;

use frames::{Random, frame};

/// A script for [`session`]: frames, cut anywhere, between steps of the server.
fn script(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let (mut encoder, mut next_stream) = (Encoder::new(), 1);
    let mut script = vec![random.below(4) as u8];
    for _ in 0..200 {
        let bytes = frame(&mut random, &mut encoder, &mut next_stream);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(1 + random.below(191) as usize));
            script.push(piece.len() as u8);
            script.extend_from_slice(piece);
            rest = after;
        }
        for _ in 0..random.below(4) {
            // Mostly answers and writes; time rarely goes on.
            let limit = if random.below(30) == 0 { 64 } else { 56 };
            script.extend([192 + random.below(limit) as u8, random.below(255) as u8]);
        }
    }
    script
}

#[test]
fn random_sessions_break_no_rule() {
    for seed in 0..2_000 {
        // A failure prints the seed: `script(seed)` is the whole session.
        let script = script(seed);
        let played = std::panic::catch_unwind(|| session(&script));
        assert!(played.is_ok(), "seed {seed}");
    }
}

#[test]
fn random_bytes_break_no_rule() {
    let mut random = Random(1);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.below(256) as u8).collect();
        session(&bytes);
    }
}

#[test]
fn seeds_of_the_fuzzer_break_no_rule() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/http2_session");
    let seeds = std::fs::read_dir(folder).expect("the corpus").map(|seed| seed.expect("a seed").path());
    let played = seeds.map(|seed| session(&std::fs::read(seed).expect("a file"))).count();
    assert!(played >= 8);
}
