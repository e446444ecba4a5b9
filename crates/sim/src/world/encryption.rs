//! Encryption settings of a seed's runs.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_journal::{Encryption, Random, RootKey, RootKeys};

use crate::rng::Rng;

/// Source of random bytes, drawn from the seed. Clones share one sequence, so that no bytes repeat.
#[derive(Clone, Debug)]
struct Drawn(Arc<Mutex<Rng>>);

impl Random for Drawn {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&rng.bits().to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

/// Draws the encryption of a seed's runs. `rng` is used for nothing else, so that the other draws of a seed
/// do not change.
pub(crate) fn draw(mut rng: Rng) -> Encryption {
    let encrypted = rng.chance(1, 2);
    let random = Drawn(Arc::new(Mutex::new(rng)));
    match RootKey::generate(&random) {
        Ok(root) if encrypted => {
            Encryption { random: Arc::new(random), ..Encryption::with(RootKeys::new(vec![root])) }
        }
        _ => Encryption::default(),
    }
}
