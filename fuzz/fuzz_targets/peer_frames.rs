//! Frames of another node: a first byte that says how the rest is cut, then frames, each with the right
//! number and checksums in its head and in its message. What decodes is encoded to the same bytes, whatever
//! the cuts, but for what a newer program has added to its greeting.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::framing::records;
use sluice_peers::decoder::Decoder;
use sluice_peers::frame::{Frame, HEAD_LEN, seal};
use sluice_peers::hello::Hello;
use sluice_replica::PROTOCOL_NEWEST;

fuzz_target!(|input: &[u8]| {
    let Some((cut, input)) = input.split_first() else { return };
    let mut bytes = Vec::new();
    for (number, frame) in (0_u32..).zip(records(input)) {
        bytes.extend(mended(frame, number));
    }
    let (mut decoder, mut again, mut number) = (Decoder::default(), Vec::new(), 0);
    decoder.agree(PROTOCOL_NEWEST);
    for piece in bytes.chunks(usize::from(*cut) + 1) {
        decoder.buffer().extend_from_slice(piece);
        loop {
            let frame = match decoder.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return,
            };
            if let Frame::Hello(hello) = &frame
                && bytes[again.len()..][..4] != (Hello::LEN as u32).to_le_bytes()
            {
                assert_eq!(Hello::decode(&hello.encode()), Ok(*hello));
                return;
            }
            frame.encode(number, PROTOCOL_NEWEST, &mut again);
            frame.batches().iter().for_each(|batch| again.extend_from_slice(batch));
            assert!(bytes.starts_with(&again), "{frame:?}");
            number += 1;
        }
    }
});

/// A frame with this number, and with the checksums that belong to it: that of its message, if it is an
/// envelope or about a state, and that of its head. A frame that is shorter than its head says is left as it
/// is.
fn mended(frame: &[u8], number: u32) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let Some(head) = frame.first_chunk_mut::<HEAD_LEN>() else { return frame };
    head[12..16].copy_from_slice(&number.to_le_bytes());
    let has_message = matches!(head[8], 4 | 7);
    let content = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let end = HEAD_LEN.saturating_add(content);
    if end > frame.len() {
        return frame;
    }
    if has_message && content > 4 {
        let checksum = crc32fast::hash(&frame[HEAD_LEN..end - 4]);
        frame[end - 4..end].copy_from_slice(&checksum.to_le_bytes());
    }
    seal(&mut frame[..end]);
    frame
}
