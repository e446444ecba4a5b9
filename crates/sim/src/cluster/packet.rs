//! Messages on their way.

use bytes::Bytes;
use sluice_replica::{Envelope, PROTOCOL_NEWEST, StateMessage, transfer};

use crate::rng::Rng;

/// A message as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Packet {
    /// An envelope: its head, and its batches.
    Envelope(Vec<u8>, Vec<Bytes>),
    /// A message about a state.
    State(Vec<u8>),
}

/// A message as it arrives.
pub(super) enum Arrived {
    Envelope(Envelope),
    State(StateMessage),
}

impl Packet {
    pub(super) fn of(envelope: Envelope) -> Packet {
        let mut head = Vec::new();
        envelope.encode_head(PROTOCOL_NEWEST, &mut head);
        Packet::Envelope(head, envelope.batches)
    }

    pub(super) fn of_state(message: &StateMessage) -> Packet {
        let mut bytes = Vec::new();
        transfer::wire::encode(message, PROTOCOL_NEWEST, &mut bytes);
        Packet::State(bytes)
    }

    /// Flips a bit somewhere.
    pub(super) fn damage(&mut self, rng: &mut Rng) {
        let (message, batches) = match self {
            Packet::Envelope(message, batches) => (message, batches.as_mut_slice()),
            Packet::State(message) => (message, &mut [][..]),
        };
        let at = rng.index(message.len());
        match batches.iter_mut().find(|batch| !batch.is_empty() && rng.chance(1, 2)) {
            None => message[at] ^= 1 << rng.below(8),
            Some(batch) => {
                let mut bytes = batch.to_vec();
                bytes[rng.index(batch.len())] ^= 1 << rng.below(8);
                *batch = bytes.into();
            }
        }
    }

    /// The message; `None`: it was damaged.
    pub(super) fn open(self) -> Option<Arrived> {
        match self {
            Packet::Envelope(head, batches) => {
                let (report, message) = Envelope::decode_head(&head, PROTOCOL_NEWEST).ok()?;
                Some(Arrived::Envelope(Envelope { message, report, batches }))
            }
            Packet::State(bytes) => {
                transfer::wire::decode(&bytes.into(), PROTOCOL_NEWEST).ok().map(Arrived::State)
            }
        }
    }
}
