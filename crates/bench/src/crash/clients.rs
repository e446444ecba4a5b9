//! Clients of a server that is about to be killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_client::{Client, ClientError, Message, Options, Receive};
use tokio::task::JoinSet;

use crate::endpoint::Endpoint;
use crate::load::{Ledger, NUMBER_BYTES, SendTime, write_number};

/// The queue that all work on.
pub(super) const QUEUE: &str = "bench";

/// Most messages acknowledged as sent and not as acked, so that the last drain stays short.
const WAITING_MAX: u64 = 20_000;
const RECEIVE_WAIT: Duration = Duration::from_millis(200);

/// The state that all clients share between one start of the server and its kill.
#[derive(Clone, Debug)]
pub(super) struct Crashing {
    ledger: Arc<Ledger>,
    batch: usize,
    payload_bytes: usize,
    dying: Arc<AtomicBool>,
}

/// Clients at work.
#[derive(Debug)]
pub(super) struct Running {
    tasks: JoinSet<Result<(), String>>,
}

impl Running {
    /// Waits until the last client has noticed.
    pub(super) async fn join(mut self) -> Result<(), String> {
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|error| format!("a client failed: {error}"))??;
        }
        Ok(())
    }
}

impl Crashing {
    pub(super) fn new(ledger: &Arc<Ledger>, batch: usize, payload_bytes: usize) -> Crashing {
        Crashing { ledger: Arc::clone(ledger), batch, payload_bytes, dying: Arc::new(AtomicBool::new(false)) }
    }

    /// From here on a broken connection is no failure.
    pub(super) fn server_dies(&self) {
        self.dying.store(true, Ordering::Release);
    }

    /// Starts so many loops that send, and as many that receive and ack.
    pub(super) fn start(&self, server: &Endpoint, workers: usize) -> Result<Running, String> {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            tasks.spawn(self.clone().send(client(server)?));
            tasks.spawn(self.clone().work(client(server)?));
        }
        Ok(Running { tasks })
    }

    /// Receives and acks until nothing is left.
    pub(super) async fn drain(&self, server: &Endpoint, workers: usize) -> Result<(), String> {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            tasks.spawn(self.clone().work_off(client(server)?));
        }
        Running { tasks }.join().await
    }

    async fn send(self, client: Client) -> Result<(), String> {
        let mut payloads = vec![vec![b'.'; self.payload_bytes.max(NUMBER_BYTES)]; self.batch];
        loop {
            if self.dying.load(Ordering::Acquire) {
                return Ok(());
            }
            if self.ledger.sent_count().saturating_sub(self.ledger.acked_count()) > WAITING_MAX {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            let numbers = self.ledger.take(self.batch as u64, u64::MAX);
            for (number, payload) in numbers.clone().zip(&mut payloads) {
                write_number(number, payload);
            }
            let messages: Vec<Message<'_>> = payloads.iter().map(|payload| Message::new(payload)).collect();
            let from_ns = self.ledger.now_ns();
            self.ledger.sending(numbers.clone(), from_ns);
            match client.send(QUEUE, &messages).await {
                Ok(_) => {
                    let to_ns = self.ledger.now_ns();
                    self.ledger.sent_within(numbers, SendTime { from_ns, to_ns });
                }
                Err(error) => return self.ended_by("send", &error),
            }
        }
    }

    async fn work(self, client: Client) -> Result<(), String> {
        loop {
            if self.dying.load(Ordering::Acquire) {
                return Ok(());
            }
            if let Err((what, error)) = self.work_once(&client).await {
                return self.ended_by(what, &error);
            }
        }
    }

    async fn work_off(self, client: Client) -> Result<(), String> {
        loop {
            let given = self.work_once(&client).await.map_err(|(what, error)| format!("{what}: {error}"))?;
            if given > 0 {
                continue;
            }
            let queue =
                client.queue(QUEUE).await.map_err(|error| format!("cannot look at the queue: {error}"))?;
            if queue.counts.ready + queue.counts.delayed + queue.counts.leased == 0 {
                return Ok(());
            }
        }
    }

    /// Receives once and acks what came; tells how much that was.
    async fn work_once(&self, client: &Client) -> Result<usize, (&'static str, ClientError)> {
        let receive = Receive::from_queue(QUEUE).max(self.batch as u32).wait(RECEIVE_WAIT);
        let delivered = client.receive(&receive).await.map_err(|error| ("receive", error))?;
        if delivered.is_empty() {
            return Ok(0);
        }
        let numbers: Vec<Option<u64>> =
            delivered.iter().map(|message| self.ledger.given(&message.payload.0)).collect();
        for number in numbers.iter().flatten() {
            self.ledger.ack_asked(*number);
        }
        let receipts = delivered.iter().map(|message| message.receipt.as_str());
        let results = client.ack_many(receipts).await.map_err(|error| ("ack", error))?;
        let now = self.ledger.now_ns();
        for (result, number) in results.iter().zip(numbers) {
            // A lease that ended meanwhile is no ack: the message comes again.
            if let (true, Some(number)) = (result.ok, number) {
                self.ledger.acked(number, now);
            }
        }
        Ok(delivered.len())
    }

    fn ended_by(&self, what: &str, error: &ClientError) -> Result<(), String> {
        if error.is_transport() {
            return Ok(());
        }
        Err(format!("{what}: {error}"))
    }
}

/// A client that tries nothing twice, so that each request has one outcome: acknowledged, refused, or
/// unknown.
fn client(server: &Endpoint) -> Result<Client, String> {
    server.client(Options {
        connections_max: 1,
        retry_for: Duration::ZERO,
        connect_retry_for: Duration::ZERO,
        ..Options::default()
    })
}
