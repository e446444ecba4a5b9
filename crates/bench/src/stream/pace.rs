//! Sending at a fixed rate, whatever becomes of what was sent before. Each frame is due at a time of its own,
//! and that is when its messages count as sent: what a busy sender comes to late is late, and nothing is left
//! out for it.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::thread::set_current_timer_slack;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::sessions::{Sender, SessionRun, next};
use crate::load::histogram;

/// Slack with which the system may wake the thread that keeps the time, in nanoseconds. Its default of 50 µs
/// would be in each figure.
const WAKE_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// Due times of the frames of a session, by the ledger's clock.
pub(super) type Dues = UnboundedReceiver<u64>;

/// At which rate frames are due, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Messages a second, all sessions together.
    pub(crate) per_s: f64,
    /// From when all sessions are open.
    pub(crate) duration: Duration,
}

/// Keeps the time for the sessions that send: they have their turns, at even distances.
#[derive(Debug)]
pub(super) struct Pace {
    run: Arc<SessionRun>,
    /// Between one frame and the next, of whichever session.
    distance_ns: u64,
    frames: u64,
    sessions: Vec<UnboundedSender<u64>>,
}

impl Pace {
    /// And what tells each session of its frames.
    pub(super) fn new(run: &Arc<SessionRun>, rate: Rate) -> (Pace, Vec<Dues>) {
        let distance_ns = (run.shape.batch as f64 * 1e9 / rate.per_s.max(1.0)).max(1.0) as u64;
        let frames = (rate.duration.as_nanos() as u64).div_ceil(distance_ns);
        let (sessions, dues) = (0..run.shape.sessions).map(|_| unbounded_channel()).unzip();
        (Pace { run: Arc::clone(run), distance_ns, frames, sessions }, dues)
    }

    /// Messages of all frames together.
    pub(super) fn messages(&self) -> u64 {
        self.frames * self.run.shape.batch as u64
    }

    /// Begins when all sessions are there, and ends with the run. When it began, by the ledger's clock.
    pub(super) async fn keep(self) -> Result<u64, String> {
        let all = 2 * self.run.shape.sessions as u32;
        self.run.ready.acquire_many(all).await.map_err(|error| error.to_string())?.forget();
        let keeping = tokio::task::spawn_blocking(move || self.tell_all());
        keeping.await.map_err(|error| format!("nobody keeps the time: {error}"))
    }

    fn tell_all(&self) -> u64 {
        // Without it the figures are a little worse, and still true.
        let _ = set_current_timer_slack(Some(WAKE_SLACK_NS));
        let (began_ns, began) = (self.run.ledger.now_ns(), Instant::now());
        for (frame, session) in (0..self.frames).zip(self.sessions.iter().cycle()) {
            let due = Duration::from_nanos(frame * self.distance_ns);
            if let Some(early) = due.checked_sub(began.elapsed()) {
                std::thread::sleep(early);
            }
            // Fails when the run has failed.
            if session.send(began_ns + due.as_nanos() as u64).is_err() {
                break;
            }
        }
        began_ns
    }
}

/// Sends a frame whenever one is due, until none will be any more. How late each was handed to the
/// connection, in nanoseconds.
pub(super) async fn send_due(run: Arc<SessionRun>, dues: Option<Dues>) -> Result<Histogram<u64>, String> {
    let mut dues = dues.ok_or("a session that nobody tells when to send")?;
    let mut sender = Sender::open(run).await?;
    let batch = sender.run.shape.batch;
    let mut late = histogram()?;
    let mut more = true;
    while more || !sender.pending.is_empty() {
        tokio::select! {
            due_ns = dues.recv(), if more => match due_ns {
                Some(due_ns) => {
                    more = sender.send(batch, due_ns);
                    late.saturating_record(sender.run.ledger.now_ns().saturating_sub(due_ns));
                }
                None => more = false,
            },
            told = next(&mut sender.frames), if !sender.pending.is_empty() => sender.told(told?)?,
        }
    }
    Ok(late)
}
