//! Random numbers that tell things apart, from the seeds of the standard library's hash maps: for nothing
//! that has to be secret.

use std::hash::{BuildHasher, Hasher, RandomState};

pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
