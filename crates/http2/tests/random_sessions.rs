//! Sessions of random frames, right and wrong ones: no panic, and nothing goes out that a client would refuse.

use sluice_http2::frame::{FrameHeader, kind};
use sluice_http2::fuzzing::session;
use sluice_http2::hpack::Encoder;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A frame that is mostly right by itself, and in a session that is mostly alive.
fn frame(random: &mut Random, encoder: &mut Encoder, next_stream: &mut u32) -> Vec<u8> {
    let old = 1 + 2 * random.below(u64::from(*next_stream) / 2 + 1) as u32;
    let kinds = [
        kind::HEADERS,
        kind::HEADERS,
        kind::DATA,
        kind::DATA,
        kind::WINDOW_UPDATE,
        kind::RST_STREAM,
        kind::SETTINGS,
        kind::PING,
        kind::PRIORITY_UPDATE,
        kind::CONTINUATION,
        kind::PRIORITY,
        kind::GOAWAY,
    ];
    // The last kinds, which end most sessions, are rare.
    let kinds_now = if random.below(20) == 0 { kinds.len() } else { 9 };
    let kind = kinds[random.below(kinds_now as u64) as usize];
    let mut flags = random.below(2) as u8 | 4;
    let mut stream = old;
    let mut payload = Vec::new();
    match kind {
        kind::HEADERS => {
            if random.below(4) > 0 {
                stream = *next_stream;
                *next_stream += 2;
                let path = format!("/{}", random.below(50));
                let fields: [(&[u8], &[u8]); 4] = [
                    (b":method", b"GET"),
                    (b":scheme", b"http"),
                    (b":path", path.as_bytes()),
                    (b"host", b"a"),
                ];
                encoder.encode(fields, &mut payload);
            } else {
                flags |= 1;
                encoder.encode([(&b"x"[..], &b"y"[..])], &mut payload);
            }
        }
        kind::DATA => payload.resize(random.below(150) as usize, 7),
        kind::WINDOW_UPDATE => payload.extend((random.below(100_000) as u32).to_be_bytes()),
        kind::RST_STREAM => payload.extend(8_u32.to_be_bytes()),
        kind::SETTINGS => {
            (stream, flags) = (0, 0);
            payload.extend([0, 4]);
            payload.extend((random.below(200_000) as u32).to_be_bytes());
        }
        kind::PING => {
            (stream, flags) = (0, 0);
            payload.extend(b"12345678");
        }
        kind::PRIORITY_UPDATE => {
            stream = 0;
            payload.extend((old + 2 * random.below(3) as u32).to_be_bytes());
            payload.extend(format!("u={}, i=?{}", random.below(9), random.below(3)).into_bytes());
        }
        _ => payload.resize(random.below(12) as usize, 0),
    }
    if random.below(200) == 0 && !payload.is_empty() {
        let at = random.below(payload.len() as u64) as usize;
        payload[at] ^= 1 << random.below(8);
    }
    let header = FrameHeader { length: payload.len() as u32, kind, flags, stream };
    [&header.to_bytes()[..], &payload].concat()
}

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
