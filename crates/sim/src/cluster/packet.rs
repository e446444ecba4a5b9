//! Envelopes on their way.

use sluice_replica::{Envelope, wire};

use crate::rng::Rng;

/// An envelope as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Packet {
    message: Vec<u8>,
    batches: Vec<bytes::Bytes>,
}

impl Packet {
    pub(super) fn of(envelope: Envelope) -> Packet {
        let mut message = Vec::new();
        wire::encode(&envelope.message, &mut message);
        Packet { message, batches: envelope.batches }
    }

    /// Flips a bit somewhere.
    pub(super) fn damage(&mut self, rng: &mut Rng) {
        let at = rng.index(self.message.len());
        match self.batches.iter_mut().find(|batch| !batch.is_empty() && rng.chance(1, 2)) {
            None => self.message[at] ^= 1 << rng.below(8),
            Some(batch) => {
                let mut bytes = batch.to_vec();
                bytes[rng.index(batch.len())] ^= 1 << rng.below(8);
                *batch = bytes.into();
            }
        }
    }

    /// The envelope; `None`: it was damaged.
    pub(super) fn open(self) -> Option<Envelope> {
        let message = wire::decode(&self.message).ok()?;
        Some(Envelope { message, batches: self.batches })
    }
}
