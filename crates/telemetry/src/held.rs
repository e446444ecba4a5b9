//! The deliveries that consumers have and whose work is being traced, until they are settled.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::trace::{Context, MessageKey};

/// Most deliveries that are remembered; of more, the oldest is forgotten, and has no span of its work.
const HELD_MAX: usize = 8_192;
/// Places of the counts that tell of most deliveries that they are not here, without a lock.
const PLACES: usize = 1 << 15;

/// A delivery: the message, and the fencing token of its lease.
pub type DeliveryKey = (MessageKey, u64);

/// The work of a delivery that has begun.
#[derive(Clone, Debug)]
pub struct Work {
    /// The place of its spans.
    pub context: Context,
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Begin, in nanoseconds since the Unix epoch.
    pub from_ns: u64,
    /// Number of the attempt, from 1.
    pub attempt: u16,
    /// Number of the delivery, from 1.
    pub delivery: u16,
}

/// The deliveries that are remembered.
#[derive(Debug)]
pub struct Held {
    /// Number of the deliveries of each place: fewer than 2^16, since all of them are.
    places: Box<[AtomicU16]>,
    hasher: RandomState,
    of: Mutex<Deliveries>,
}

#[derive(Debug, Default)]
struct Deliveries {
    work: HashMap<DeliveryKey, Work>,
    /// All of them and some that are settled, in the order in which they came.
    order: VecDeque<DeliveryKey>,
}

impl Default for Held {
    fn default() -> Held {
        let places = (0..PLACES).map(|_| AtomicU16::new(0)).collect();
        Held { places, hasher: RandomState::new(), of: Mutex::default() }
    }
}

impl Held {
    /// Remembers a delivery.
    pub fn begin(&self, delivery: DeliveryKey, work: Work) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if of.work.insert(delivery, work).is_some() {
            return;
        }
        self.place(delivery).fetch_add(1, Ordering::Relaxed);
        of.order.push_back(delivery);
        while of.work.len() > HELD_MAX {
            let Some(oldest) = of.order.pop_front() else { break };
            self.forget(&mut of, oldest);
        }
        if of.order.len() >= 2 * HELD_MAX {
            let Deliveries { work, order } = &mut *of;
            order.retain(|delivery| work.contains_key(delivery));
        }
    }

    /// False for a delivery that is not here; true for one that may be. Costs a hash and a look.
    pub fn may_have(&self, delivery: DeliveryKey) -> bool {
        self.place(delivery).load(Ordering::Relaxed) != 0
    }

    /// Takes out a delivery.
    pub fn end(&self, delivery: DeliveryKey) -> Option<Work> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget(&mut of, delivery)
    }

    fn forget(&self, of: &mut Deliveries, delivery: DeliveryKey) -> Option<Work> {
        let work = of.work.remove(&delivery)?;
        self.place(delivery).fetch_sub(1, Ordering::Relaxed);
        Some(work)
    }

    fn place(&self, delivery: DeliveryKey) -> &AtomicU16 {
        &self.places[self.hasher.hash_one(delivery) as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> DeliveryKey {
        (MessageKey { namespace: 1, sequence: number }, number)
    }

    fn work() -> Work {
        let context = Context { trace: [1; 16], parent: None };
        Work { context, queue: "q".into(), from_ns: 1, attempt: 1, delivery: 1 }
    }

    #[test]
    fn a_delivery_is_there_until_it_ends() {
        let held = Held::default();
        assert!(!held.may_have(key(1)) && held.end(key(1)).is_none());
        held.begin(key(1), work());
        held.begin(key(1), work());
        assert!(held.may_have(key(1)) && held.end(key(1)).is_some());
        assert!(!held.may_have(key(1)) && held.end(key(1)).is_none());
    }

    #[test]
    fn the_oldest_are_forgotten_and_none_is_missed() {
        let held = Held::default();
        let all = HELD_MAX as u64 + 100;
        (0..all).for_each(|number| held.begin(key(number), work()));
        let ended = (0..all).filter(|number| held.end(key(*number)).is_some()).count();
        assert_eq!(ended, HELD_MAX);
        assert!((0..all).all(|number| !held.may_have(key(number))), "a place counts what is gone");
    }

    #[test]
    fn a_long_work_outlives_many_short_ones() {
        let held = Held::default();
        held.begin(key(0), work());
        for number in 1..5 * HELD_MAX as u64 {
            held.begin(key(number), work());
            assert!(held.end(key(number)).is_some());
        }
        assert!(held.of.lock().unwrap().order.len() < 2 * HELD_MAX);
        assert!(held.end(key(0)).is_some());
    }
}
