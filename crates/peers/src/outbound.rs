//! The direction to a peer: frames that wait, and the connection that takes them.
//!
//! A task of the connection writes what waits. Where few small frames wait, who has put one in writes them
//! itself, without waiting for anything: waking the task and its thread takes longer than that.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use sluice_replica::{Body, Envelope, StateMessage};
use tokio::io::AsyncWrite;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::ALIVE_EVERY;
use crate::frame::Frame;
use crate::outbox::Outbox;
use crate::writer::Writer;

/// Frames for a peer, and the way to it once there is one.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    outbox: Outbox,
    /// Tells the task that something waits.
    filled: Notify,
    /// `None`: before the connection carries frames, and after its end.
    stream: Mutex<Option<Stream>>,
}

struct Stream {
    to: Pin<Box<dyn AsyncWrite + Send>>,
    writer: Writer,
    /// Frames on their way from the outbox to the writer; empty otherwise.
    frames: Vec<Frame>,
    /// Error of a write that was not the task's.
    error: Option<io::Error>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl Stream {
    /// Writes what the writer has, and then what `take` takes out of the outbox; ready when that is nothing.
    fn poll_write(&mut self, cx: &mut Context<'_>, take: impl Fn(&mut Vec<Frame>)) -> Poll<io::Result<()>> {
        loop {
            ready!(self.writer.poll_write(cx, self.to.as_mut()))?;
            take(&mut self.frames);
            if self.frames.is_empty() {
                return Poll::Ready(self.error.take().map_or(Ok(()), Err));
            }
            self.frames.drain(..).for_each(|frame| self.writer.put(&frame));
        }
    }
}

impl Outbound {
    /// Puts in a message; drops older ones beyond the limits.
    pub(crate) fn put_envelope(&self, shard: u16, envelope: Envelope) {
        let is_awaited = is_awaited(&envelope.message.body);
        self.outbox.push_envelope(shard, envelope);
        if !is_awaited || !self.write_few() {
            self.filled.notify_one();
        }
    }

    /// Puts in a request or an answer; drops it when too many wait, so that whoever waits for it does so
    /// until its deadline.
    pub(crate) fn put_call(&self, frame: Frame) {
        self.outbox.push_call(frame);
        self.filled.notify_one();
    }

    /// Puts in a message about a state; drops it beyond the limits.
    pub(crate) fn put_state(&self, shard: u16, message: StateMessage) {
        self.outbox.push_state(shard, message);
        self.filled.notify_one();
    }

    /// Number of messages that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.outbox.dropped()
    }

    /// Writes what waits to the connection, until that fails.
    ///
    /// # Errors
    ///
    /// The error of the connection, which is of no more use.
    pub(crate) async fn run(
        &self,
        to: impl AsyncWrite + Send + 'static,
        writer: Writer,
    ) -> io::Result<Infallible> {
        self.set(Some(Stream { to: Box::pin(to), writer, frames: Vec::new(), error: None }));
        let mut alive = None;
        loop {
            poll_fn(|cx| self.poll_all(cx, &mut alive)).await?;
            if timeout(ALIVE_EVERY, self.filled.notified()).await.is_err() {
                alive = Some(Frame::Alive);
            }
        }
    }

    /// Gives up the connection.
    pub(crate) fn close(&self) {
        self.set(None);
    }

    fn set(&self, stream: Option<Stream>) {
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }

    /// Writes `first` and all that waits.
    fn poll_all(&self, cx: &mut Context<'_>, first: &mut Option<Frame>) -> Poll<io::Result<()>> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stream) = &mut *stream else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        ready!(stream.poll_write(cx, |_| {}))?;
        stream.frames.extend(first.take());
        stream.poll_write(cx, |frames| self.outbox.take(frames))
    }

    /// Writes what waits, if it is little and the connection takes it at once. False: the task has to.
    fn write_few(&self) -> bool {
        let Ok(mut stream) = self.stream.try_lock() else { return false };
        let Some(stream) = &mut *stream else { return false };
        // The task waits for the connection to take the rest, and would not hear of it any more.
        if !stream.writer.is_empty() {
            return false;
        }
        let written =
            stream.poll_write(&mut Context::from_waker(Waker::noop()), |frames| self.outbox.take_few(frames));
        match written {
            Poll::Ready(Ok(())) => self.outbox.is_empty(),
            Poll::Ready(Err(error)) => {
                stream.error = Some(error);
                false
            }
            Poll::Pending => false,
        }
    }
}

/// True for a message for which calls wait: entries, their acknowledgement, and rounds of reads.
fn is_awaited(body: &Body) -> bool {
    match body {
        Body::Append { .. } | Body::Appended { .. } => true,
        Body::Heartbeat { read, .. } | Body::HeartbeatSeen { read, .. } => read.is_some(),
        Body::AppendRefused { .. }
        | Body::AskVote { .. }
        | Body::Vote { .. }
        | Body::TimeoutNow
        | Body::Snapshot(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use sluice_replica::{Content, Descriptor, Entry, Message, NodeId, Position};
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
    use tokio::time::sleep;

    use super::*;
    use crate::decoder::Decoder;

    const FAR_TOO_MUCH: usize = 100 << 10;

    fn envelope(body: Body, batches: Vec<Bytes>) -> Envelope {
        let [from, to] = [1, 2].map(|id| NodeId::new(id).unwrap());
        Envelope::new(Message { from, to, term: 1, body }, batches)
    }

    fn append(index: u64, bytes: usize) -> Envelope {
        let batch = Descriptor { first_record: 1, records: 1, time_us: 1, bytes: bytes as u32, checksum: 0 };
        let entries = vec![Entry { position: Position { term: 1, index }, content: Content::Batch(batch) }];
        let previous = Position { term: 1, index: index - 1 };
        envelope(Body::Append { previous, commit: 0, entries }, vec![Bytes::from(vec![0; bytes])])
    }

    /// Index of the entry in the next frame.
    async fn heard(from: &mut DuplexStream, decoder: &mut Decoder) -> u64 {
        loop {
            match decoder.next_frame().unwrap() {
                None => assert_ne!(from.read_buf(decoder.buffer()).await.unwrap(), 0),
                Some(Frame::Envelope { envelope, .. }) => {
                    let Body::Append { entries, .. } = envelope.message.body else { continue };
                    return entries[0].position.index;
                }
                Some(_) => {}
            }
        }
    }

    fn connected(room: usize) -> (Arc<Outbound>, DuplexStream) {
        let (here, there) = duplex(room);
        let outbound = Arc::new(Outbound::default());
        tokio::spawn({
            let outbound = Arc::clone(&outbound);
            async move { outbound.run(here, Writer::default()).await }
        });
        (outbound, there)
    }

    #[tokio::test]
    async fn few_frames_are_written_by_who_puts_them_in() {
        let (outbound, mut there) = connected(1 << 20);
        sleep(Duration::from_millis(10)).await;
        // Only this task runs: nobody else has written them when the bytes are looked for.
        let (few, much) = (append(5, 100), append(6, FAR_TOO_MUCH));
        outbound.put_envelope(0, few);
        let mut decoder = Decoder::default();
        let read = there.read_buf(decoder.buffer());
        assert!(tokio::time::timeout(Duration::ZERO, read).await.is_ok());
        assert!(decoder.next_frame().unwrap().is_some());
        outbound.put_envelope(0, much);
        assert!(!outbound.outbox.is_empty());
        assert_eq!(heard(&mut there, &mut decoder).await, 6);
    }

    #[tokio::test]
    async fn frames_come_in_their_order_over_a_connection_that_is_full_at_times() {
        let (outbound, mut there) = connected(300);
        let putting = tokio::spawn(async move {
            for index in 2..1_000 {
                outbound.put_envelope(0, append(index, if index % 7 == 0 { 20_000 } else { 90 }));
                if index % 3 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            outbound
        });
        let mut decoder = Decoder::default();
        for index in 2..1_000 {
            assert_eq!(heard(&mut there, &mut decoder).await, index);
        }
        assert!(putting.await.unwrap().outbox.is_empty());
    }

    #[tokio::test]
    async fn an_error_of_who_puts_in_ends_the_connection() {
        let (here, there) = duplex(1 << 10);
        let outbound = Arc::new(Outbound::default());
        let running = tokio::spawn({
            let outbound = Arc::clone(&outbound);
            async move { outbound.run(here, Writer::default()).await }
        });
        sleep(Duration::from_millis(10)).await;
        drop(there);
        outbound.put_envelope(0, append(5, 100));
        assert_eq!(running.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        outbound.close();
        outbound.put_envelope(0, append(6, 100));
    }
}
