//! Whether and with which keys the runs of a seed encrypt what is at rest.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_journal::{Encryption, Random, RootKey, RootKeys};

use crate::rng::Rng;

/// Randomness that the seed decides. Clones go on with the same sequence, so that nothing is ever drawn
/// twice.
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

/// How the runs of a seed encrypt. `rng` is for this alone, so that the other draws of a seed stay what they
/// were.
pub(super) fn draw(mut rng: Rng) -> Encryption {
    let encrypted = rng.chance(1, 2);
    let random = Drawn(Arc::new(Mutex::new(rng)));
    match RootKey::generate(&random) {
        Ok(root) if encrypted => {
            Encryption { random: Arc::new(random), ..Encryption::with(RootKeys::new(vec![root])) }
        }
        _ => Encryption::default(),
    }
}
