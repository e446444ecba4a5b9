//! The arguments of `sluice bench queue`.

use tempfile::TempDir;

use crate::ReadCredentials;
use crate::load::Amount;
use crate::server::{ServerOptions, Target};
use crate::setup::{AmountArgs, FolderArgs, TargetArgs};

/// Messages that are in flight in the combined phase, for each message of all workers' batches.
const IN_FLIGHT_PER_BATCH: usize = 4;

/// Measures a server under load: sends, then receives and acks, then both at once.
#[derive(clap::Args, Clone, Debug)]
pub struct QueueArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    amount: AmountArgs,
    /// Loops that send, and as many that receive and ack; each has a connection of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    workers: u32,
    /// Messages in each request.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Queues among which the loops are divided.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    queues: u32,
    /// Durability of the server that is started: `always` (sync before each reply), `interval:1s`, or `os`
    /// (no sync).
    #[arg(long, default_value = "always")]
    durability: String,
    /// Shards of the server that is started; the load uses one namespace on each.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: u32,
    /// Messages sent and received before measuring begins [default: a twentieth of the messages].
    #[arg(long, value_name = "MESSAGES")]
    warmup: Option<u64>,
    /// Measurements to run.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = RowKind::USUAL)]
    rows: Vec<RowKind>,
    /// Measure, instead of the rows, what this costs sends that run at the same time.
    #[arg(long, value_enum)]
    during: Option<During>,
    /// Largest number of messages sent and not yet acked while sending and receiving at the same time
    /// [default: four batches for each worker].
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: Option<u32>,
    #[command(flatten)]
    folder: FolderArgs,
}

/// A part of the measurement.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowKind {
    /// Sending, receiving, and both at the same time, with the given workers and batch.
    Main,
    /// The same with a queue for each worker.
    OwnQueues,
    /// One client that sends one message per request and waits for each reply.
    Lone,
    /// Requests of one message, compared with requests of --batch messages.
    #[value(name = "batch-1")]
    Batch1,
    /// Working with receives in transactions, which their commits ack, compared with plain receives and acks.
    Enlisted,
    /// Servers with 1, 3 and 6 shards, and as many namespaces.
    Shards,
}

impl RowKind {
    /// The parts that run when none is named.
    const USUAL: [RowKind; 5] =
        [RowKind::Main, RowKind::OwnQueues, RowKind::Lone, RowKind::Batch1, RowKind::Enlisted];
}

/// Background work during which sends are measured.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum During {
    /// Snapshots and compaction.
    Snapshot,
    /// A bulk change that moves a million messages to another queue.
    Bulk,
}

/// The arguments as they are used.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) target: TargetArgs,
    credentials: ReadCredentials,
    pub(super) folder: FolderArgs,
    pub(super) amount: Amount,
    pub(super) payload_bytes: usize,
    pub(super) workers: usize,
    pub(super) batch: usize,
    pub(super) queues: usize,
    pub(super) shards: u32,
    durability: String,
    pub(super) warmup: u64,
    pub(super) rounds: u32,
    pub(super) rows: Vec<RowKind>,
    pub(super) during: Option<During>,
    pub(super) in_flight: usize,
    pub(super) client_threads: usize,
}

impl Settings {
    pub(super) fn of(args: &QueueArgs, credentials: ReadCredentials) -> Settings {
        let (workers, batch) = (args.workers as usize, args.batch as usize);
        let amount = args.amount.amount(args.folder.smoke);
        let moved = match amount {
            Amount::Messages(messages) => messages,
            Amount::For(_) => 200_000,
        };
        Settings {
            target: args.target.clone(),
            credentials,
            folder: args.folder.clone(),
            amount,
            payload_bytes: args.amount.payload as usize,
            workers,
            batch,
            queues: args.queues as usize,
            shards: args.shards,
            durability: args.durability.clone(),
            warmup: args.warmup.unwrap_or(moved / 20),
            rounds: args.amount.rounds,
            rows: args.rows.clone(),
            during: args.during,
            in_flight: args.in_flight.map_or(workers * batch * IN_FLIGHT_PER_BATCH, |most| most as usize),
            client_threads: args.amount.client_threads as usize,
        }
    }

    /// A part of the amount, for rows that take longer per message.
    pub(super) fn part(&self, divisor: u64) -> Amount {
        match self.amount {
            Amount::Messages(messages) => Amount::Messages((messages / divisor).max(self.batch as u64)),
            Amount::For(duration) => Amount::For(duration / u32::try_from(divisor.min(10)).unwrap_or(1)),
        }
    }

    pub(super) fn server(&self, shards: u32) -> ServerOptions {
        let options = ServerOptions { shards, ..ServerOptions::with_durability(&self.durability) };
        self.target.secured(options)
    }

    /// The server that is measured: one with so many shards, or the one that was named.
    pub(super) fn start(&self, folder: &TempDir, shards: u32) -> Result<Target, String> {
        self.target.start(folder, &self.server(shards), self.credentials)
    }
}
