//! The loops: one that sends over a session, one that works. Each has a session of its own.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hdrhistogram::Histogram;
use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::server_frame::Frame as Told;
use sluice_client::v1::{Attach, Error, FrameResult, Message, SendMany};
use sluice_client::{Client, Frames, Session};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::load::{Amount, Ledger, NUMBER_BYTES, SendTime, histogram, write_number};

/// Wait for a frame, after which a loop checks whether the phase has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Without any progress for so long a run is given up: something is lost.
const STALLED: Duration = Duration::from_secs(60);

/// The load of a benchmark over sessions: how many sessions and messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLoad {
    pub(crate) sessions: usize,
    pub(crate) batch: usize,
    pub(crate) window: usize,
    pub(crate) payload_bytes: usize,
    pub(crate) amount: Amount,
}

/// The state that all loops of a phase share.
#[derive(Debug)]
pub(crate) struct SessionRun {
    pub(super) client: Client,
    pub(super) queue: Bytes,
    pub(super) ledger: Arc<Ledger>,
    pub(super) shape: SessionLoad,
    /// Number of the first message that is not sent any more.
    pub(super) end: u64,
    /// End of sending in time; `None`: the number of messages alone ends it.
    pub(super) until: Option<Instant>,
    /// All that will be sent has been.
    pub(super) sending_done: AtomicBool,
    /// A permit for each session that is open, and attached if it works.
    pub(super) ready: Semaphore,
}

impl SessionRun {
    fn sends_more(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    fn all_acked(&self) -> bool {
        self.sending_done.load(Ordering::Acquire) && self.ledger.acked_count() >= self.ledger.sent_count()
    }

    async fn open(&self) -> Result<(Session, Frames), String> {
        self.client.session().await.map_err(|error| format!("session: {error}"))
    }
}

/// The next frame of a session that goes on.
pub(crate) async fn next(frames: &mut Frames) -> Result<Told, String> {
    let next = timeout(STALLED, frames.next()).await.map_err(|_| format!("nothing came for {STALLED:?}"))?;
    next.map_err(|error| format!("session: {error}"))?.ok_or_else(|| "the session ended".to_owned())
}

/// Checks that every item of a frame succeeded.
pub(crate) fn check(result: &FrameResult) -> Result<(), String> {
    error_of(result).map_or(Ok(()), |error| Err(String::from_utf8_lossy(&error.message).into_owned()))
}

/// The first error of a frame's result.
pub(crate) fn error_of(result: &FrameResult) -> Option<&Error> {
    result.error.as_ref().or_else(|| result.failures.iter().find_map(|failure| failure.error.as_ref()))
}

/// A session that sends.
pub(super) struct Sender {
    pub(super) run: Arc<SessionRun>,
    session: Session,
    pub(super) frames: Frames,
    /// Sends that are not confirmed: number of the frame, number of messages, time of the send.
    pub(super) pending: VecDeque<(u64, Range<u64>, u64)>,
    in_flight: usize,
    pub(super) times: Histogram<u64>,
}

impl Sender {
    pub(super) async fn open(run: Arc<SessionRun>) -> Result<Sender, String> {
        let (session, frames) = run.open().await?;
        run.ready.add_permits(1);
        Ok(Sender { run, session, frames, pending: VecDeque::new(), in_flight: 0, times: histogram()? })
    }

    /// Sends so many messages in one frame, which count as sent at `from_ns` of the ledger; false when there
    /// are none any more.
    pub(super) fn send(&mut self, count: usize, from_ns: u64) -> bool {
        let ledger = &self.run.ledger;
        let numbers = ledger.take(count as u64, self.run.end);
        if numbers.is_empty() {
            return false;
        }
        let bytes = self.run.shape.payload_bytes.max(NUMBER_BYTES);
        // One piece of memory for all payloads of the frame.
        let mut payloads = BytesMut::zeroed(bytes * (numbers.end - numbers.start) as usize);
        for (number, payload) in numbers.clone().zip(payloads.chunks_mut(bytes)) {
            write_number(number, payload);
        }
        let mut payloads = payloads.freeze();
        let messages =
            numbers.clone().map(|_| Message { payload: payloads.split_to(bytes), ..Message::default() });
        let messages = messages.collect();
        ledger.sending(numbers.clone(), from_ns);
        let queue = self.run.queue.clone();
        let frame =
            self.session.send(Frame::Send(SendMany { queue, messages, idempotency_key: Bytes::new() }));
        self.in_flight += (numbers.end - numbers.start) as usize;
        self.pending.push_back((frame, numbers, from_ns));
        true
    }

    pub(super) fn told(&mut self, told: Told) -> Result<(), String> {
        let Told::Result(result) = told else { return Ok(()) };
        check(&result)?;
        let Some(at) = self.pending.iter().position(|(number, ..)| *number == result.number) else {
            return Err(format!("a result of frame {}, which was not sent", result.number));
        };
        if let Some((_, numbers, from_ns)) = self.pending.remove(at) {
            let to_ns = self.run.ledger.now_ns();
            self.in_flight -= (numbers.end - numbers.start) as usize;
            self.times.saturating_record(to_ns - from_ns);
            self.run.ledger.sent_within(numbers, SendTime { from_ns, to_ns });
        }
        Ok(())
    }
}

/// Sends frames, with a window of messages that are not confirmed, until the phase is over. The times of its
/// frames.
pub(super) async fn send(run: Arc<SessionRun>) -> Result<Histogram<u64>, String> {
    let mut sender = Sender::open(run).await?;
    let SessionLoad { batch, window, .. } = sender.run.shape;
    let mut more = true;
    while more || !sender.pending.is_empty() {
        while more && sender.in_flight + batch <= window {
            let now_ns = sender.run.ledger.now_ns();
            more = sender.run.sends_more() && sender.send(batch, now_ns);
        }
        if !sender.pending.is_empty() {
            let told = next(&mut sender.frames).await?;
            sender.told(told)?;
        }
    }
    Ok(sender.times)
}

/// Takes messages as they come and acks them, until all that was sent is acked. The times from send to
/// delivery.
pub(super) async fn work(run: Arc<SessionRun>) -> Result<Histogram<u64>, String> {
    let mut times = histogram()?;
    let (session, mut frames) = run.open().await?;
    let attach = Attach {
        consumer: 1,
        queues: vec![run.queue.clone()],
        credit: run.shape.window as u32,
        ..Attach::default()
    };
    session.send(Frame::Attach(attach));
    match next(&mut frames).await? {
        // It comes before any delivery.
        Told::Result(result) => check(&result)?,
        other => return Err(format!("expected the result of an Attach, got {other:?}")),
    }
    run.ready.add_permits(1);
    let mut pending: VecDeque<(u64, Vec<u64>)> = VecDeque::new();
    let mut last = Instant::now();
    while !(run.all_acked() && pending.is_empty()) {
        let Ok(told) = timeout(LOOK_EVERY, frames.next()).await else {
            if last.elapsed() > STALLED {
                let (acked, sent) = (run.ledger.acked_count(), run.ledger.sent_count());
                return Err(format!("nothing came for {STALLED:?}, with {acked} of {sent} messages acked"));
            }
            continue;
        };
        last = Instant::now();
        match told.map_err(|error| format!("session: {error}"))? {
            Some(Told::Deliveries(deliveries)) => {
                let now_ns = run.ledger.now_ns();
                let mut numbers = Vec::with_capacity(deliveries.messages.len());
                for message in &deliveries.messages {
                    if let Some(number) = run.ledger.given(&message.payload) {
                        times.saturating_record(run.ledger.since_sending(number, now_ns));
                        numbers.push(number);
                    }
                }
                let receipts = deliveries.messages.into_iter().map(|message| message.receipt).collect();
                pending.push_back((session.ack(receipts), numbers));
            }
            Some(Told::Result(result)) => {
                check(&result)?;
                let at = pending.iter().position(|(number, _)| *number == result.number);
                let now_ns = run.ledger.now_ns();
                for number in
                    at.and_then(|at| pending.remove(at)).into_iter().flat_map(|(_, numbers)| numbers)
                {
                    run.ledger.acked(number, now_ns);
                }
            }
            Some(_) => {}
            None => return Err("the session ended".to_owned()),
        }
    }
    Ok(times)
}
