//! Messages come back from their bytes as they were, and nothing else is taken for one.
#![allow(clippy::unwrap_used)] // A test that fails says where.

use sluice_replica::wire::{WireError, decode, encode};
use sluice_replica::{
    Body, Campaign, Change, Content, Descriptor, Entry, Members, Message, NodeId, PROTOCOL_NEWEST, Position,
    ReadId, Snapshot,
};

const AT: Position = Position { term: 3, index: 17 };

fn messages() -> Vec<Message> {
    let [from, to, learner] = [1, 2, 5].map(|id| NodeId::new(id).unwrap());
    let members = Members::new(vec![from, to], vec![learner], 7).unwrap();
    let batch =
        Descriptor { first_record: 40, records: 3, time_us: 1_700_000_000_000_000, bytes: 900, checksum: 7 };
    let changed = |index, change| {
        let position = Position { term: 4, index };
        Entry { position, content: Content::Members(change) }
    };
    let entries = vec![
        Entry { position: Position { term: 3, index: 18 }, content: Content::Batch(batch) },
        Entry { position: Position { term: 4, index: 19 }, content: Content::Begin },
        changed(20, Change::Add(learner)),
        changed(21, Change::Promote(learner)),
        changed(22, Change::Demote(to)),
        changed(23, Change::Remove(to)),
        changed(24, Change::Replace { old: from, new: learner }),
    ];
    let bodies = [
        Body::Append { previous: AT, commit: 16, entries },
        Body::Append { previous: Position::default(), commit: 0, entries: Vec::new() },
        Body::Appended { index: 19, commit: 17 },
        Body::AppendRefused { previous: 17, hint: AT, commit: 4 },
        Body::Heartbeat { commit: 17, read: Some(ReadId(8)) },
        Body::HeartbeatSeen { commit: 17, read: None },
        Body::AskVote { campaign: Campaign::Try, last: AT, commit: Position::default() },
        Body::AskVote { campaign: Campaign::Election, last: AT, commit: AT },
        Body::AskVote { campaign: Campaign::Transfer, last: AT, commit: AT },
        Body::Vote { is_try: true, is_granted: false, commit: AT },
        Body::Vote { is_try: false, is_granted: true, commit: Position::default() },
        Body::TimeoutNow,
        Body::Snapshot(Snapshot { position: AT, members }),
    ];
    bodies.into_iter().map(|body| Message { from, to, term: 4, body }).collect()
}

fn bytes(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, PROTOCOL_NEWEST, &mut bytes);
    bytes
}

/// The bytes with the checksum that belongs to them.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&content);
    content.extend_from_slice(&checksum.to_le_bytes());
    content
}

#[test]
fn messages_come_back() {
    for message in messages() {
        assert_eq!(decode(&bytes(&message), PROTOCOL_NEWEST), Ok(message));
    }
}

#[test]
fn what_is_cut_or_longer_is_refused() {
    for message in messages() {
        let whole = bytes(&message);
        let content = &whole[..whole.len() - 4];
        for len in 0..content.len() {
            assert_eq!(
                decode(&sealed(content[..len].to_vec()), PROTOCOL_NEWEST),
                Err(WireError::Length),
                "{message:?} cut to {len}"
            );
        }
        assert_eq!(decode(&sealed([content, &[0]].concat()), PROTOCOL_NEWEST), Err(WireError::Length));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for message in messages() {
        let whole = bytes(&message);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped, PROTOCOL_NEWEST), Err(WireError::Checksum));
        }
    }
}

#[test]
fn noise_with_a_right_checksum_decodes_to_itself_or_is_refused() {
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    for message in messages() {
        let whole = bytes(&message);
        for _ in 0..2_000 {
            let mut content = whole[..whole.len() - 4].to_vec();
            let at = usize::from(byte()) % content.len();
            content[at] = byte();
            let noise = sealed(content);
            if let Ok(read) = decode(&noise, PROTOCOL_NEWEST) {
                assert_eq!(bytes(&read), noise);
            }
        }
    }
}

#[test]
fn a_message_is_read_in_the_version_in_which_it_was_written_and_in_no_other() {
    for message in messages() {
        let mut newer = Vec::new();
        encode(&message, PROTOCOL_NEWEST + 1, &mut newer);
        assert_eq!(decode(&newer, PROTOCOL_NEWEST + 1).as_ref(), Ok(&message));
        let refused = WireError::Version(PROTOCOL_NEWEST + 1, PROTOCOL_NEWEST);
        assert_eq!(decode(&newer, PROTOCOL_NEWEST), Err(refused));
    }
}
