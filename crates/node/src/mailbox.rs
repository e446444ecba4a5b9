//! The way into a shard: a lock-free queue, bounded in number and in bytes, and one wake-up for as many requests as came
//! meanwhile. When its owner ends it is closed, and whoever comes at that moment or later gets an answer, too.

mod capacity;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use sluice_engine::Error;

use capacity::Capacity;
pub use capacity::Load;

/// How often an owner without work lets other threads run before it goes to sleep: some 20 µs on an idle machine.
const YIELDS_BEFORE_SLEEP: u32 = 50;

/// What a mailbox carries.
pub trait Letter {
    /// What it about takes of memory.
    fn bytes(&self) -> usize;
    /// Whether others become fewer by it, so that it is still taken when they are not.
    fn relieves(&self) -> bool;
    /// Tells who sent it that nothing will come of it.
    fn refuse(self, why: &Error);
}

/// The sending side; clones share the queue.
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
    queue: ArrayQueue<T>,
    /// Counted where bytes are bounded; the queue itself bounds the number.
    room: Option<Capacity>,
    /// What must not be refused; looked at only while the flag is up.
    sure: Mutex<VecDeque<T>>,
    has_sure: AtomicBool,
    asleep: AtomicBool,
    owner: OnceLock<Thread>,
    /// Why nothing is taken any more.
    closed: OnceLock<Error>,
}

impl<T: Letter> Mailbox<T> {
    /// A mailbox that holds up to `capacity` requests of any size.
    pub fn new(capacity: usize) -> Mailbox<T> {
        Mailbox::bounded(capacity.max(1), None)
    }

    /// A mailbox that holds up to `capacity` requests of together up to `bytes` bytes, and some more that relieve. A
    /// single request fits whatever its size.
    pub fn with_bytes(capacity: usize, bytes: u64) -> Mailbox<T> {
        let room = Capacity::new(capacity.max(1), bytes);
        Mailbox::bounded(room.requests_in_all(), Some(room))
    }

    fn bounded(capacity: usize, room: Option<Capacity>) -> Mailbox<T> {
        Mailbox {
            shared: Arc::new(Shared {
                queue: ArrayQueue::new(capacity),
                room,
                sure: Mutex::default(),
                has_sure: AtomicBool::new(false),
                asleep: AtomicBool::new(false),
                owner: OnceLock::new(),
                closed: OnceLock::new(),
            }),
        }
    }

    /// Puts a request in and wakes the owner if it sleeps; gives the request back when the mailbox is full. A closed
    /// mailbox takes it, and refuses it at once.
    pub fn push(&self, request: T) -> Result<(), T> {
        match &self.shared.room {
            None => self.shared.queue.push(request)?,
            Some(room) => {
                let load = Load::of(request.bytes());
                if !room.enter(load, request.relieves()) {
                    return Err(request);
                }
                self.shared.queue.push(request).inspect_err(|_| room.leave(load))?;
            }
        }
        self.wake();
        // Behind the fence in `wake`, which pairs with the one in `close`: either we see it closed, or it sees our
        // request.
        if let Some(why) = self.shared.closed.get() {
            self.refuse_all(why);
        }
        Ok(())
    }

    /// Puts a request in that must not be refused, before all others. For such as end something that was taken in before,
    /// so that there are never more of them than the bounds on that allow. A closed mailbox refuses it all the same.
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

    /// Wakes the owner if it sleeps.
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

    /// Refuses what is in it and whatever will come: its owner has ended. The first reason stays.
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

    /// Takes the next request.
    pub fn pop(&self) -> Option<T> {
        let mut taken = Load::default();
        let request = self.take(&mut taken);
        self.free(taken);
        request
    }

    /// Takes the next request, and adds it to what has to be given to [`Mailbox::free`]: once for many, since callers
    /// touch the same memory.
    pub fn take(&self, taken: &mut Load) -> Option<T> {
        if self.has_sure()
            && let Some(request) = self.pop_sure()
        {
            return Some(request);
        }
        let request = self.shared.queue.pop()?;
        if self.shared.room.is_some() {
            taken.add(Load::of(request.bytes()));
        }
        Some(request)
    }

    /// Frees the room of requests that were taken.
    pub fn free(&self, taken: Load) {
        if let Some(room) = &self.shared.room {
            room.leave(taken);
        }
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        let sure = if self.has_sure() { self.sure().len() } else { 0 };
        self.shared.queue.len() + sure
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.shared.queue.is_empty() && !self.has_sure()
    }

    /// Makes the calling thread the owner, the one that `push` wakes.
    pub fn own(&self) {
        let _ = self.shared.owner.set(std::thread::current());
    }

    /// Sleeps until a request comes, somebody calls [`Mailbox::wake`], or the time is over. Spurious wake-ups happen.
    /// `busy` tells of other work than requests: who brings it must first make it visible to `busy`, then call `wake`.
    pub fn sleep(&self, at_most: Option<Duration>, busy: impl Fn() -> bool) {
        let has_work = || !self.is_empty() || busy();
        // Under load the next request is a moment away, and waking a thread costs both sides more than that.
        for _ in 0..YIELDS_BEFORE_SLEEP {
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
                        None => mailbox.sleep(None, || false),
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
