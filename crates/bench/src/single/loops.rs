//! The loops: producers that send one message at a time, consumers that take one, ack it, and wait for the
//! answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sluice_client::Options;
use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::{Attach, Message, SendMany, SettleMany};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use crate::link::Link;
use crate::load::{Ledger, NUMBER_BYTES, connection, write_number};
use crate::server::Server;
use crate::stream::{check, error_of};

/// Without a further ack for so long a run is given up: something is lost.
const STALLED: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(5);
const QUEUE: &str = "single";

/// The load of the benchmark of single messages: how many loops and connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct SingleLoad {
    pub(super) producers: u32,
    pub(super) consumers: u32,
    pub(super) connections: u32,
    pub(super) prefetch: u32,
    pub(super) payload_bytes: usize,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) messages: u64,
    /// From before the first connection to the last ack that was answered.
    pub(super) seconds: f64,
    /// Deliveries beyond one for each message.
    pub(super) duplicates: u64,
    /// Acks that came too late for their lease.
    pub(super) lease_lost: u64,
}

impl Moved {
    pub(super) fn per_s(&self) -> f64 {
        self.messages as f64 / self.seconds.max(1e-9)
    }
}

/// The state that all loops of a run share.
#[derive(Debug)]
struct SingleRun {
    ledger: Ledger,
    messages: u64,
    payload_bytes: usize,
    deliveries: AtomicU64,
    lease_lost: AtomicU64,
    all_acked: Notify,
}

/// Sends so many messages and acks them, on connections that are made for it.
pub(super) async fn move_all(server: &Server, shape: &SingleLoad, messages: u64) -> Result<Moved, String> {
    let run = Arc::new(SingleRun {
        ledger: Ledger::new(),
        messages,
        payload_bytes: shape.payload_bytes.max(NUMBER_BYTES),
        deliveries: AtomicU64::new(0),
        lease_lost: AtomicU64::new(0),
        all_acked: Notify::new(),
    });
    let start_ns = run.ledger.now_ns();
    let mut tasks = JoinSet::new();
    let links = open_links(server, shape, &mut tasks).await?;
    let link = |number: u32| Arc::clone(&links[number as usize % links.len()]);
    for number in 0..shape.consumers {
        tasks.spawn(Arc::clone(&run).consume(link(number), number + 1, shape.prefetch));
    }
    for number in 0..shape.producers {
        tasks.spawn(Arc::clone(&run).produce(link(number)));
    }
    run.wait(&mut tasks).await?;
    tasks.shutdown().await;
    run.ledger.verify()?;
    let left = connection(server.endpoint())?.queue_delete(QUEUE).await;
    match left.map_err(|error| format!("cannot delete {QUEUE}: {error}"))? {
        0 => {}
        left => return Err(format!("{left} messages were left after everything was acked")),
    }
    Ok(Moved {
        messages,
        seconds: run.ledger.last_ack_ns().saturating_sub(start_ns) as f64 / 1e9,
        duplicates: run.deliveries.load(Ordering::Relaxed) - messages,
        lease_lost: run.lease_lost.load(Ordering::Relaxed),
    })
}

/// Makes the connections side by side, each with a handshake of its own.
async fn open_links(
    server: &Server,
    shape: &SingleLoad,
    tasks: &mut JoinSet<Result<(), String>>,
) -> Result<Vec<Arc<Link>>, String> {
    let mut opening = JoinSet::new();
    for _ in 0..shape.connections {
        // A client each, so that no handshake is spared by what another has learnt.
        let client = server.endpoint().client(Options { gather_frames: false, ..Options::default() })?;
        opening.spawn(async move { Link::open(&client).await });
    }
    let mut links = Vec::new();
    while let Some(opened) = opening.join_next().await {
        let (link, frames) = opened.map_err(|error| format!("a loop failed: {error}"))??;
        tasks.spawn(Arc::clone(&link).hand_on(frames));
        links.push(link);
    }
    Ok(links)
}

impl SingleRun {
    /// Waits until all messages are acked, a loop fails, or no message has moved for a while.
    async fn wait(&self, tasks: &mut JoinSet<Result<(), String>>) -> Result<(), String> {
        let mut looks = interval(LOOK_EVERY);
        let (mut acked, mut since_ns) = (0, self.ledger.now_ns());
        loop {
            tokio::select! {
                biased;
                () = self.all_acked.notified() => return self.all_sent(tasks).await,
                Some(ended) = tasks.join_next() => ended.map_err(|error| format!("a loop failed: {error}"))??,
                _ = looks.tick() => {
                    let now = (self.ledger.acked_count(), self.ledger.now_ns());
                    if now.0 > acked {
                        (acked, since_ns) = now;
                    } else if now.1 - since_ns > STALLED.as_nanos() as u64 {
                        return Err(format!("nothing was acked for {STALLED:?}, with {acked} of {} messages", self.messages));
                    }
                }
            }
        }
    }

    /// A message may be acked before its producer has heard that it was sent.
    async fn all_sent(&self, tasks: &mut JoinSet<Result<(), String>>) -> Result<(), String> {
        while self.ledger.sent_count() < self.messages {
            let ended = timeout(STALLED, tasks.join_next()).await;
            let ended = ended.map_err(|_| format!("no answer to a send for {STALLED:?}"))?;
            ended.transpose().map_err(|error| format!("a loop failed: {error}"))?.transpose()?;
        }
        Ok(())
    }

    async fn produce(self: Arc<SingleRun>, link: Arc<Link>) -> Result<(), String> {
        loop {
            let numbers = self.ledger.take(1, self.messages);
            if numbers.is_empty() {
                return Ok(());
            }
            let mut payload = BytesMut::zeroed(self.payload_bytes);
            write_number(numbers.start, &mut payload);
            let message = Message { payload: payload.freeze(), ..Message::default() };
            self.ledger.sending(numbers.clone(), self.ledger.now_ns());
            let send = SendMany {
                queue: Bytes::from_static(QUEUE.as_bytes()),
                messages: vec![message],
                idempotency_key: Bytes::new(),
            };
            let sent = timeout(STALLED, link.ask(Frame::Send(send))).await;
            check(&sent.map_err(|_| format!("no answer to a send for {STALLED:?}"))??)?;
            self.ledger.sent(numbers);
        }
    }

    async fn consume(
        self: Arc<SingleRun>,
        link: Arc<Link>,
        number: u32,
        prefetch: u32,
    ) -> Result<(), String> {
        let mut deliveries = link.consumer(number);
        let attach = Attach {
            consumer: number,
            queues: vec![Bytes::from_static(QUEUE.as_bytes())],
            credit: prefetch,
            ..Attach::default()
        };
        check(&link.ask(Frame::Attach(attach)).await?)?;
        while let Some(message) = deliveries.recv().await {
            self.deliveries.fetch_add(1, Ordering::Relaxed);
            let message_number = self.ledger.given(&message.payload);
            let ack = SettleMany { items: Vec::new(), acks: vec![message.receipt] };
            let result = link.ask(Frame::Settle(ack)).await?;
            match error_of(&result) {
                None => {}
                Some(error) if error.code == "lease_lost" => {
                    self.lease_lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Some(_) => check(&result)?,
            }
            if let Some(message_number) = message_number {
                self.ledger.acked(message_number, self.ledger.now_ns());
            }
            if self.ledger.acked_count() == self.messages {
                self.all_acked.notify_one();
            }
        }
        Ok(())
    }
}
