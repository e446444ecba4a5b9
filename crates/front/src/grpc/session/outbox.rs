//! Output of a session, until the connection takes it. Writers append their frames; everything that has
//! gathered when the connection can take more goes as one piece.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Waking, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HeaderMap;
use http_body::{Body, Frame};
use sluice_engine::id::Receipt;
use sluice_proto::framing::Framer;
use tokio::sync::Notify;

use crate::net::links::AnswerBody;
use crate::net::memory::answers::Share;

/// Bytes that wait above which no deliveries are added.
const DELIVERIES_MAX: usize = 256 << 10;
/// Bytes that wait above which nothing more is read from the client, since it would be answered.
const ANSWERS_MAX: usize = 1 << 20;
/// Most bytes that the connection gets at once: taking them is progress.
const PIECE_BYTES: usize = 64 << 10;

/// The sending side of a session.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<Queued>,
    /// Memory for what waits, and for what is about to.
    share: Arc<Share>,
    /// Told when bytes were taken, and when the connection has gone.
    changed: Notify,
}

#[derive(Debug)]
struct Queued {
    waiting: Framer,
    /// Bytes of deliveries that are about to be added.
    reserved: usize,
    /// Bytes that the connection has taken so far.
    taken: u64,
    /// Deliveries that it has not taken: where each begins, whose it is, and which.
    unsent: VecDeque<(u64, u32, Receipt)>,
    /// Ends the stream once all has been taken.
    trailers: Option<HeaderMap>,
    /// Nothing is added any more.
    is_cut: bool,
    /// The frames of another node, which follow, and the trailers for when they break off.
    passed: Option<(AnswerBody, HeaderMap)>,
    reader: Option<Waker>,
    is_closed: bool,
    added_at: Instant,
}

impl Outbox {
    /// The memory of the frames that wait.
    pub(super) fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// `share`: what it has of the memory for answers.
    pub(super) fn new(share: &Arc<Share>) -> Arc<Outbox> {
        let state = Queued {
            waiting: Framer::default(),
            reserved: 0,
            taken: 0,
            unsent: VecDeque::new(),
            trailers: None,
            is_cut: false,
            passed: None,
            reader: None,
            is_closed: false,
            added_at: Instant::now(),
        };
        let (state, share) = (Mutex::new(state), Arc::clone(share));
        Arc::new(Outbox { state, share, changed: Notify::new() })
    }

    /// Appends one frame.
    pub(super) fn add(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        self.add_deliveries(0, std::iter::empty(), encode);
    }

    /// Appends one frame with deliveries for a consumer.
    pub(super) fn add_deliveries(
        &self,
        consumer: u32,
        receipts: impl Iterator<Item = Receipt>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut state = self.state();
        let begins = state.taken + state.waiting.len() as u64;
        state.unsent.extend(receipts.map(|receipt| (begins, consumer, receipt)));
        if !state.is_cut {
            state.waiting.add(encode);
        }
        state.added_at = Instant::now();
        self.charge(&state);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Ends the stream without the deliveries that the connection has not begun to take, nor what is behind
    /// them: whom they are for may not have them any more.
    pub(super) fn cut(&self, trailers: HeaderMap) {
        let mut state = self.state();
        state.is_cut = true;
        if let Some((begins, ..)) = state.unsent.front() {
            let before = begins.saturating_sub(state.taken) as usize;
            state.waiting.truncate(before);
        }
        self.charge(&state);
        drop(state);
        self.end(trailers);
    }

    /// Ends the stream when all that waits has been taken.
    pub(super) fn end(&self, trailers: HeaderMap) {
        let mut state = self.state();
        state.trailers = Some(trailers);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// Lets the frames of another node follow, which end the stream; with `broken` when they break off.
    pub(super) fn pass(&self, frames: AnswerBody, broken: HeaderMap) {
        let mut state = self.state();
        state.passed = Some((frames, broken));
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// Sets room aside for deliveries of so many bytes, as soon as there is any: what waits and what is about
    /// to may be more than its limit by one of them. Never resolves when the connection has gone.
    pub(super) async fn room_for(&self, bytes: u64) -> OutboxRoom<'_> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        loop {
            self.share.until_room().await;
            self.until(Queued::has_room).await;
            if let Some(room) = self.room_now(bytes) {
                return room;
            }
        }
    }

    fn room_now(&self, bytes: usize) -> Option<OutboxRoom<'_>> {
        let mut state = self.state();
        (state.has_room() && self.share.has_room().is_ok()).then(|| {
            state.reserved = state.reserved.saturating_add(bytes);
            self.charge(&state);
            OutboxRoom { outbox: self, bytes }
        })
    }

    fn charge(&self, state: &Queued) {
        // What is there is counted, whether it fits or not.
        self.share.charge(state.waiting.len().saturating_add(state.reserved));
    }

    /// Resolves when more may be read from the client.
    pub(super) async fn may_answer(&self) {
        self.falls_below(ANSWERS_MAX).await;
    }

    async fn falls_below(&self, bytes: usize) {
        self.until(|state| state.waiting.len() < bytes || state.is_closed).await;
    }

    /// Resolves when the connection has gone.
    pub(super) async fn closed(&self) {
        self.until(|state| state.is_closed).await;
    }

    async fn until(&self, is_so: impl Fn(&Queued) -> bool) {
        if is_so(&self.state()) {
            return;
        }
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look, so that no change is missed after it.
            changed.as_mut().enable();
            if is_so(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    /// Time since something was added.
    pub(super) fn quiet_for(&self) -> Duration {
        self.state().added_at.elapsed()
    }

    /// Deliveries of a consumer that the connection has not taken, not even in part.
    pub(super) fn unsent(&self, consumer: u32) -> Vec<Receipt> {
        let state = self.state();
        let of_consumer = state.unsent.iter().filter(|(_, whose, _)| *whose == consumer);
        of_consumer.map(|(_, _, receipt)| *receipt).collect()
    }

    fn give_back(&self, bytes: usize) {
        let mut state = self.state();
        state.reserved -= bytes;
        self.charge(&state);
        drop(state);
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, Queued> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queued {
    fn has_room(&self) -> bool {
        !self.is_closed && self.waiting.len().saturating_add(self.reserved) < DELIVERIES_MAX
    }
}

impl Queued {
    /// The next frame of another node, as it comes.
    fn poll_passed(&mut self, waking: &mut Waking<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some((frames, broken)) = &mut self.passed else { return Poll::Pending };
        let frame = match ready!(Pin::new(frames).poll_frame(waking)) {
            Some(Ok(frame)) => frame,
            Some(Err(_)) | None => Frame::trailers(std::mem::take(broken)),
        };
        self.added_at = Instant::now();
        if frame.is_trailers() {
            (self.is_closed, self.passed) = (true, None);
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

/// Room for deliveries that are about to be added, until it is dropped.
#[derive(Debug)]
pub(super) struct OutboxRoom<'o> {
    outbox: &'o Outbox,
    bytes: usize,
}

impl Drop for OutboxRoom<'_> {
    fn drop(&mut self) {
        self.outbox.give_back(self.bytes);
    }
}

/// The stream of a session's frames, as the body of its answer.
#[derive(Debug)]
pub(super) struct Outgoing(pub(super) Arc<Outbox>);

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        waking: &mut Waking<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut state = self.0.state();
        if state.waiting.is_empty() {
            if let Some(trailers) = state.trailers.take() {
                state.is_closed = true;
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            if state.is_closed {
                return Poll::Ready(None);
            }
            state.reader = Some(waking.waker().clone());
            return state.poll_passed(waking);
        }
        let piece = state.waiting.take(PIECE_BYTES);
        state.taken += piece.len() as u64;
        let taken = state.taken;
        while state.unsent.front().is_some_and(|(begins, ..)| *begins < taken) {
            state.unsent.pop_front();
        }
        self.0.charge(&state);
        drop(state);
        self.0.changed.notify_waiters();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;
    use sluice_engine::{MessageId, NamespaceId};

    use super::*;
    use crate::net::memory::answers::AnswerMemory;
    use crate::net::memory::budget::Budget;

    fn receipt(token: u64) -> Receipt {
        Receipt { id: MessageId { namespace: NamespaceId(1), sequence: 1 }, token, tag: 0 }
    }

    fn outbox() -> (Arc<Outbox>, Arc<AnswerMemory>) {
        let answers = Arc::new(AnswerMemory::new(1 << 20));
        let share = Share::new(&answers, &Arc::new(Budget::new(1 << 20)));
        (Outbox::new(&Arc::new(share)), answers)
    }

    #[tokio::test]
    async fn what_waits_and_what_is_about_to_is_bounded_and_counted() {
        let (outbox, answers) = outbox();
        let mut outgoing = Outgoing(Arc::clone(&outbox));
        let room = outbox.room_for(DELIVERIES_MAX as u64).await;
        assert_eq!(answers.budget.used(), DELIVERIES_MAX);
        assert!(outbox.room_for(1).now_or_never().is_none());
        outbox.add(|out| out.resize(out.len() + PIECE_BYTES, 0));
        drop(room);
        assert!((PIECE_BYTES..PIECE_BYTES + 10).contains(&answers.budget.used()));
        while answers.budget.used() > 0 {
            assert!(outgoing.frame().await.is_some());
        }
        // Others have all the memory.
        let other = Share::new(&answers, &Arc::new(Budget::new(1 << 20)));
        other.charge(1 << 20);
        assert!(outbox.room_for(1).now_or_never().is_none());
        drop(other);
        assert!(outbox.room_for(1).now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_was_not_taken_is_known() {
        let (outbox, _) = outbox();
        let mut outgoing = Outgoing(Arc::clone(&outbox));
        outbox.add_deliveries(1, [receipt(1)].into_iter(), |out| out.resize(out.len() + PIECE_BYTES, 0));
        outbox.add_deliveries(2, [receipt(2)].into_iter(), |out| out.extend_from_slice(b"b"));
        outbox.add_deliveries(1, [receipt(3)].into_iter(), |out| out.extend_from_slice(b"c"));
        assert_eq!(outbox.unsent(1), [receipt(1), receipt(3)]);
        let _ = outgoing.frame().await;
        assert_eq!((outbox.unsent(1), outbox.unsent(2)), (vec![receipt(3)], vec![receipt(2)]));
        outbox.end(HeaderMap::new());
        let _ = outgoing.frame().await;
        assert!(outbox.unsent(1).is_empty() && outbox.unsent(2).is_empty());
        assert!(outgoing.frame().await.unwrap().unwrap().is_trailers());
        assert!(outgoing.frame().await.is_none());
    }

    #[tokio::test]
    async fn what_is_cut_ends_before_the_first_delivery_that_was_not_begun() {
        let (outbox, answers) = outbox();
        let mut outgoing = Outgoing(Arc::clone(&outbox));
        outbox.add_deliveries(1, [receipt(1)].into_iter(), |out| out.resize(out.len() + PIECE_BYTES, 0));
        outbox.add(|out| out.extend_from_slice(b"an answer"));
        let begun = outgoing.frame().await.unwrap().unwrap().into_data().unwrap();
        outbox.add_deliveries(1, [receipt(2)].into_iter(), |out| out.extend_from_slice(b"late"));
        outbox.cut(HeaderMap::new());
        outbox.add_deliveries(1, [receipt(3)].into_iter(), |out| out.extend_from_slice(b"too late"));
        assert_eq!(outbox.unsent(1), [receipt(2), receipt(3)]);
        let rest = outgoing.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(begun.len() + rest.len(), 5 + PIECE_BYTES + 5 + b"an answer".len());
        assert!(outgoing.frame().await.unwrap().unwrap().is_trailers());
        assert_eq!(answers.budget.used(), 0);
    }

    #[tokio::test]
    async fn who_waits_hears_that_the_connection_has_gone() {
        let (outbox, _) = outbox();
        let outgoing = Outgoing(Arc::clone(&outbox));
        outbox.add(|out| out.resize(DELIVERIES_MAX, 0));
        let waiting = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move {
                outbox.closed().await;
            }
        });
        tokio::task::yield_now().await;
        drop(outgoing);
        waiting.await.unwrap();
    }
}
