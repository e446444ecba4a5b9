//! Sends at a steady rate, whatever else the server does, on a thread of their own: so they do not wait for
//! what the client of the other calls does, which could be on another machine. One that had to wait for the
//! one before is timed from when it was due; another from its begin, since timers are a millisecond fine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;
use sluice_client::{Client, Message};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::load::{histogram, runtime};

const QUEUE: &str = "steady";
const PAYLOAD: [u8; 128] = [b'x'; 128];

/// Senders that run.
pub(super) struct Sends {
    thread: JoinHandle<Result<Histogram<u64>, String>>,
    stop: Arc<AtomicBool>,
}

impl Sends {
    /// Begins to send with these clients, in turn, at a rate for all of them together.
    pub(super) fn begin(clients: Vec<Client>, per_s: u32) -> Sends {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || runtime(1)?.block_on(send_all(clients, per_s, &until)));
        Sends { thread, stop }
    }

    /// Ends them; the times of all sends in nanoseconds.
    pub(super) fn end(self) -> Result<Histogram<u64>, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the senders failed".to_owned())?
    }
}

async fn send_all(
    clients: Vec<Client>,
    per_s: u32,
    stop: &Arc<AtomicBool>,
) -> Result<Histogram<u64>, String> {
    let each = Duration::from_secs(1) / per_s;
    let pause = each * clients.len() as u32;
    let mut tasks = JoinSet::new();
    for (number, client) in (1..).zip(clients) {
        tasks.spawn(send(client, Instant::now() + each * number, pause, Arc::clone(stop)));
    }
    let mut times = histogram()?;
    while let Some(ended) = tasks.join_next().await {
        let own = ended.map_err(|error| format!("a sender failed: {error}"))??;
        times.add(own).map_err(|error| error.to_string())?;
    }
    Ok(times)
}

async fn send(
    client: Client,
    first: Instant,
    pause: Duration,
    stop: Arc<AtomicBool>,
) -> Result<Histogram<u64>, String> {
    let (mut times, mut due) = (histogram()?, first);
    while !stop.load(Ordering::Relaxed) {
        let begun = if Instant::now() < due {
            sleep_until(due).await;
            Instant::now()
        } else {
            due
        };
        let sent = client.send(QUEUE, &[Message::new(&PAYLOAD)]).await;
        sent.map_err(|error| format!("a send failed: {error}"))?;
        times.saturating_record(begun.elapsed().as_nanos() as u64);
        due += pause;
    }
    Ok(times)
}
