//! The way into a shard: a bounded lock-free queue, and one wake-up for as many requests as came meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;

/// How often an owner without work lets other threads run before it goes to sleep: some 20 µs on an idle machine.
const YIELDS_BEFORE_SLEEP: u32 = 50;

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
    asleep: AtomicBool,
    owner: std::sync::OnceLock<Thread>,
}

impl<T> Mailbox<T> {
    /// A mailbox that holds up to `capacity` requests.
    pub fn new(capacity: usize) -> Mailbox<T> {
        let queue = ArrayQueue::new(capacity.max(1));
        Mailbox {
            shared: Arc::new(Shared {
                queue,
                asleep: AtomicBool::new(false),
                owner: std::sync::OnceLock::new(),
            }),
        }
    }

    /// Puts a request in and wakes the owner if it sleeps; gives the request back when the mailbox is full.
    pub fn push(&self, request: T) -> Result<(), T> {
        self.shared.queue.push(request)?;
        self.wake();
        Ok(())
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

    /// Takes the next request.
    pub fn pop(&self) -> Option<T> {
        self.shared.queue.pop()
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        self.shared.queue.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.shared.queue.is_empty()
    }

    /// Makes the calling thread the owner, the one that `push` wakes.
    pub fn own(&self) {
        let _ = self.shared.owner.set(std::thread::current());
    }

    /// Sleeps until a request comes, somebody calls [`Mailbox::wake`], or the time is over. Spurious wake-ups happen.
    /// `busy` tells of other work than requests: who brings it must first make it visible to `busy`, then call `wake`.
    pub fn sleep(&self, at_most: Option<Duration>, busy: impl Fn() -> bool) {
        let has_work = || !self.shared.queue.is_empty() || busy();
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
    use super::*;

    #[test]
    fn a_full_mailbox_gives_the_request_back() {
        let mailbox = Mailbox::new(1);
        assert_eq!(mailbox.push(1), Ok(()));
        assert_eq!(mailbox.push(2), Err(2));
        assert_eq!(mailbox.pop(), Some(1));
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
                        Some(()) => seen += 1,
                        None => mailbox.sleep(None, || false),
                    }
                }
            })
        };
        for _ in 0..10_000 {
            while mailbox.push(()).is_err() {
                std::thread::yield_now();
            }
        }
        owner.join().unwrap();
    }
}
