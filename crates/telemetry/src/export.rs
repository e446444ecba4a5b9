//! The tasks that send: one for each signal, so that none waits for another.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::Options;
use crate::client::{Client, Failed};
use crate::queue::{Counts, Queue};
use crate::wire::Source;

/// Longest time for which an item waits for others to go with it.
const GATHER: Duration = Duration::from_secs(1);
/// First and longest time between two tries of a request.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Tries of a request, after which its items are dropped: some two minutes.
const TRIES: u32 = 8;
/// Shortest time between two lines of the log about failures.
const QUIET: Duration = Duration::from_secs(60);

/// The way of one signal to the collector.
#[derive(Debug)]
pub(crate) struct Export {
    signal: &'static str,
    source: Source,
    client: Mutex<Client>,
    /// Address of the collector, for the log.
    to: String,
    failures: std::sync::Mutex<Failures>,
}

/// Failures that are not in the log yet.
#[derive(Debug, Default)]
struct Failures {
    told_at: Option<Instant>,
    dropped_then: u64,
}

impl Export {
    pub(crate) fn new(options: &Options, signal: &'static str) -> Result<Export, String> {
        Ok(Export {
            signal,
            source: Source::new(&options.version, &options.instance),
            client: Mutex::new(Client::new(options)?),
            to: options.endpoint.to_string(),
            failures: std::sync::Mutex::default(),
        })
    }

    /// Sends what a queue has, until the server stops and it is empty.
    pub(crate) async fn run(self, queue: Arc<Queue>, mut stopping: watch::Receiver<bool>) {
        loop {
            let is_stopping = *stopping.borrow_and_update();
            let items = queue.take();
            if !items.is_empty() {
                self.send(&items, &queue.counts, &mut stopping).await;
                continue;
            }
            if is_stopping {
                return;
            }
            tokio::select! {
                () = queue.filled() => {}
                () = sleep(GATHER) => {}
                // An error means that the server is gone.
                _ = stopping.changed() => {}
            }
        }
    }

    /// Sends a request, again and again while the collector may still take it.
    async fn send(&self, items: &[Vec<u8>], counts: &Counts, stopping: &mut watch::Receiver<bool>) {
        let request = bytes::Bytes::from(self.source.request(items.iter().map(Vec::as_slice)));
        let mut pause = PAUSE;
        for attempt in 1..=TRIES {
            let failed = match self.post(request.clone(), items.len(), counts).await {
                Ok(()) => return,
                Err(failed) => failed,
            };
            let is_last = *stopping.borrow() || attempt == TRIES || matches!(failed, Failed::ForGood(_));
            if is_last {
                counts.dropped.fetch_add(items.len() as u64, Ordering::Relaxed);
            }
            self.tell(&failed, counts);
            if is_last {
                return;
            }
            // Ends early when the server stops: then there is one more try.
            let _ = timeout(pause, stopping.wait_for(|stopping| *stopping)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Sends a request once.
    pub(crate) async fn send_once(&self, items: Vec<Vec<u8>>, counts: &Counts) {
        let request = self.source.request(items.iter().map(Vec::as_slice));
        if let Err(failed) = self.post(request.into(), items.len(), counts).await {
            counts.dropped.fetch_add(items.len() as u64, Ordering::Relaxed);
            self.tell(&failed, counts);
        }
    }

    async fn post(&self, request: bytes::Bytes, items: usize, counts: &Counts) -> Result<(), Failed> {
        let done = self.client.lock().await.post(self.signal, request).await;
        match done {
            Ok(rejected) => {
                let rejected = rejected.min(items as u64);
                counts.sent.fetch_add(items as u64 - rejected, Ordering::Relaxed);
                counts.dropped.fetch_add(rejected, Ordering::Relaxed);
            }
            Err(_) => {
                counts.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        done.map(drop)
    }

    /// Tells the log of a failure, unless it did so a short time ago.
    fn tell(&self, failed: &Failed, counts: &Counts) {
        let mut failures = self.failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if failures.told_at.is_some_and(|at| at.elapsed() < QUIET) {
            return;
        }
        let dropped = counts.dropped.load(Ordering::Relaxed);
        let since = dropped - failures.dropped_then;
        *failures = Failures { told_at: Some(Instant::now()), dropped_then: dropped };
        let (signal, to) = (self.signal, &self.to);
        tracing::warn!(
            "telemetry: {signal} do not reach {to}: {failed}; {since} dropped since the last report"
        );
    }
}
