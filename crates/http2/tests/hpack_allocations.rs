//! In the steady state decoding a request and encoding its response take nothing from the allocator.

use sluice_alloc_count::{Counting, Mode, counts, set_mode};
use sluice_http2::hpack::{Decoder, Encoded, Encoder, HeaderArena};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REQUESTS: u64 = 1_000;

fn request<'a>(path: &'a str, id: &'a str) -> [(&'a [u8], &'a [u8]); 6] {
    [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":path", path.as_bytes()),
        (b":authority", b"localhost:7070"),
        (b"content-type", b"application/json"),
        (b"x-request-id", id.as_bytes()),
    ]
}

#[test]
fn a_request_and_its_response_allocate_nothing() {
    let mut client = Encoder::new();
    let blocks: Vec<Vec<u8>> = (0..2 * REQUESTS)
        .map(|number| {
            let (path, id) = (format!("/v1/queues/jobs-{}/messages", number % 7), format!("{number:08}"));
            let mut block = Vec::new();
            client.encode(request(&path, &id), &mut block);
            block
        })
        .collect();
    let (mut decoder, mut arena) = (Decoder::new(4_096, 16 << 10), HeaderArena::new());
    let (mut encoder, mut out) = (Encoder::new(), Vec::with_capacity(4_096));
    let constant = Encoded::new([(&b":status"[..], &b"200"[..]), (b"content-type", b"application/json")]);
    let mut serve = |block: &[u8]| {
        decoder.decode(block, &mut arena).expect("a block");
        assert_eq!(arena.len(), 6);
        let id = arena.iter().find(|(name, _)| *name == b"x-request-id").expect("its header");
        out.clear();
        encoder.append_set(&constant, &mut out);
        encoder.encode([id, (b"content-length", b"123"), (b"vary", b"accept-encoding")], &mut out);
    };
    blocks[..REQUESTS as usize].iter().for_each(|block| serve(block));
    set_mode(Mode::Count);
    let before = counts();
    blocks[REQUESTS as usize..].iter().for_each(|block| serve(block));
    let taken = counts().since(&before);
    set_mode(Mode::Off);
    assert_eq!(taken.allocations, 0, "of {REQUESTS} requests");
}
