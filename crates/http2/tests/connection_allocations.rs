//! In the steady state a request and its response take nothing from the allocator, besides the response's own bytes.

use std::sync::Arc;

use bytes::Bytes;
use sluice_alloc_count::{Counting, Mode, counts, set_mode};
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{PREFACE, flag, kind, write};
use sluice_http2::hpack::{Encoded, Encoder};
use sluice_http2::{Connection, Event, Limits};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests at once, and how often.
const AT_ONCE: u32 = 32;
const ROUNDS: u32 = 100;

/// What a client sends in one round: requests with a small body, and windows for the last round's responses.
fn round(encoder: &mut Encoder, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for stream in (0..AT_ONCE).map(|index| 1 + 2 * (number * AT_ONCE + index)) {
        let mut block = Vec::new();
        let path = format!("/v1/queues/jobs-{}/messages", stream % 10);
        let fields: [(&[u8], &[u8]); 5] = [
            (b":method", b"POST"),
            (b":scheme", b"https"),
            (b":path", path.as_bytes()),
            (b":authority", b"localhost"),
            (b"content-length", b"100"),
        ];
        encoder.encode(fields, &mut block);
        write::header(&mut bytes, block.len(), kind::HEADERS, flag::END_HEADERS, stream);
        bytes.extend_from_slice(&block);
        write::header(&mut bytes, 100, kind::DATA, flag::END_STREAM, stream);
        bytes.extend_from_slice(&[7; 100]);
    }
    write::window_update(&mut bytes, 0, AT_ONCE * 20_000);
    bytes
}

fn serve(
    connection: &mut Connection,
    mut input: &[u8],
    now_us: u64,
    constant: &Encoded,
    body: &Bytes,
) -> usize {
    let mut answered = 0;
    while let Some(event) = connection.next_event(&mut input, now_us) {
        let Event::Data { stream, data, end: true } = event else { continue };
        connection.consumed(stream, data.len());
        connection
            .respond(stream, 200, Some(constant), [(&b"content-length"[..], &b"3"[..])], false)
            .expect("open");
        connection.send_body(stream, body.clone(), true).expect("open");
        answered += 1;
    }
    loop {
        let bytes = connection.plan(now_us, usize::MAX).len();
        if bytes == 0 {
            return answered;
        }
        connection.wrote(bytes);
    }
}

#[test]
fn a_request_and_its_response_allocate_nothing() {
    let constant = Encoded::new([(&b"content-type"[..], &b"application/json"[..])]);
    for body in [3, 20_000].map(|bytes| Bytes::from(vec![7; bytes])) {
        let mut connection = Connection::new(Arc::new(Limits::default()), EmitMode::Auto, 0);
        let mut hello = PREFACE.to_vec();
        write::settings(&mut hello, &[]);
        write::window_update(&mut hello, 0, 1 << 24);
        serve(&mut connection, &hello, 0, &constant, &body);
        let mut encoder = Encoder::new();
        let rounds: Vec<_> = (0..2 * ROUNDS).map(|number| round(&mut encoder, number)).collect();
        let (first, then) = rounds.split_at(ROUNDS as usize);
        let mut serve_all = |rounds: &[Vec<u8>]| {
            rounds.iter().map(|bytes| serve(&mut connection, bytes, 1, &constant, &body)).sum::<usize>()
        };
        serve_all(first);
        set_mode(Mode::Count);
        let before = counts();
        let answered = serve_all(then);
        let taken = counts().since(&before);
        set_mode(Mode::Off);
        assert_eq!(answered, (ROUNDS * AT_ONCE) as usize);
        // A table may find out late that it wants to be larger: once, not per request.
        assert!(
            taken.allocations <= 2,
            "{} of {answered} requests of {} bytes",
            taken.allocations,
            body.len()
        );
    }
}
