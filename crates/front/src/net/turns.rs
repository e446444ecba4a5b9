//! Turns of the requests of an HTTP/1.1 connection: each is read when the one before it is answered.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// The number of answered requests, and the reader that waits for the next answer.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    answered: AtomicUsize,
    is_awaited: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl Turns {
    /// A request is answered, or was given up.
    pub(crate) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::SeqCst);
        if self.is_awaited.load(Ordering::SeqCst) && self.is_awaited.swap(false, Ordering::SeqCst) {
            let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
            reader.into_iter().for_each(Waker::wake);
        }
    }

    /// True if `asked` requests are answered.
    pub(crate) fn are_answered(&self, asked: usize) -> bool {
        self.answered.load(Ordering::SeqCst) >= asked
    }

    /// The same; if not, wakes the reader at the next answer.
    pub(crate) fn wait_for(&self, asked: usize, reader: &Waker) -> bool {
        if self.are_answered(asked) {
            return true;
        }
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader.clone());
        self.is_awaited.store(true, Ordering::SeqCst);
        self.are_answered(asked)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_reader_that_waits_is_woken_by_the_next_answer_alone() {
        let (turns, woken) = (Turns::default(), Arc::new(Woken::default()));
        let reader = Waker::from(Arc::clone(&woken));
        assert!(turns.wait_for(0, &reader) && !turns.wait_for(1, &reader));
        turns.answered();
        turns.answered();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(turns.wait_for(2, &reader) && !turns.are_answered(3));
    }
}
