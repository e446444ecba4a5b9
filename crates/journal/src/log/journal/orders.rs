//! Orders of an owner who tells what is committed, and reading the log for others.

use std::sync::atomic::Ordering::Relaxed;

use super::DiskJournal;
use crate::log::manifest::Link;
use crate::log::read_back::{LogGone, LogReader};
use crate::log::shared::Order;
use crate::log::uncommitted::Entry;
use crate::seam::batch::Batch;
use crate::seam::event::{Refused, TailError};
use crate::seam::sealed::SealedBatch;

/// Largest hard state in bytes.
const HARD_STATE_BYTES_MAX: usize = 128;

impl DiskJournal {
    /// Seals a batch for the end of the log, and leaves it empty. Its time, in microseconds since the Unix
    /// epoch, is at least that of the batch before.
    pub fn seal(&self, batch: &mut Batch, time_us: u64) -> SealedBatch {
        SealedBatch::seal(batch, self.next_index, self.last_time_us.max(time_us))
    }

    /// Appends a batch under a term that the owner gives; for [`Commit::Told`].
    ///
    /// # Errors
    /// An earlier write or sync has failed: the journal takes nothing any more.
    ///
    /// # Panics
    /// When the batch is sealed for another place, the term or the time is smaller than that of the batch
    /// before, or the journal commits by its own rule.
    ///
    /// [`Commit::Told`]: crate::Commit::Told
    pub fn append(&mut self, term: u64, batch: SealedBatch) -> Result<(), Refused> {
        if let Some(what) = self.shared.failure() {
            return Err(Refused::Failed(what.clone()));
        }
        let (last_term, last_time_us) = self.last();
        let Some(tail) = &mut self.tail else {
            panic!("terms are given to a journal under Commit::Told only")
        };
        assert_eq!(batch.first_index, self.next_index, "a batch is appended where it was sealed for");
        let is_later = term >= last_term && batch.time_us >= last_time_us;
        assert!(is_later, "term and time of a batch, {term} and {}, do not grow", batch.time_us);
        self.next_index += u64::from(batch.records);
        self.last_time_us = batch.time_us;
        let entry = Entry::new(self.next_number, term, batch);
        self.next_number += 1;
        let order = Order::Write(entry.proposal());
        tail.push(entry);
        self.order(order);
        Ok(())
    }

    /// Commits the records up to this one, with which a batch of the tail ends; no error when they are
    /// committed already. `poll` gives them once they are written: others may have made them
    /// durable before this node has.
    ///
    /// # Errors
    /// No batch of the tail ends with the record; nothing was changed.
    pub fn commit(&mut self, index: u64) -> Result<(), TailError> {
        let tail = self.tail.as_mut().ok_or(TailError::NoTail)?;
        tail.commit(index)?;
        self.shared.set_committed(tail.notable_index());
        Ok(())
    }

    /// Cuts the tail from this record on, with which a batch of it begins. At once nothing of it can be read,
    /// and the next batch has this index; [`DiskJournal::durable_orders`] tells when that is durable. Until
    /// then a crash leaves either the whole tail or the cut. Returns whether there was anything to cut: else
    /// it is no order.
    ///
    /// # Errors
    /// The record is committed, or no batch begins with it; nothing was changed.
    pub fn cut(&mut self, index: u64) -> Result<bool, TailError> {
        if let Some(what) = self.shared.failure() {
            return Err(TailError::Failed(what.clone()));
        }
        let tail = self.tail.as_mut().ok_or(TailError::NoTail)?;
        let Some(number) = tail.cut(index)? else { return Ok(false) };
        (_, self.last_time_us) = tail.last();
        (self.next_index, self.next_number) = (index, number);
        self.order(Order::Cut(index));
        Ok(true)
    }

    /// Number that the next batch will have; the first of a log has 1.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The batch of the tail with this number.
    pub fn numbered(&self, number: u64) -> Option<&Entry> {
        self.tail.as_ref().and_then(|tail| tail.numbered(number))
    }

    /// The tail from the batch that holds this record on, durable or not: the batches that
    /// `poll` has not given yet. The owner bounds its memory by what it proposes.
    pub fn tail(&self, index: u64) -> impl Iterator<Item = &Entry> {
        self.tail.iter().flat_map(move |tail| tail.from(index))
    }

    /// Shows a reader the part of the log that it is to read next, of the batches that `poll` or
    /// replay has given: the rest of the segment in which its next batch is. Those that are not given yet are
    /// in [`DiskJournal::tail`].
    ///
    /// # Errors
    /// Compaction has taken the batch away: a snapshot is needed. The reader is unchanged.
    pub fn read_on(&self, reader: &mut LogReader) -> Result<(), LogGone> {
        self.segments.show(reader)
    }

    /// Number and term of the batch behind which the last `bytes` bytes of the log can be read back, and all
    /// behind record `index`, in whole segments and at least the one that grows; number 0: from the first
    /// batch on.
    pub fn before_last(&self, bytes: u64, index: u64) -> (u64, u64) {
        let Link { next_number, term, .. } = self.segments.before_last(bytes, index);
        (next_number - 1, *term)
    }

    /// Keeps the log from the batch of this number on for readers, as far as it is there, until another
    /// number is given: compaction leaves its segments alone, but for those that it is taking away at this
    /// moment. An opening keeps nothing for readers.
    pub fn keep_from(&mut self, number: u64) {
        self.shared.keep_from.store(number, Relaxed);
        // What is not kept any more may go.
        self.shared.released.store(true, Relaxed);
        self.shared.maintenance_signal.notify();
    }

    /// Keeps a hard state of up to 128 bytes, such as term and vote, in place of the one before. It is synced
    /// whatever the durability, before any batch that is proposed later is written;
    /// [`DiskJournal::durable_orders`] tells when. `tells_of_log`: it refers to batches before it,
    /// which are synced first.
    ///
    /// # Panics
    /// When it is longer.
    pub fn hard_state(&mut self, state: &[u8], tells_of_log: bool) {
        let len = state.len();
        assert!(
            len <= HARD_STATE_BYTES_MAX,
            "a hard state has at most {HARD_STATE_BYTES_MAX} bytes, not {len}"
        );
        self.order(Order::HardState { state: state.to_vec(), tells_of_log });
    }

    /// Number of the last order given since the opening; 0: none. Orders are batches with records, cuts and
    /// hard states, which take effect on the disk in the order in which they are given.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// Number of the last order that is durable, with all before it; 0: none. It is as of now, not of the
    /// last `poll`, and the waker is called when it grows. A crash leaves what these orders have
    /// made of the log, and then some of those after them, from the first on.
    ///
    /// A batch is durable as the durability setting asks: with `interval` and `os` it is written, and a power
    /// loss may take it. Cuts and hard states are synced whatever the durability, a cut with every batch
    /// before it. A state counts as durable from the `poll` on that knows it to be in place.
    pub fn durable_orders(&self) -> u64 {
        let durable = self.shared.durable_orders();
        self.installing.map_or(durable, |order| durable.min(order - 1))
    }
}
