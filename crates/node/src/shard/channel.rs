//! Delivery channel of an attached consumer: deliveries wait in it until its reader takes them.
//!
//! Credit bounds their number. Their bytes are kept only up to a limit: beyond it the reader reads them when
//! it comes to them, so that a reader that does not read costs no more memory than its messages' places.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_engine::id::{ConsumerId, Receipt};
use sluice_engine::outcome::Delivery;
use sluice_journal::BlobRead;
use tokio::sync::Notify;

use super::delivery::Given;

/// Upper limit of payload bytes that wait in memory for one reader.
const UNREAD_BYTES_MAX: u64 = 1 << 20;
/// Upper limit of payload bytes that wait in memory for all readers of a node.
const UNREAD_BYTES_OF_ALL_MAX: u64 = 64 << 20;

/// A delivery that was not taken yet.
#[derive(Debug)]
pub(super) struct Unread {
    /// Time of the log from which it is too late to take it, in microseconds.
    pub(super) late_us: u64,
    pub(super) handed: Handed,
}

/// A delivery for a reader.
#[derive(Debug)]
pub enum Handed {
    /// With its bytes, or their location on disk.
    Given(Given),
    /// Without its bytes: the reader looks them up.
    Bare(Delivery),
}

impl Handed {
    /// Receipt, attempt, times.
    pub fn delivery(&self) -> &Delivery {
        match self {
            Handed::Given(given) => &given.delivery,
            Handed::Bare(delivery) => delivery,
        }
    }

    /// True when the reader has to look up the bytes.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self, Handed::Bare(_))
    }

    /// The delivery with its bytes, for changing.
    pub(crate) fn given_mut(&mut self) -> Option<&mut Given> {
        match self {
            Handed::Given(given) => Some(given),
            Handed::Bare(_) => None,
        }
    }

    /// The delivery with its bytes, if it has them.
    pub(crate) fn into_given(self) -> Option<Given> {
        match self {
            Handed::Given(given) => Some(given),
            Handed::Bare(_) => None,
        }
    }

    /// Payload bytes in memory.
    fn bytes(&self) -> u64 {
        match self {
            Handed::Given(Given { blob: BlobRead::Cached(bytes), .. }) => bytes.len() as u64,
            _ => 0,
        }
    }
}

/// Reason for which a consumer gets nothing more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DetachedBy {
    /// The consumer was detached, or its namespace was deleted.
    Asked,
    /// Its reader did not take a message before the end of its lease was near.
    Stalled,
    /// The server is about to stop.
    Draining,
    /// The node does not lead the shard any more. What the reader holds stays its own for a time of grace, in
    /// which it may attach at the next leader and resume.
    SteppedDown,
    /// The shard has ended.
    ShardEnded,
}

/// Content of a channel.
#[derive(Debug)]
pub enum News {
    /// Deliveries.
    Handed(Vec<Handed>),
    /// Receipts of messages that it holds and that were cancelled.
    Cancelled(Vec<Receipt>),
    /// The end: nothing more will come.
    Detached(DetachedBy),
}

/// Channel between a shard and one reader. The shard puts in, once a step; the reader takes out.
#[derive(Debug, Default)]
pub struct Channel {
    state: Mutex<ChannelState>,
    news: Notify,
    unread_bytes: AtomicU64,
    /// Payload bytes waiting in memory in all channels of the node.
    unread_bytes_of_all: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct ChannelState {
    consumer: Option<ConsumerId>,
    unread: VecDeque<Unread>,
    cancelled: Vec<Receipt>,
    reader_gone: bool,
    detached: Option<DetachedBy>,
}

impl ChannelState {
    /// Number of deliveries that a reader takes with these limits; at least one.
    fn fitting(&self, messages: usize, bytes: u64) -> usize {
        let mut left = bytes;
        let fits = |unread: &&Unread| {
            let fits = left > 0;
            left = left.saturating_sub(unread.bytes());
            fits
        };
        self.unread.iter().take(messages).take_while(fits).count().max(1)
    }
}

impl Unread {
    /// Length of its payload in bytes, at least 1.
    fn bytes(&self) -> u64 {
        u64::from(self.handed.delivery().blob.len).max(1)
    }
}

impl Channel {
    /// The channel of another consumer of a node.
    pub(crate) fn new(unread_bytes_of_all: &Arc<AtomicU64>) -> Channel {
        Channel { unread_bytes_of_all: Arc::clone(unread_bytes_of_all), ..Channel::default() }
    }

    fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when more payloads may wait in memory.
    pub(super) fn has_room(&self) -> bool {
        self.unread_bytes.load(Ordering::Relaxed) < UNREAD_BYTES_MAX
            && self.unread_bytes_of_all.load(Ordering::Relaxed) < UNREAD_BYTES_OF_ALL_MAX
    }

    /// Counts the bytes of a delivery that is about to be put in.
    pub(super) fn count_in(&self, handed: &Handed) {
        let bytes = handed.bytes();
        self.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.unread_bytes_of_all.fetch_add(bytes, Ordering::Relaxed);
    }

    fn count_out<'a>(&self, handed: impl Iterator<Item = &'a Handed>) {
        let bytes = handed.map(Handed::bytes).sum();
        self.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.unread_bytes_of_all.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Notes that the consumer is attached. False when the reader has gone meanwhile: then the shard detaches
    /// it.
    pub(super) fn open(&self, consumer: ConsumerId) -> bool {
        let mut state = self.state();
        state.consumer = Some(consumer);
        !state.reader_gone
    }

    /// Puts in deliveries that were counted, and cancellations; wakes the reader.
    pub(super) fn put(&self, unread: &mut Vec<Unread>, cancelled: &mut Vec<Receipt>) {
        let mut state = self.state();
        state.unread.extend(unread.drain(..));
        state.cancelled.append(cancelled);
        drop(state);
        self.news.notify_one();
    }

    /// Ends the channel; returns what was not taken.
    pub(super) fn end(&self, by: DetachedBy) -> impl Iterator<Item = Handed> {
        let mut state = self.state();
        state.detached.get_or_insert(by);
        let unread = std::mem::take(&mut state.unread);
        drop(state);
        self.count_out(unread.iter().map(|unread| &unread.handed));
        self.news.notify_one();
        unread.into_iter().map(|unread| unread.handed)
    }

    /// The earliest time from which a delivery in it is too late to take, in microseconds.
    pub(super) fn late_us(&self) -> Option<u64> {
        self.state().unread.iter().map(|unread| unread.late_us).min()
    }

    /// Takes cancellations first, then deliveries up to these limits, though at least one, then the end.
    /// `None`: there is nothing.
    pub fn take(&self, messages: usize, bytes: u64) -> Option<News> {
        let mut state = self.state();
        if !state.cancelled.is_empty() {
            return Some(News::Cancelled(std::mem::take(&mut state.cancelled)));
        }
        if state.unread.is_empty() {
            return state.detached.map(News::Detached);
        }
        let count = state.fitting(messages, bytes);
        let taken: Vec<Handed> = state.unread.drain(..count).map(|unread| unread.handed).collect();
        drop(state);
        self.count_out(taken.iter());
        Some(News::Handed(taken))
    }

    /// Takes cancellations alone; `None`: there are none, and there is the end.
    pub fn take_cancelled(&self) -> Option<Vec<Receipt>> {
        let mut state = self.state();
        let cancelled = std::mem::take(&mut state.cancelled);
        (state.detached.is_none() || !cancelled.is_empty()).then_some(cancelled)
    }

    /// Payload bytes that [`Channel::take`] would take now, an empty payload counted as 1; 0: something else
    /// than deliveries. `None`: there is nothing.
    pub fn takes(&self, messages: usize, bytes: u64) -> Option<u64> {
        let state = self.state();
        if !state.cancelled.is_empty() || (state.unread.is_empty() && state.detached.is_some()) {
            return Some(0);
        }
        let taken = state.unread.iter().take(state.fitting(messages, bytes));
        (!state.unread.is_empty()).then(|| taken.map(Unread::bytes).sum())
    }

    /// Waits for a change since the latest [`Channel::take`]. May return without one.
    pub async fn wait(&self) {
        self.news.notified().await;
    }

    /// Notes that the reader has gone. Returns the consumer, if it is attached as far as is known here.
    pub fn leave(&self) -> Option<ConsumerId> {
        let mut state = self.state();
        state.reader_gone = true;
        state.consumer.filter(|_| state.detached.is_none())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId};

    use super::*;

    fn handed(sequence: u64, len: u32) -> Handed {
        let id = MessageId { namespace: NamespaceId::DEFAULT, sequence };
        let delivery = Delivery {
            receipt: Receipt { id, token: sequence, tag: 0 },
            queue: QueueId(0),
            blob: BlobRef { index: sequence, item: 0, len },
            lease_until_us: 0,
            sent_at_us: 0,
            attempt: 1,
            max_attempts: 5,
            deliveries: 1,
            priority: 0,
            has_details: false,
        };
        let blob = BlobRead::Cached(Bytes::from(vec![0; len as usize]));
        Handed::Given(Given { delivery, queue: "q".into(), blob, details: None })
    }

    fn put(channel: &Channel, handed: Vec<Handed>) {
        handed.iter().for_each(|handed| channel.count_in(handed));
        let mut unread = handed.into_iter().map(|handed| Unread { late_us: 9, handed }).collect();
        channel.put(&mut unread, &mut Vec::new());
    }

    fn taken(channel: &Channel, messages: usize, bytes: u64) -> usize {
        match channel.take(messages, bytes) {
            Some(News::Handed(handed)) => handed.len(),
            _ => 0,
        }
    }

    #[test]
    fn a_reader_takes_as_much_as_it_says_and_at_least_one() {
        let channel = Channel::default();
        put(&channel, (1..=6).map(|sequence| handed(sequence, 100)).collect());
        assert_eq!(
            (channel.takes(2, 1_000), channel.takes(9, 150), channel.takes(9, 0)),
            (Some(200), Some(200), Some(100))
        );
        assert_eq!([taken(&channel, 2, 200), taken(&channel, 9, 150), taken(&channel, 9, 0)], [2, 2, 1]);
        assert_eq!([taken(&channel, 9, 1_000), taken(&channel, 9, 1_000)], [1, 0]);
        assert_eq!(channel.takes(9, 1_000), None);
        assert_eq!(channel.unread_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn cancellations_are_taken_alone_until_the_end() {
        let channel = Channel::default();
        let receipt = |sequence| handed(sequence, 1).delivery().receipt;
        put(&channel, vec![handed(1, 1)]);
        assert_eq!(channel.take_cancelled(), Some(Vec::new()));
        channel.put(&mut Vec::new(), &mut vec![receipt(1)]);
        assert_eq!(channel.take_cancelled(), Some(vec![receipt(1)]));
        channel.put(&mut Vec::new(), &mut vec![receipt(2)]);
        drop(channel.end(DetachedBy::SteppedDown));
        assert_eq!(channel.take_cancelled(), Some(vec![receipt(2)]));
        assert_eq!(channel.take_cancelled(), None);
    }

    #[test]
    fn bytes_that_wait_are_bounded_for_each_and_for_all() {
        let of_all = Arc::default();
        let (one, other) = (Channel::new(&of_all), Channel::new(&of_all));
        put(&one, vec![handed(1, 1 << 20)]);
        assert!(!one.has_room() && other.has_room());
        of_all.fetch_add(UNREAD_BYTES_OF_ALL_MAX, Ordering::Relaxed);
        assert!(!other.has_room());
        assert_eq!(one.late_us(), Some(9));
        assert_eq!(one.end(DetachedBy::Asked).count(), 1);
        assert_eq!(of_all.load(Ordering::Relaxed), UNREAD_BYTES_OF_ALL_MAX);
    }

    #[test]
    fn either_the_reader_or_the_shard_detaches_whoever_comes_later() {
        let (early, late) = (Channel::default(), Channel::default());
        assert!(early.open(ConsumerId(1)));
        assert_eq!(early.leave(), Some(ConsumerId(1)));
        assert_eq!(late.leave(), None);
        assert!(!late.open(ConsumerId(2)));
        let ended = Channel::default();
        assert!(ended.open(ConsumerId(3)));
        assert_eq!(ended.end(DetachedBy::Draining).count(), 0);
        assert_eq!(ended.leave(), None);
        assert!(matches!(ended.take(1, 1), Some(News::Detached(DetachedBy::Draining))));
    }
}
