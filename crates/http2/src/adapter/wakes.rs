//! The calls of a connection that can go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// A bit for each slot, and the task that looks at them.
#[derive(Debug)]
pub(super) struct Wakes {
    words: Box<[AtomicU64]>,
    task: AtomicWaker,
}

/// Wakes one slot.
struct SlotWake {
    wakes: Arc<Wakes>,
    slot: usize,
}

impl Wakes {
    pub(super) fn new(slots: usize) -> Self {
        let words = (0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { words, task: AtomicWaker::new() }
    }

    /// The waker of a slot, to be made once.
    pub(super) fn waker(self: &Arc<Self>, slot: usize) -> Waker {
        Waker::from(Arc::new(SlotWake { wakes: self.clone(), slot }))
    }

    /// The task that is woken from now on. To be called before the bits are taken, so that none is missed.
    pub(super) fn register(&self, task: &Waker) {
        self.task.register(task);
    }

    /// Marks a slot, from within the task.
    pub(super) fn set(&self, slot: usize) {
        self.words[slot / 64].fetch_or(1 << (slot % 64), Ordering::AcqRel);
    }

    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// The marked slots of a word, which are marked no more.
    pub(super) fn take(&self, word: usize) -> impl Iterator<Item = usize> + use<> {
        let word_bits = &self.words[word];
        let mut bits =
            if word_bits.load(Ordering::Acquire) == 0 { 0 } else { word_bits.swap(0, Ordering::AcqRel) };
        std::iter::from_fn(move || {
            let bit = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (bit < 64).then_some(word * 64 + bit as usize)
        })
    }
}

impl Wake for SlotWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wakes.set(self.slot);
        self.wakes.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_is_taken_once() {
        let wakes = Arc::new(Wakes::new(130));
        for slot in [0, 63, 64, 129] {
            wakes.waker(slot).wake_by_ref();
            wakes.waker(slot).wake();
        }
        let all = |wakes: &Wakes| (0..wakes.words()).flat_map(|word| wakes.take(word)).collect::<Vec<_>>();
        assert_eq!(all(&wakes), [0, 63, 64, 129]);
        assert_eq!(all(&wakes), []);
    }
}
