//! The memory that answers take, from before they are made until their clients have read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sluice_calls::hot::receive::Room;
use sluice_calls::room::AnswerRoom;
use sluice_engine::Error;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::budget::Budget;

/// Wait after which a client that was refused for lack of memory may come back.
const RETRY_AFTER_MS: u64 = 1_000;
/// Room without which nothing is begun: less is not worth a receive.
const ROOM_MIN: usize = 4 << 10;
/// Most room that one receive sets aside: as much as a receive hands out at most.
const ROOM_MAX: usize = 16 << 20;
/// Part of the free memory that an answer gets at most which can be cut short.
const PART_OF_FREE: usize = 4;
/// Bytes that an answer takes for a message beside its contents.
const MESSAGE_BYTES: usize = 1 << 10;

/// Interval in which a caller that waits for room checks by itself.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The answers of a server in memory.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    pub(crate) budget: Budget,
    /// Number of callers that wait for bytes to be given back.
    waiting: AtomicUsize,
    /// Wakes these callers.
    given_back: Notify,
}

impl AnswerMemory {
    pub(crate) fn new(bytes_max: usize) -> AnswerMemory {
        AnswerMemory {
            budget: Budget::new(bytes_max),
            waiting: AtomicUsize::new(0),
            given_back: Notify::new(),
        }
    }
}

/// The memory of one answer in the budgets of its server and its connection; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    server: Arc<AnswerMemory>,
    connection: Arc<Budget>,
    bytes: AtomicUsize,
    /// True when the answer is cut to its room, but for a first message that may be larger.
    is_cut: AtomicBool,
}

impl Share {
    pub(crate) fn new(server: &Arc<AnswerMemory>, connection: &Arc<Budget>) -> Share {
        Share {
            server: Arc::clone(server),
            connection: Arc::clone(connection),
            bytes: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
        }
    }

    /// The memory of another answer to the same connection, which has none yet.
    pub(crate) fn another(&self) -> Share {
        Share::new(&self.server, &self.connection)
    }

    /// Checks that there is memory to begin a call whose answer is more than a few bytes.
    ///
    /// # Errors
    /// `overloaded`.
    pub(crate) fn has_room(&self) -> Result<(), Error> {
        if self.free() < ROOM_MIN { Err(no_room()) } else { Ok(()) }
    }

    /// Sets room aside for an answer of so many bytes, instead of what was set aside before.
    ///
    /// # Errors
    /// `overloaded`, or `batch_too_large` for more than there will ever be; then what was set aside before
    /// stays.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Error> {
        let before = self.bytes.load(Ordering::Relaxed);
        if self.charge(bytes) {
            return Ok(());
        }
        self.charge(before);
        let limit = self.server.budget.max().min(self.connection.max());
        Err(if bytes > limit { too_large(bytes, limit) } else { no_room() })
    }

    /// Sets room aside for an answer that was made, instead of what was set aside before. One that was cut,
    /// and is yet larger than a budget since a message is, has room when nothing else takes any.
    ///
    /// # Errors
    /// `overloaded`; then what was set aside before stays.
    pub(crate) fn reserve_made(&self, bytes: usize) -> Result<(), Error> {
        let bytes_max = self.server.budget.max().min(self.connection.max());
        let is_cut = self.is_cut.load(Ordering::Relaxed);
        self.reserve(if is_cut { bytes.min(bytes_max) } else { bytes })
    }

    /// Sets room aside for an answer that can be cut short: as much as is wanted, or a part of what is free.
    /// Tells how much.
    ///
    /// # Errors
    /// `overloaded`.
    pub(crate) fn reserve_up_to(&self, bytes: usize) -> Result<usize, Error> {
        let bytes = bytes.min(self.free() / PART_OF_FREE).max(ROOM_MIN);
        self.is_cut.store(true, Ordering::Relaxed);
        self.reserve(bytes).map(|()| bytes)
    }

    /// The answer takes so many bytes, whatever was thought before. Tells whether they fit.
    pub(crate) fn charge(&self, bytes: usize) -> bool {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        let fits = self.server.budget.change(before, bytes) & self.connection.change(before, bytes);
        if bytes < before && self.server.waiting.load(Ordering::Relaxed) > 0 {
            self.server.given_back.notify_waiters();
        }
        fits
    }

    /// Resolves when [`Share::has_room`].
    pub(crate) async fn until_room(&self) {
        if self.has_room().is_ok() {
            return;
        }
        let _waits = Waits::new(&self.server.waiting);
        while self.has_room().is_err() {
            // Whoever gave back just before this one was counted has woken nobody.
            let _ = timeout(LOOK_AGAIN, self.server.given_back.notified()).await;
        }
    }

    fn free(&self) -> usize {
        self.server.budget.free().min(self.connection.free())
    }
}

/// One more that waits, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Waits<'a> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AnswerRoom for Share {
    fn reserve(&self, bytes: usize) -> Result<(), Error> {
        Share::reserve(self, bytes)
    }

    fn reserve_up_to(&self, bytes: usize) -> Result<usize, Error> {
        Share::reserve_up_to(self, bytes)
    }
}

/// Asked by the shard just before it takes messages for a receive. The answer has room for contents that JSON
/// writes in up to twice as many bytes; it may become larger by more escapes, and by one message, since a
/// receive gives at least one.
impl Room for Share {
    fn take(&self, messages: u64, bytes: u64) -> Option<u32> {
        let likely = (bytes as usize).saturating_mul(2).saturating_add(MESSAGE_BYTES * messages as usize);
        let bytes = likely.min(self.free()).clamp(ROOM_MIN, ROOM_MAX);
        self.reserve(bytes).ok().map(|()| bytes as u32)
    }

    fn put_back(&self) {
        self.charge(0);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.charge(0);
    }
}

fn too_large(bytes: usize, limit: usize) -> Error {
    Error::BatchTooLarge { what: "bytes that the answer may take", size: bytes as u64, limit: limit as u64 }
}

fn no_room() -> Error {
    Error::Overloaded { what: "unread answers", retry_after_ms: RETRY_AFTER_MS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_within_both_budgets_and_come_back() {
        let answers = Arc::new(AnswerMemory::new(100_000));
        let (one, other) = (Arc::new(Budget::new(60_000)), Arc::new(Budget::new(60_000)));
        let first = Share::new(&answers, &one);
        first.reserve(50_000).unwrap();
        first.reserve(55_000).unwrap();
        assert_eq!(first.reserve(60_001).unwrap_err().code(), "batch_too_large");
        assert_eq!((answers.budget.used(), one.used()), (55_000, 55_000));
        let second = Share::new(&answers, &other);
        assert!(second.reserve(45_001).is_err());
        second.reserve(45_000).unwrap();
        assert!(Share::new(&answers, &other).has_room().is_err());
        // What is there is counted, even if it does not fit.
        assert!(!second.charge(50_000));
        assert_eq!(answers.budget.used(), 105_000);
        first.reserve(10).unwrap();
        drop((first, second));
        assert_eq!((answers.budget.used(), one.used(), other.used()), (0, 0, 0));
    }

    #[test]
    fn a_message_larger_than_a_budget_has_room_when_nothing_else_takes_any() {
        let answers = Arc::new(AnswerMemory::new(100_000));
        let connection = Arc::new(Budget::new(60_000));
        let share = Share::new(&answers, &connection);
        assert_eq!(share.reserve_made(300_000).unwrap_err().code(), "batch_too_large");
        share.reserve_up_to(16_000).unwrap();
        share.reserve_made(300_000).unwrap();
        let other = Share::new(&answers, &connection);
        assert_eq!(other.reserve_up_to(16_000).unwrap_err().code(), "overloaded");
        drop(share);
        other.reserve_up_to(16_000).unwrap();
        other.reserve_made(300_000).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_room_has_it_when_bytes_are_given_back() {
        let answers = Arc::new(AnswerMemory::new(100_000));
        let share = || Share::new(&answers, &Arc::new(Budget::new(100_000)));
        let (full, waiting) = (share(), share());
        full.charge(100_000);
        let waits = tokio::spawn(async move { waiting.until_room().await });
        tokio::task::yield_now().await;
        assert_eq!((waits.is_finished(), answers.waiting.load(Ordering::Relaxed)), (false, 1));
        full.charge(50_000);
        waits.await.unwrap();
        assert_eq!(answers.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_receive_gets_what_its_messages_need_and_thousands_fit() {
        let answers = Arc::new(AnswerMemory::new(256 << 20));
        let mut shares = Vec::new();
        for _ in 0..3_000 {
            let share = Share::new(&answers, &Arc::new(Budget::new(64 << 20)));
            assert!(share.take(16, 32 << 10).unwrap() >= 64 << 10);
            shares.push(share);
        }
        while let Some(share) = shares.pop() {
            share.put_back();
        }
        assert_eq!(answers.budget.used(), 0);
        let large = Share::new(&answers, &Arc::new(Budget::new(64 << 20)));
        assert_eq!(large.take(1_000, u64::MAX / 4), Some(16 << 20));
    }
}
