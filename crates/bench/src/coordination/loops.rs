//! The loops: each worker makes one call after the other, until the time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hdrhistogram::Histogram;
use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::{
    Attach, GroupMessage, Message, SendMany, Settlement, TransactionOperation, TransactionPut,
    TransactionRelease,
};
use tokio::task::JoinSet;

use super::calls::Calls;
use super::queried::Queried;
use crate::link::Deliveries;
use crate::load::{NUMBER_BYTES, histogram, write_number};
use crate::stream::check;

/// The key that all workers want.
const ONE: &[u8] = b"one";
/// The queue of messages that are handed on.
const QUEUE: &[u8] = b"coordination";
/// The namespace on another shard, in which a transaction over two shards writes its document.
pub(super) const OTHER: &str = "documents";

/// Work of the workers.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Acquire with the document, then write it and release as one transaction.
    Cycle,
    /// The same as four calls.
    #[value(name = "cycle4")]
    CycleOfFour,
    /// Reads of documents.
    Read,
    /// Acks a message, writes a document and sends the next message as one transaction.
    #[value(name = "txn")]
    Transaction,
    /// The same with the document in a namespace on another shard.
    #[value(name = "txn2")]
    TransactionAcross,
    /// Acquire and release of one key that all want.
    Contended,
    /// Queries by an index.
    Query,
}

impl Kind {
    /// The number of shards of the server that it needs.
    pub(super) fn shards(self) -> u32 {
        match self {
            Kind::TransactionAcross => 2,
            Kind::Cycle
            | Kind::CycleOfFour
            | Kind::Read
            | Kind::Transaction
            | Kind::Contended
            | Kind::Query => 1,
        }
    }
}

/// The load of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) workers: u32,
    /// Length of each document.
    pub(super) bytes: usize,
    pub(super) queried: Queried,
    pub(super) duration: Duration,
}

/// A run of one kind.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) count: u64,
    pub(super) seconds: f64,
    /// Times from a release to the next grant, in nanoseconds.
    pub(super) handovers: Histogram<u64>,
}

impl Done {
    pub(super) fn per_s(&self) -> f64 {
        self.count as f64 / self.seconds.max(1e-9)
    }
}

/// The state that all workers of a run share.
#[derive(Debug)]
struct Shared {
    kind: Kind,
    bytes: usize,
    queried: Queried,
    until: Instant,
    began: Instant,
    /// When the lock that all want was released last, in nanoseconds since the beginning.
    released_ns: AtomicU64,
}

/// One worker.
struct Worker {
    calls: Calls,
    key: Bytes,
    shared: Arc<Shared>,
    /// Number of its last write, with which the content of its document begins.
    written: u64,
    handovers: Histogram<u64>,
}

/// Runs the workers on these sessions.
pub(super) async fn run(kind: Kind, links: &[Calls], load: Load) -> Result<Done, String> {
    let Load { workers, bytes, queried, duration } = load;
    let began = Instant::now();
    let (until, released_ns) = (began + duration, AtomicU64::new(0));
    let shared =
        Arc::new(Shared { kind, bytes: bytes.max(NUMBER_BYTES), queried, until, began, released_ns });
    let mut tasks = JoinSet::new();
    for number in 0..workers {
        let calls = links[number as usize % links.len()].clone();
        let key = format!("documents/{number}").into();
        let shared = Arc::clone(&shared);
        let worker = Worker { calls, key, shared, written: 0, handovers: histogram()? };
        tasks.spawn(worker.work(number + 1));
    }
    let (mut count, mut handovers) = (0, histogram()?);
    while let Some(ended) = tasks.join_next().await {
        let (own, times) = ended.map_err(|error| format!("a worker failed: {error}"))??;
        count += own;
        handovers.add(&times).map_err(|error| error.to_string())?;
    }
    Ok(Done { count, seconds: began.elapsed().as_secs_f64(), handovers })
}

impl Worker {
    async fn work(mut self, number: u32) -> Result<(u64, Histogram<u64>), String> {
        let mut count = 0;
        let mut deliveries = match self.shared.kind {
            Kind::Transaction | Kind::TransactionAcross => Some(self.attach(number).await?),
            Kind::Cycle | Kind::CycleOfFour | Kind::Read => {
                self.prepare().await?;
                None
            }
            Kind::Contended | Kind::Query => None,
        };
        while Instant::now() < self.shared.until {
            match (self.shared.kind, &mut deliveries) {
                (Kind::Cycle, _) => self.cycle().await?,
                (Kind::CycleOfFour, _) => self.cycle_of_four().await?,
                (Kind::Read, _) => self.read().await?,
                (Kind::Contended, _) => self.contend().await?,
                (Kind::Query, _) => {
                    self.shared.queried.query(&self.calls, count << 10 | u64::from(number)).await?
                }
                (Kind::Transaction | Kind::TransactionAcross, Some(deliveries)) => {
                    self.hand_on(deliveries).await?;
                }
                (Kind::Transaction | Kind::TransactionAcross, None) => {
                    return Err("a worker without deliveries".to_owned());
                }
            }
            count += 1;
        }
        Ok((count, self.handovers))
    }

    /// A content that begins with the number of the write.
    fn content(&mut self) -> Bytes {
        self.written += 1;
        let mut content = BytesMut::zeroed(self.shared.bytes);
        content.fill(b'x');
        write_number(self.written, &mut content);
        content.freeze()
    }

    /// Fails unless this is what the worker wrote last: it alone writes it.
    fn expect(&self, content: Option<&Bytes>) -> Result<(), String> {
        let mut expected = vec![b'x'; self.shared.bytes];
        write_number(self.written, &mut expected);
        match content {
            Some(content) if *content == expected => Ok(()),
            _ => Err(format!("{:?} is not as write {} has left it", self.key, self.written)),
        }
    }

    async fn prepare(&mut self) -> Result<(), String> {
        let content = self.content();
        self.calls.put(&self.key, content, None).await.map(drop)
    }

    fn put(&mut self, token: Option<Bytes>) -> TransactionOperation {
        let (key, content) = (Some(self.key.clone()), Some(self.content()));
        let put = TransactionPut { key, content, token, ..TransactionPut::default() };
        TransactionOperation { put: Some(put), ..TransactionOperation::default() }
    }

    async fn cycle(&mut self) -> Result<(), String> {
        let granted = self.calls.acquire(&self.key, true, false).await?;
        self.expect(granted.document.and_then(|document| document.content).as_ref())?;
        let release = TransactionRelease { token: Some(granted.token.clone()) };
        let release = TransactionOperation { release: Some(release), ..TransactionOperation::default() };
        let operations = vec![self.put(Some(granted.token)), release];
        self.calls.commit(operations).await.map(drop)
    }

    async fn cycle_of_four(&mut self) -> Result<(), String> {
        let token = self.calls.acquire(&self.key, false, false).await?.token;
        self.read().await?;
        let content = self.content();
        self.calls.put(&self.key, content, Some(token.clone())).await?;
        self.calls.release(token).await
    }

    async fn read(&mut self) -> Result<(), String> {
        let document = self.calls.get(&self.key).await?;
        self.expect(document.content.as_ref())
    }

    async fn contend(&mut self) -> Result<(), String> {
        let token = self.calls.acquire(&Bytes::from_static(ONE), false, true).await?.token;
        let now_ns = || self.shared.began.elapsed().as_nanos() as u64;
        let released_ns = self.shared.released_ns.load(Ordering::Acquire);
        if released_ns > 0 {
            self.handovers.saturating_record(now_ns().saturating_sub(released_ns).max(1));
        }
        self.shared.released_ns.store(now_ns(), Ordering::Release);
        self.calls.release(token).await
    }

    /// Becomes a consumer of the queue, and sends the message that it will hand on.
    async fn attach(&self, number: u32) -> Result<Deliveries, String> {
        let deliveries = self.calls.0.consumer(number);
        let queues = vec![Bytes::from_static(QUEUE)];
        let attach = Attach { consumer: number, queues, credit: 1, ..Attach::default() };
        check(&self.calls.0.ask(Frame::Attach(attach)).await?)?;
        let message = Message { payload: Bytes::from_static(b"a message"), ..Message::default() };
        let (queue, messages) = (Bytes::from_static(QUEUE), vec![message]);
        let send = SendMany { queue, messages, ..SendMany::default() };
        check(&self.calls.0.ask(Frame::Send(send)).await?)?;
        Ok(deliveries)
    }

    async fn hand_on(&mut self, deliveries: &mut Deliveries) -> Result<(), String> {
        let delivered = deliveries.recv().await.ok_or("the session has ended")?;
        let (receipt, outcome) = (delivered.receipt, Bytes::from_static(b"ack"));
        let ack = Settlement { receipt, outcome, ..Settlement::default() };
        let (queue, payload) = (Bytes::from_static(QUEUE), Bytes::from_static(b"a message"));
        let send = GroupMessage { queue, payload, ..GroupMessage::default() };
        let namespace =
            (self.shared.kind == Kind::TransactionAcross).then(|| Bytes::from_static(OTHER.as_bytes()));
        let operations = vec![
            TransactionOperation { settle: Some(ack), ..TransactionOperation::default() },
            TransactionOperation { namespace, ..self.put(None) },
            TransactionOperation { send: Some(send), ..TransactionOperation::default() },
        ];
        self.calls.commit(operations).await.map(drop)
    }
}
