//! Frames come back from their bytes as they were, however these are cut, and nothing else is taken for one.

use bytes::Bytes;
use sluice_peers::decoder::Decoder;
use sluice_peers::frame::{Frame, FrameError, HEAD_LEN, REASON_LEN_MAX, seal};
use sluice_peers::hello::{Formats, Hello, NoHello};
use sluice_peers::{CONTENT_BYTES_MAX, ClusterId, Identity};
use sluice_replica::transfer::wire::STATE_LEN_MAX;
use sluice_replica::wire::WireError;
use sluice_replica::{PROTOCOL_NEWEST, Protocols};

use crate::support::{append, heartbeat, node, part};

fn frames() -> Vec<Frame> {
    let identity = Identity { cluster: ClusterId(7), node: node(2) };
    let formats = Formats { highest: 1, in_force: 1 };
    let content = Bytes::from_static(b"content");
    vec![
        Frame::Hello(Hello { identity, protocols: Protocols::OWN, start: 5, wall_us: 6, formats }),
        Frame::Refused("nobody knows you".to_owned()),
        Frame::Removed,
        Frame::Alive,
        Frame::Envelope { shard: 0, envelope: heartbeat(2, 1, 4) },
        Frame::Envelope { shard: 63, envelope: append(2, 1, 4, &[3, 0, 100_000]) },
        Frame::Request { number: 1, within_ms: 2, content: content.clone() },
        Frame::Answer { number: u64::MAX, content: Bytes::new() },
        Frame::Answer { number: 1, content },
        Frame::State { shard: 63, message: part(2, 1, 5_000) },
    ]
}

/// The bytes of frames, as the first of a direction.
fn bytes(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, frame) in (0..).zip(frames) {
        frame.encode(number, PROTOCOL_NEWEST, &mut bytes);
        frame.batches().iter().for_each(|batch| bytes.extend_from_slice(batch));
    }
    bytes
}

/// The frames of bytes that come in pieces of this length.
fn decode(bytes: &[u8], piece: usize) -> Result<Vec<Frame>, FrameError> {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    decoder.agree(PROTOCOL_NEWEST);
    for piece in bytes.chunks(piece) {
        decoder.buffer().extend_from_slice(piece);
        while let Some(frame) = decoder.next_frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

/// The error that one frame brings whose head or content has another byte here, under the right checksum.
fn forged(frame: &Frame, at: usize, value: u8) -> Option<FrameError> {
    let mut bytes = Vec::new();
    frame.encode(0, PROTOCOL_NEWEST, &mut bytes);
    bytes[at] = value;
    seal(&mut bytes);
    frame.batches().iter().for_each(|batch| bytes.extend_from_slice(batch));
    decode(&bytes, bytes.len()).err()
}

#[test]
fn frames_come_back_whatever_the_pieces() {
    let bytes = bytes(&frames());
    for piece in [1, 7, HEAD_LEN, 4096, bytes.len()] {
        assert_eq!(decode(&bytes, piece), Ok(frames()), "{piece}");
    }
}

#[test]
fn what_is_cut_is_no_frame_yet() {
    for frame in frames() {
        let bytes = bytes(&[frame]);
        let step = 1 + bytes.len() / 100;
        for len in (0..bytes.len()).step_by(step) {
            assert_eq!(decode(&bytes[..len], bytes.len()), Ok(Vec::new()));
        }
    }
}

#[test]
fn a_changed_bit_is_noticed_in_head_and_content() {
    for frame in frames() {
        let mut bytes = Vec::new();
        frame.encode(0, PROTOCOL_NEWEST, &mut bytes);
        let checked = bytes.len();
        frame.batches().iter().for_each(|batch| bytes.extend_from_slice(batch));
        for bit in 0..checked * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // A greater length is that of a frame that is not there yet.
            let decoded = decode(&changed, changed.len());
            assert!(decoded.as_ref().map_or(true, Vec::is_empty), "{frame:?} {bit}: {decoded:?}");
        }
    }
}

#[test]
fn a_frame_that_comes_again_or_is_left_out_is_refused() {
    let one = bytes(&[Frame::Alive]);
    let again = [one.clone(), one].concat();
    assert_eq!(decode(&again, again.len()), Err(FrameError::Number { got: 0, expected: 1 }));
    let mut second = Vec::new();
    Frame::Alive.encode(1, PROTOCOL_NEWEST, &mut second);
    assert_eq!(decode(&second, second.len()), Err(FrameError::Number { got: 1, expected: 0 }));
}

#[test]
fn lengths_have_limits_by_kind() {
    let head = |content: u32, batches: u32, kind: u8| {
        let mut head = [0; HEAD_LEN];
        head[..4].copy_from_slice(&content.to_le_bytes());
        head[4..8].copy_from_slice(&batches.to_le_bytes());
        head[8] = kind;
        decode(&head, HEAD_LEN)
    };
    let content_max = CONTENT_BYTES_MAX as u32;
    for (content, batches, kind) in [
        (Hello::LEN_MAX as u32 + 1, 0, 1),
        (Hello::LEN as u32 - 1, 0, 1),
        (REASON_LEN_MAX as u32 + 1, 0, 2),
        (1, 0, 3),
        (0, 1, 3),
        (u32::MAX, 0, 4),
        (100, u32::MAX, 4),
        (11, 0, 5),
        (content_max + 13, 0, 5),
        (7, 0, 6),
        (content_max + 9, 0, 6),
        (8, 1, 6),
        (STATE_LEN_MAX as u32 + 1, 0, 7),
        (0, 1, 7),
    ] {
        assert_eq!(head(content, batches, kind), Err(FrameError::Length), "{content} {batches} {kind}");
    }
    for kind in [0, 9, 255] {
        assert_eq!(head(0, 0, kind), Err(FrameError::Kind(kind)));
    }
    // The longest are waited for.
    assert_eq!(head(content_max + 12, 0, 5), Ok(Vec::new()));
    assert_eq!(head(content_max + 8, 0, 6), Ok(Vec::new()));
}

#[test]
fn fields_that_are_not_in_use_are_0() {
    assert_eq!(forged(&Frame::Alive, 9, 1), Some(FrameError::Field));
    assert_eq!(forged(&Frame::Alive, 10, 1), Some(FrameError::Field));
    assert_eq!(forged(&Frame::Refused("ab".to_owned()), HEAD_LEN, 0xff), Some(FrameError::Field));
    assert_eq!(forged(&Frame::Refused("ab".to_owned()), HEAD_LEN, b'\n'), Some(FrameError::Field));
}

#[test]
fn messages_are_of_the_version_that_was_agreed_upon() {
    let envelope = Frame::Envelope { shard: 0, envelope: heartbeat(2, 1, 4) };
    for frame in [envelope, Frame::State { shard: 0, message: part(2, 1, 5) }] {
        let mut newer = Vec::new();
        frame.encode(0, PROTOCOL_NEWEST + 1, &mut newer);
        let refused = WireError::Version(PROTOCOL_NEWEST + 1, PROTOCOL_NEWEST);
        assert_eq!(decode(&newer, newer.len()), Err(FrameError::Message(refused)));
    }
}

#[test]
fn a_greeting_may_be_longer_than_this_program_writes_it() {
    let greeting = bytes(&frames()[..1]);
    let mut longer = [&greeting[..], b"of a newer program"].concat();
    let content = (longer.len() - HEAD_LEN) as u32;
    longer[..4].copy_from_slice(&content.to_le_bytes());
    seal(&mut longer);
    assert_eq!(decode(&longer, longer.len()), Ok(frames()[..1].to_vec()));
}

#[test]
fn what_a_frame_holds_is_checked() {
    assert_eq!(forged(&frames()[0], HEAD_LEN, 0), Some(FrameError::Hello(NoHello::Other)));
    let cut_message = forged(&Frame::Envelope { shard: 0, envelope: heartbeat(2, 1, 4) }, HEAD_LEN + 3, 1);
    assert!(matches!(cut_message, Some(FrameError::Message(_))));
}

#[test]
fn batches_are_as_long_as_their_message_says() {
    for (described, sent) in [(&[3, 5][..], &[3, 4][..]), (&[3], &[3, 1]), (&[3, 5], &[3]), (&[3], &[4])] {
        let mut envelope = append(2, 1, 4, described);
        envelope.batches = sent.iter().map(|len| Bytes::from(vec![0; *len])).collect();
        let bytes = bytes(&[Frame::Envelope { shard: 0, envelope }]);
        assert_eq!(decode(&bytes, bytes.len()), Err(FrameError::Batches), "{described:?} {sent:?}");
    }
}

#[test]
fn a_batch_is_a_slice_of_what_was_read() {
    let mut decoder = Decoder::default();
    decoder.agree(PROTOCOL_NEWEST);
    decoder
        .buffer()
        .extend_from_slice(&bytes(&[Frame::Envelope { shard: 0, envelope: append(2, 1, 4, &[90]) }]));
    let read = decoder.buffer().as_ptr_range();
    let Some(Frame::Envelope { envelope, .. }) = decoder.next_frame().unwrap() else { panic!("an envelope") };
    assert!(read.contains(&envelope.batches[0].as_ptr()));
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let long = Frame::Refused("ü".repeat(REASON_LEN_MAX));
    let bytes = bytes(&[long]);
    assert_eq!(decode(&bytes, bytes.len()), Ok(vec![Frame::Refused("ü".repeat(REASON_LEN_MAX / 2))]));
}
