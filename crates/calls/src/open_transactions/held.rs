//! The memory and the room that operations take in an open transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sluice_engine::Error;
use sluice_engine::limits::TRANSACTION_OPERATIONS_MAX;

use super::enlisted::Enlisted;
use super::staged::{EACH_BYTES, Staged};
use super::waits::{Reserved, Waits};
use crate::error::CallError;

/// Most bytes that one transaction holds: 4 MiB.
const STAGED_BYTES_MAX: usize = 4 << 20;
/// Most bytes that all of a node hold together: 64 MiB.
const ALL_BYTES_MAX: usize = 64 << 20;
/// Most bytes with the messages for which receives have waited: 80 MiB. There was memory for each when it
/// began to wait, and to give back what was delivered would count as one of its deliveries.
const DELIVERED_BYTES_MAX: usize = ALL_BYTES_MAX + ALL_BYTES_MAX / 4;

/// Figures of what is staged, for those who look while a call works on it.
#[derive(Default)]
pub(super) struct Figures {
    operations: AtomicUsize,
    bytes: AtomicUsize,
}

impl Figures {
    /// Number of operations, and of bytes.
    pub(super) fn get(&self) -> (usize, usize) {
        (self.operations.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// The memory that all transactions of a node hold together.
pub(super) struct Memory {
    bytes: AtomicUsize,
    /// Ends those that hold some in vain.
    sweep: Box<dyn Fn() + Send + Sync>,
}

impl Memory {
    /// Nothing is held yet.
    pub(super) fn new(sweep: impl Fn() + Send + Sync + 'static) -> Memory {
        Memory { bytes: AtomicUsize::new(0), sweep: Box::new(sweep) }
    }

    /// Number of bytes that are taken.
    pub(super) fn taken(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes bytes, if there are no more than `limit` with them.
    ///
    /// # Errors
    /// `overloaded`.
    fn take(&self, bytes: usize, limit: usize) -> Result<(), Error> {
        if bytes == 0 || self.try_take(bytes, limit) {
            return Ok(());
        }
        (self.sweep)();
        if self.try_take(bytes, limit) { Ok(()) } else { Err(out_of_memory()) }
    }

    fn try_take(&self, bytes: usize, limit: usize) -> bool {
        let fits = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= limit;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Number of messages for which there is memory.
    fn messages(&self) -> usize {
        ALL_BYTES_MAX.saturating_sub(self.taken()) / EACH_BYTES
    }
}

/// Number of messages for which there is memory in all transactions of a node: `max` at most.
///
/// # Errors
/// `overloaded`: for none.
pub(super) fn fitting(memory: &Memory, max: usize) -> Result<usize, Error> {
    if memory.messages() == 0 {
        (memory.sweep)();
    }
    match memory.messages() {
        0 => Err(out_of_memory()),
        fitting => Ok(fitting.min(max)),
    }
}

/// The staged operations, and the memory of them.
pub(crate) struct Held {
    pub(crate) staged: Staged,
    bytes: usize,
    figures: Arc<Figures>,
    waits: Arc<Waits>,
    of_all: Arc<Memory>,
}

impl Held {
    /// Holds nothing yet. `of_all`: the memory of all transactions of the node.
    pub(super) fn new(figures: Arc<Figures>, waits: Arc<Waits>, of_all: Arc<Memory>) -> Held {
        Held { staged: Staged::default(), bytes: 0, figures, waits, of_all }
    }

    /// Replaces what is staged, if there is room for it.
    ///
    /// # Errors
    /// `batch_too_large`: for one transaction; `overloaded`: for all of the node.
    pub(crate) fn replace(&mut self, staged: Staged) -> Result<(), CallError> {
        self.replace_within(ALL_BYTES_MAX, staged)
    }

    fn replace_within(&mut self, limit: usize, staged: Staged) -> Result<(), CallError> {
        let (count, bytes, reserved) = (staged.count(), staged.bytes(), self.waits.reserved());
        counted_at_most(count, reserved)?;
        staged_at_most(bytes + reserved * EACH_BYTES)?;
        self.of_all.take(bytes.saturating_sub(self.bytes), limit)?;
        self.of_all.give_back(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        self.figures.operations.store(count, Ordering::Relaxed);
        self.figures.bytes.store(bytes, Ordering::Relaxed);
        self.staged = staged;
        Ok(())
    }

    /// Sets room aside for messages that a receive waits for: `max` at most, and no more than still fit.
    ///
    /// # Errors
    /// `batch_too_large`: for none; `overloaded`: for none in all transactions of the node.
    pub(crate) fn reserve(&self, max: usize) -> Result<Reserved, CallError> {
        let reserved = self.waits.reserved();
        let (count, bytes) = (self.staged.count(), self.staged.bytes() + reserved * EACH_BYTES);
        staged_at_most(bytes + EACH_BYTES)?;
        counted_at_most(count + 1, reserved)?;
        let of_memory = fitting(&self.of_all, (STAGED_BYTES_MAX - bytes) / EACH_BYTES)?;
        let fitting = of_memory.min(TRANSACTION_OPERATIONS_MAX - count - reserved);
        Ok(self.waits.reserve(max.min(fitting)))
    }

    /// Enlists messages that were received. There was memory for them when they were asked for; room that is
    /// set aside for them is to be free again by now, and nobody else takes it: only who holds this can.
    ///
    /// # Errors
    /// `overloaded`: others have taken far more memory meanwhile.
    pub(crate) fn enlist(&mut self, enlisted: Enlisted) -> Result<(), CallError> {
        let mut staged = self.staged.clone();
        staged.enlist(enlisted);
        self.replace_within(DELIVERED_BYTES_MAX, staged)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of_all.give_back(self.bytes);
    }
}

#[cold]
fn out_of_memory() -> Error {
    Error::Overloaded { what: "bytes of open transactions", retry_after_ms: 1_000 }
}

/// Refuses more operations than a commit has, with those for which receives have set room aside.
fn counted_at_most(count: usize, reserved: usize) -> Result<(), CallError> {
    let (what, size, limit) = ("operations", count + reserved, TRANSACTION_OPERATIONS_MAX);
    if size <= limit {
        return Ok(());
    }
    let (size, limit) = (size as u64, limit as u64);
    if reserved == 0 {
        return Err(Error::BatchTooLarge { what, size, limit }.into());
    }
    let message = format!(
        "the transaction has {count} operations, and receives that wait in it have room for {reserved} \
         messages, the limit is {limit}: wait for their end, or let them ask for fewer with max"
    );
    Err(CallError::new("batch_too_large", message).with(|details| {
        details.text("what", what);
        details.number("size", size);
        details.number("limit", limit);
    }))
}

/// Refuses more than one transaction may hold.
pub(crate) fn staged_at_most(bytes: usize) -> Result<(), Error> {
    if bytes <= STAGED_BYTES_MAX {
        return Ok(());
    }
    let (size, limit) = (bytes as u64, STAGED_BYTES_MAX as u64);
    Err(Error::BatchTooLarge { what: "bytes of an open transaction", size, limit })
}

#[cfg(test)]
impl Memory {
    /// Leaves memory for so many messages, and no more.
    pub(super) fn leave(&self, messages: usize) {
        self.bytes.store(ALL_BYTES_MAX - messages * EACH_BYTES, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluice_engine::id::NamespaceId;

    use super::*;
    use crate::open_transactions::{Led, Open, OpenTransactions};

    fn begin(all: &OpenTransactions) -> Arc<Open> {
        let led = Led { namespace: NamespaceId::DEFAULT, epoch: 1 };
        all.begin(led, Duration::from_secs(50), "ann").unwrap()
    }

    #[tokio::test]
    async fn memory_is_bounded_for_one_and_for_all() {
        let all = OpenTransactions::default();
        let mut held = Vec::new();
        for _ in 0..ALL_BYTES_MAX / STAGED_BYTES_MAX {
            let open = begin(&all);
            let mut one = open.lock(&all).await.unwrap();
            let too_large = one.replace(Staged::of_bytes(STAGED_BYTES_MAX + 1)).unwrap_err();
            assert_eq!(too_large.code(), "batch_too_large");
            one.replace(Staged::of_bytes(STAGED_BYTES_MAX)).unwrap();
            drop(one);
            held.push(open);
        }
        let open = begin(&all);
        let mut one = open.lock(&all).await.unwrap();
        assert_eq!(one.replace(Staged::of_bytes(1)).unwrap_err().code(), "overloaded");
        assert_eq!(one.reserve(1).err().unwrap().code(), "overloaded");
        assert_eq!(all.room_for("ann", 1).unwrap_err().code(), "overloaded");
        held[0].lock(&all).await.unwrap().replace(Staged::of_bytes(5)).unwrap();
        assert_eq!(all.room_for("ann", 9).unwrap(), 9);
        one.replace(Staged::of_bytes(1)).unwrap();
        assert_eq!(one.of_all.taken(), ALL_BYTES_MAX - STAGED_BYTES_MAX + 6);
    }

    #[tokio::test]
    async fn a_receive_asks_for_no_more_than_there_is_memory_for() {
        let all = OpenTransactions::default();
        let memory = begin(&all).lock(&all).await.unwrap().of_all.clone();
        memory.take(ALL_BYTES_MAX - 5 * EACH_BYTES, ALL_BYTES_MAX).unwrap();
        assert_eq!((all.room_for("ann", 3).unwrap(), all.room_for("ann", 1_000).unwrap()), (3, 5));
        memory.take(4 * EACH_BYTES + 1, ALL_BYTES_MAX).unwrap();
        assert_eq!(all.room_for("ann", 1).unwrap_err().code(), "overloaded");
    }

    #[tokio::test]
    async fn room_that_is_set_aside_is_left_by_others() {
        let all = OpenTransactions::default();
        let open = begin(&all);
        let mut held = open.lock(&all).await.unwrap();
        held.replace(Staged::of_bytes(STAGED_BYTES_MAX - 20 * EACH_BYTES)).unwrap();
        let first = held.reserve(15).unwrap();
        let second = held.reserve(1_000).unwrap();
        assert_eq!((first.messages(), second.messages()), (15, 5));
        let told = |held: &Held| held.reserve(1).err().map(|error| error.code());
        assert_eq!(told(&held), Some("batch_too_large"));
        let more = held.replace(Staged::of_bytes(STAGED_BYTES_MAX - 20 * EACH_BYTES + 1));
        assert_eq!(more.unwrap_err().code(), "batch_too_large");
        held.replace(Staged::default()).unwrap();
        assert_eq!(held.reserve(1_000).unwrap().messages(), 980);
        drop((first, second));
        assert_eq!(held.reserve(2_000).unwrap().messages(), 1_000);
        assert_eq!(told(&held), None, "what is not used any more is free");
    }
}
