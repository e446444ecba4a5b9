//! The limits in force, as this node knows them: those of its settings while it is alone, and in a cluster
//! those that shard 0 has applied.

use std::sync::atomic::{AtomicU64, Ordering};

use sluice_engine::limits::Limits;

/// Limits that callers read while a shard sets them. Each is a number of its own: who reads in that moment
/// may see some of the former ones, as if it had come earlier.
#[derive(Debug)]
pub(crate) struct InForce([AtomicU64; Limits::COUNT]);

impl InForce {
    pub(crate) fn new(limits: &Limits) -> InForce {
        InForce(limits.numbers().map(AtomicU64::new))
    }

    pub(crate) fn get(&self) -> Limits {
        Limits::of_numbers(self.0.each_ref().map(|number| number.load(Ordering::Relaxed)))
    }

    pub(crate) fn set(&self, limits: &Limits) {
        for (place, number) in self.0.iter().zip(limits.numbers()) {
            place.store(number, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_read() {
        let limits = InForce::new(&Limits::default());
        assert_eq!(limits.get(), Limits::default());
        let fewer = Limits { queues: 3, auto_create: false, ..Limits::default() };
        limits.set(&fewer);
        assert_eq!(limits.get(), fewer);
    }
}
