//! Messages about states come back from their bytes as they were, and nothing else is taken for one.
#![allow(clippy::unwrap_used)] // A test that fails says where.

use bytes::Bytes;
use sluice_journal::{BlobKey, StateHead};
use sluice_replica::transfer::wire::{STATE_LEN_MAX, decode, encode};
use sluice_replica::wire::WireError;
use sluice_replica::{
    NodeId, PROTOCOL_NEWEST, Position, RECORD_BYTES_MAX, SentBlob, StateBody, StateMessage,
};

fn messages() -> Vec<StateMessage> {
    let [from, to] = [1, 2].map(|id| NodeId::new(id).unwrap());
    let state = Position { term: 3, index: 17 };
    let key = BlobKey { index: 30, item: 1 };
    let label = b"members".to_vec();
    let head = StateHead { applied_index: 40, number: 17, term: 3, time_us: 5, behaviour: 2, label };
    let content = Bytes::from_static(b"content");
    let blobs = [SentBlob::Whole(content.clone()), SentBlob::Gone, SentBlob::Damaged];
    let bodies = [
        StateBody::Busy,
        StateBody::AskContent { offset: 7, is_again: true },
        StateBody::AskBlobs { keys: vec![key, BlobKey { item: 2, ..key }] },
        StateBody::Content { head: head.clone(), offset: 9, bytes: content, end: Some(11) },
        StateBody::Content { head, offset: 9, bytes: Bytes::new(), end: None },
        StateBody::Blobs { whole_from: 41, blobs: blobs.clone().map(|blob| (key, blob)).to_vec() },
        StateBody::AskCopies { keys: vec![key] },
        StateBody::Copies { blobs: blobs.map(|blob| (key, blob)).to_vec() },
    ];
    bodies.into_iter().map(|body| StateMessage { from, to, state, body }).collect()
}

fn bytes(message: &StateMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, PROTOCOL_NEWEST, &mut bytes);
    bytes
}

#[test]
fn messages_come_back() {
    for message in messages() {
        assert_eq!(decode(&bytes(&message).into(), PROTOCOL_NEWEST), Ok(message));
    }
}

#[test]
fn what_is_cut_longer_or_changed_is_refused() {
    for message in messages() {
        let whole = bytes(&message);
        for len in 0..whole.len() {
            assert!(decode(&whole[..len].to_vec().into(), PROTOCOL_NEWEST).is_err());
        }
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&changed.into(), PROTOCOL_NEWEST).is_err(), "bit {bit} of {message:?}");
        }
        let mut longer = [&whole[..whole.len() - 4], &[0]].concat();
        longer.extend_from_slice(&crc32fast::hash(&longer).to_le_bytes());
        assert_eq!(decode(&longer.into(), PROTOCOL_NEWEST), Err(WireError::Length), "{message:?}");
    }
    assert_eq!(decode(&vec![0; STATE_LEN_MAX + 1].into(), PROTOCOL_NEWEST), Err(WireError::Length));
}

#[test]
fn a_message_is_read_in_the_version_in_which_it_was_written_and_in_no_other() {
    for message in messages() {
        let mut newer = Vec::new();
        encode(&message, PROTOCOL_NEWEST + 1, &mut newer);
        let newer = Bytes::from(newer);
        assert_eq!(decode(&newer, PROTOCOL_NEWEST + 1).as_ref(), Ok(&message));
        let refused = WireError::Version(PROTOCOL_NEWEST + 1, PROTOCOL_NEWEST);
        assert_eq!(decode(&newer, PROTOCOL_NEWEST), Err(refused));
    }
}

#[test]
fn the_blob_of_the_largest_record_goes_into_one_message() {
    let [from, to] = [1, 2].map(|id| NodeId::new(id).unwrap());
    let blob = SentBlob::Whole(vec![7; RECORD_BYTES_MAX as usize].into());
    let body = StateBody::Blobs { whole_from: 1, blobs: vec![(BlobKey { index: 1, item: 0 }, blob)] };
    let message = StateMessage { from, to, state: Position { term: 1, index: 1 }, body };
    assert_eq!(decode(&bytes(&message).into(), PROTOCOL_NEWEST), Ok(message));
}
