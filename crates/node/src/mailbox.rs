//! Mailbox of a shard: a lock-free queue, bounded in number and in bytes, with one wake-up for all requests
//! that arrive meanwhile. When its owner ends it is closed, and a request that arrives then or later is
//! answered too.

mod capacity;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_queue::SegQueue;
use sluice_engine::Error;

use capacity::Capacity;
pub use capacity::Load;

/// Number of yields of an idle owner before it sleeps, where most requests come from callers of this process:
/// about 20 µs on an idle machine.
pub const YIELDS_BEFORE_SLEEP: u32 = 50;

/// Content of a mailbox.
pub trait Letter {
    /// Estimate of its memory, in bytes.
    fn bytes(&self) -> usize;
    /// True when it ends or shortens other work: it is accepted from a reserve while new work is refused.
    fn relieves(&self) -> bool;
    /// Answers its sender that it was refused, with this error.
    fn refuse(self, why: &Error);
}

/// A mailbox; clones share the queue.
#[derive(Debug)]
pub struct Mailbox<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Mailbox { shared: Arc::clone(&self.shared) }
    }
}

#[derive(Debug)]
struct Shared<T> {
    /// Takes memory for what is in it, so that a shard without requests has a small mailbox.
    queue: SegQueue<T>,
    room: Capacity,
    /// Requests that must not be refused; examined only while `has_sure` is set.
    sure: Mutex<VecDeque<T>>,
    has_sure: AtomicBool,
    asleep: AtomicBool,
    owner: OnceLock<Thread>,
    /// Reason for which requests are refused, once closed.
    closed: OnceLock<Error>,
}

impl<T: Letter> Mailbox<T> {
    /// A mailbox of up to `capacity` requests of any size.
    pub fn new(capacity: usize) -> Mailbox<T> {
        Mailbox::bounded(Capacity::of_requests(capacity.max(1)))
    }

    /// A mailbox of up to `capacity` requests of up to `bytes` bytes in all, with a reserve for those that
    /// relieve. A single request fits whatever its size.
    pub fn with_bytes(capacity: usize, bytes: u64) -> Mailbox<T> {
        Mailbox::bounded(Capacity::new(capacity.max(1), bytes))
    }

    fn bounded(room: Capacity) -> Mailbox<T> {
        Mailbox {
            shared: Arc::new(Shared {
                queue: SegQueue::new(),
                room,
                sure: Mutex::default(),
                has_sure: AtomicBool::new(false),
                asleep: AtomicBool::new(false),
                owner: OnceLock::new(),
                closed: OnceLock::new(),
            }),
        }
    }

    /// Pushes a request and wakes a sleeping owner. A closed mailbox refuses the request through its own
    /// reply.
    ///
    /// # Errors
    /// The mailbox is full: the request is given back.
    pub fn push(&self, request: T) -> Result<(), T> {
        if !self.shared.room.enter(Load::of(request.bytes()), request.relieves()) {
            return Err(request);
        }
        self.shared.queue.push(request);
        self.wake();
        // Behind the fence in `wake`, which pairs with the one in `close`: either we see it closed, or it
        // sees our request.
        if let Some(why) = self.shared.closed.get() {
            self.refuse_all(why);
        }
        Ok(())
    }

    /// Pushes a request ahead of all others, without a limit. For requests that end what was accepted before,
    /// whose number is bounded by that. A closed mailbox refuses it.
    pub fn push_surely(&self, request: T) {
        let mut sure = self.sure();
        sure.push_back(request);
        self.shared.has_sure.store(true, Ordering::Release);
        drop(sure);
        self.wake();
        if let Some(why) = self.shared.closed.get() {
            self.refuse_all(why);
        }
    }

    fn sure(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.shared.sure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_sure(&self) -> bool {
        self.shared.has_sure.load(Ordering::Acquire)
    }

    fn pop_sure(&self) -> Option<T> {
        let mut sure = self.sure();
        let request = sure.pop_front();
        if sure.is_empty() {
            // Gives back what a burst has taken.
            *sure = VecDeque::new();
            self.shared.has_sure.store(false, Ordering::Release);
        }
        request
    }

    /// Wakes a sleeping owner.
    pub fn wake(&self) {
        // Pairs with the fence in `sleep`: either we see it asleep, or it sees our request.
        fence(Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::Relaxed)
            && self.shared.asleep.swap(false, Ordering::AcqRel)
            && let Some(owner) = self.shared.owner.get()
        {
            owner.unpark();
        }
    }

    /// Closes the mailbox: refuses all present and later requests with `why`. The first reason stays.
    pub fn close(&self, why: Error) {
        let _ = self.shared.closed.set(why);
        fence(Ordering::SeqCst);
        if let Some(why) = self.shared.closed.get() {
            self.refuse_all(why);
        }
    }

    fn refuse_all(&self, why: &Error) {
        while let Some(request) = self.pop() {
            request.refuse(why);
        }
    }

    /// Takes the next request; `None`: there is none.
    pub fn pop(&self) -> Option<T> {
        let mut taken = Load::default();
        let request = self.take(&mut taken);
        self.free(taken);
        request
    }

    /// Takes the next request, and adds its load to `taken`, which the caller passes to [`Mailbox::free`]
    /// once for many requests, since callers touch the same memory.
    pub fn take(&self, taken: &mut Load) -> Option<T> {
        if self.has_sure()
            && let Some(request) = self.pop_sure()
        {
            return Some(request);
        }
        let request = self.shared.queue.pop()?;
        taken.add(Load::of(request.bytes()));
        Some(request)
    }

    /// Frees the capacity of requests that were taken.
    pub fn free(&self, taken: Load) {
        self.shared.room.leave(taken);
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        let sure = if self.has_sure() { self.sure().len() } else { 0 };
        self.shared.queue.len() + sure
    }

    /// True when there is no request.
    pub fn is_empty(&self) -> bool {
        self.shared.queue.is_empty() && !self.has_sure()
    }

    /// Makes the calling thread the owner, which `push` wakes.
    pub fn own(&self) {
        let _ = self.shared.owner.set(std::thread::current());
    }

    /// Lets others run so many times, and then sleeps until a request arrives, somebody calls
    /// [`Mailbox::wake`], or `at_most` has passed. May wake early. `busy` reports other work: who brings it
    /// makes it visible to `busy` first and then calls `wake`.
    pub fn sleep(&self, yields: u32, at_most: Option<Duration>, busy: impl Fn() -> bool) {
        let has_work = || !self.is_empty() || busy();
        // Under load the next request is a moment away, and waking a thread costs both sides more than that.
        for _ in 0..yields {
            if has_work() {
                return;
            }
            std::thread::yield_now();
        }
        self.shared.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_work() {
            match at_most {
                Some(time) => std::thread::park_timeout(time),
                None => std::thread::park(),
            }
        }
        self.shared.asleep.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Counts how often it was refused.
    #[derive(Debug)]
    struct Note {
        bytes: usize,
        relieves: bool,
        refused: Arc<AtomicU32>,
    }

    impl Letter for Note {
        fn bytes(&self) -> usize {
            self.bytes
        }

        fn relieves(&self) -> bool {
            self.relieves
        }

        fn refuse(self, _why: &Error) {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note(bytes: usize, relieves: bool) -> Note {
        Note { bytes, relieves, refused: Arc::default() }
    }

    #[test]
    fn a_full_mailbox_gives_the_request_back() {
        let mailbox = Mailbox::with_bytes(1, u64::MAX);
        assert!(mailbox.push(note(1, false)).is_ok());
        assert_eq!(mailbox.push(note(2, false)).unwrap_err().bytes, 2);
        assert!(mailbox.push(note(3, true)).is_ok(), "what relieves has a reserve");
        assert_eq!([mailbox.pop(), mailbox.pop()].map(|note| note.unwrap().bytes), [1, 3]);
        assert!(mailbox.push(note(4, false)).is_ok());
    }

    #[test]
    fn bytes_are_bounded_until_they_are_freed() {
        let mailbox = Mailbox::with_bytes(100, 1_000);
        assert!(mailbox.push(note(600, false)).is_ok());
        assert!(mailbox.push(note(401, false)).is_err());
        let mut taken = Load::default();
        assert!(mailbox.take(&mut taken).is_some());
        assert!(mailbox.push(note(401, false)).is_err(), "taken, and not yet freed");
        mailbox.free(taken);
        assert!(mailbox.push(note(401, false)).is_ok());
    }

    #[test]
    fn what_must_not_be_refused_comes_first() {
        let mailbox = Mailbox::with_bytes(1, u64::MAX);
        assert!(mailbox.push(note(1, false)).is_ok());
        mailbox.push_surely(note(2, false));
        mailbox.push_surely(note(3, false));
        assert_eq!((mailbox.len(), mailbox.is_empty()), (3, false));
        let order = [mailbox.pop(), mailbox.pop(), mailbox.pop()].map(|note| note.unwrap().bytes);
        assert_eq!(order, [2, 3, 1]);
        assert!(mailbox.is_empty() && mailbox.pop().is_none());
        assert!(mailbox.push(note(4, false)).is_ok(), "they have taken no room");
        let late = note(5, false);
        let refused = Arc::clone(&late.refused);
        mailbox.close(Error::ShuttingDown {});
        mailbox.push_surely(late);
        assert_eq!((refused.load(Ordering::Relaxed), mailbox.is_empty()), (1, true));
    }

    #[test]
    fn a_push_wakes_the_owner() {
        let mailbox = Mailbox::new(16);
        let owner = {
            let mailbox = mailbox.clone();
            std::thread::spawn(move || {
                mailbox.own();
                let mut seen = 0;
                while seen < 10_000 {
                    match mailbox.pop() {
                        Some(_) => seen += 1,
                        None => mailbox.sleep(YIELDS_BEFORE_SLEEP, None, || false),
                    }
                }
            })
        };
        for _ in 0..10_000 {
            while mailbox.push(note(1, false)).is_err() {
                std::thread::yield_now();
            }
        }
        owner.join().unwrap();
    }

    #[test]
    fn whoever_races_with_the_closing_is_taken_or_refused_once() {
        for _ in 0..200 {
            let mailbox = Mailbox::new(64);
            let refused = Arc::new(AtomicU32::new(0));
            let start = Arc::new(std::sync::Barrier::new(4));
            let senders: Vec<_> = (0..3)
                .map(|_| {
                    let (mailbox, refused, start) =
                        (mailbox.clone(), Arc::clone(&refused), Arc::clone(&start));
                    std::thread::spawn(move || {
                        start.wait();
                        let note = || Note { refused: Arc::clone(&refused), ..note(1, false) };
                        (0..100).filter(|_| mailbox.push(note()).is_ok()).count() as u32
                    })
                })
                .collect();
            start.wait();
            let taken = (0..50).filter(|_| mailbox.pop().is_some()).count() as u32;
            mailbox.close(Error::ShuttingDown {});
            let pushed: u32 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
            assert_eq!(pushed, taken + refused.load(Ordering::Relaxed));
            assert!(mailbox.is_empty());
        }
    }
}
