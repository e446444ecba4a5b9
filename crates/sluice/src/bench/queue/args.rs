//! What `sluice bench queue` can be told.

use std::path::PathBuf;
use std::time::Duration;

use crate::bench::load::{Amount, NUMBER_BYTES};
use crate::bench::server::ServerOptions;
use crate::config::units::parse_duration;

/// Messages that are in flight in the combined phase, for each message of all workers' batches.
const IN_FLIGHT_PER_BATCH: usize = 4;

/// Measures a server under load: sends, then receives and acks, then both at once.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct QueueArgs {
    /// A server that runs already; by default one is started, with its data in a temporary folder.
    #[arg(long)]
    url: Option<String>,
    /// Messages of each phase.
    #[arg(long, default_value_t = 200_000, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Send for so long instead, as in 30s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    seconds: Option<Duration>,
    /// Bytes of a payload (at least 16: the number of the message stands in it).
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Loops that send, and loops that receive and ack; each has a connection.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    workers: u32,
    /// Messages of a request.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Queues that the workers share.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    queues: u32,
    /// Durability of the server that is started: always, interval:1s, os.
    #[arg(long, default_value = "always")]
    durability: String,
    /// Shards of the server that is started, with as many namespaces.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: u32,
    /// Messages that are moved before anything is measured; by default a twentieth of the messages.
    #[arg(long, value_name = "MESSAGES")]
    warmup: Option<u64>,
    /// Times that the phases are run; the median is told.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [RowKind::Main, RowKind::OwnQueues, RowKind::Lone, RowKind::Batch1])]
    rows: Vec<RowKind>,
    /// Measures sends while this goes on, against sends without it, instead of the rows.
    #[arg(long, value_enum)]
    during: Option<During>,
    /// Most messages sent and not yet acked in the combined phase; by default four batches for each worker.
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: Option<u32>,
    /// Threads of the client's side.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    client_threads: u32,
    /// Where the temporary folder is made, to choose the disk.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A small part of everything, in a few seconds: to see that it works, not for figures.
    #[arg(long)]
    smoke: bool,
}

/// A part of the measurement.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowKind {
    /// The phases as told.
    Main,
    /// One queue for each worker.
    OwnQueues,
    /// One client that sends one message at a time.
    Lone,
    /// Batches of one, against those as told.
    #[value(name = "batch-1")]
    Batch1,
    /// 1, 3 and 6 shards with as many namespaces, each on a server of its own.
    Shards,
}

/// Something that may disturb sends.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum During {
    /// Snapshots and compaction.
    Snapshot,
    /// A bulk that moves a million messages.
    Bulk,
}

/// The arguments as they are used.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) url: Option<String>,
    pub(super) amount: Amount,
    pub(super) payload_bytes: usize,
    pub(super) workers: usize,
    pub(super) batch: usize,
    pub(super) queues: usize,
    pub(super) shards: u32,
    pub(super) durability: String,
    pub(super) warmup: u64,
    pub(super) rounds: u32,
    pub(super) rows: Vec<RowKind>,
    pub(super) during: Option<During>,
    pub(super) in_flight: usize,
    pub(super) client_threads: usize,
    pub(super) dir: PathBuf,
    pub(super) smoke: bool,
}

impl Settings {
    pub(super) fn of(args: &QueueArgs) -> Settings {
        let (workers, batch) = (args.workers as usize, args.batch as usize);
        let amount = match args.seconds {
            Some(_) if args.smoke => Amount::For(Duration::from_millis(500)),
            Some(duration) => Amount::For(duration),
            None if args.smoke => Amount::Messages(args.messages.min(5_000)),
            None => Amount::Messages(args.messages),
        };
        let moved = match amount {
            Amount::Messages(messages) => messages,
            Amount::For(_) => 200_000,
        };
        Settings {
            url: args.url.clone(),
            amount,
            payload_bytes: args.payload as usize,
            workers,
            batch,
            queues: args.queues as usize,
            shards: args.shards,
            durability: args.durability.clone(),
            warmup: args.warmup.unwrap_or(moved / 20),
            rounds: args.rounds,
            rows: args.rows.clone(),
            during: args.during,
            in_flight: args.in_flight.map_or(workers * batch * IN_FLIGHT_PER_BATCH, |most| most as usize),
            client_threads: args.client_threads as usize,
            dir: args.dir.clone().unwrap_or_else(std::env::temp_dir),
            smoke: args.smoke,
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
        ServerOptions { shards, ..ServerOptions::with_durability(&self.durability) }
    }
}
