//! Random frames of a client, for sessions that go wrong in all ways.

use sluice_http2::frame::{FrameHeader, kind};
use sluice_http2::hpack::Encoder;

/// Random numbers, the same each time for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// One of them.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A frame that is mostly right by itself, and in a session that is mostly alive.
pub(crate) fn frame(random: &mut Random, encoder: &mut Encoder, next_stream: &mut u32) -> Vec<u8> {
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
                head(random, encoder, &mut payload);
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

/// Of the service of the tests.
const PATHS: [&str; 12] = [
    "/",
    "/echo",
    "/upload",
    "/sip",
    "/size/3",
    "/size/100000",
    "/pieces/3",
    "/trailers",
    "/status/204",
    "/fields/20",
    "/fails",
    "/nowhere",
];

fn head(random: &mut Random, encoder: &mut Encoder, out: &mut Vec<u8>) {
    let mut fields = vec![
        (":method", random.pick(&["GET", "GET", "POST", "HEAD"])),
        (":scheme", "http"),
        (":path", random.pick(&PATHS)),
        ("host", "a"),
    ];
    match random.below(10) {
        0 => {
            fields[0].1 = "CONNECT";
            fields.insert(1, (":protocol", "websocket"));
        }
        1 => fields.push(("expect", "100-continue")),
        2 => fields.push(("content-length", "100")),
        _ => {}
    }
    encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), out);
}
