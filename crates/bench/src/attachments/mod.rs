//! `sluice bench attachments`: large attachments in and out, each alone and beside sends at a steady rate.
//!
//! `pattern` has the bytes of an attachment, made as they are sent and compared as they come.

mod pattern;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sluice_client::{Client, DocumentPut, Options};
use sluice_units::{parse_duration, parse_size};

use super::disk::file_mb_per_s;
use super::load::{connection, runtime};
use super::process::{mib, reset_peak, usage};
use super::report::Report;
use super::sends::Sends;
use super::server::{Server, ServerOptions};
use super::setup::{FolderArgs, report_of};
use super::table::{Table, figure};
use pattern::{Compared, Pattern};
use sluice_bench_rows::stats::Samples;

/// Document and attachment that are written and read.
const KEY: &str = "attachments";
const NAME: &str = "large";
/// Cache of the server, which is filled before anything is measured: its growth is none of an attachment.
const CACHE: &str = "--cache=64MiB";
const WARM_BYTES: u64 = 256 << 20;
/// Priority of the client of the attachment: the lowest.
const NICE: i32 = 19;
const SMOKE_BYTES: u64 = 8 << 20;
const SMOKE: Duration = Duration::from_millis(300);

/// Measures large attachments: by default with mutual TLS and encryption at rest.
#[derive(clap::Args, Clone, Debug)]
pub struct AttachmentsArgs {
    /// Length of the attachment.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    bytes: u64,
    /// Sends per second beside it, each of one message of 128 bytes.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Connections of the sends; each has one send in flight.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    senders: u32,
    /// Duration of the sends alone.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    seconds: Duration,
    /// Times that all is done; the median is reported.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Durability of the server that is started: `always` (sync before each reply), `interval:1s`, or `os`
    /// (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    /// Start the server without TLS and without encryption of what it stores.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    folder: FolderArgs,
}

impl AttachmentsArgs {
    fn server(&self) -> ServerOptions {
        let options = ServerOptions::with_durability(&self.durability);
        ServerOptions { tls: !self.plain, encryption: !self.plain, flags: vec![CACHE.to_owned()], ..options }
    }

    fn bytes(&self) -> u64 {
        if self.folder.smoke { SMOKE_BYTES } else { self.bytes.max(1) }
    }
}

/// Direction of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    In,
    Out,
}

/// An attachment that was moved.
#[derive(Clone, Copy, Debug)]
struct Moved {
    mb_per_s: f64,
    /// Growth of the server's memory at its peak, in MiB.
    memory_mib: f64,
    /// Processor time of the server for each MiB, in microseconds.
    cpu_us: f64,
}

/// One round.
#[derive(Debug)]
struct Round {
    ways: [Moved; 2],
    /// Times of sends alone, beside an attachment on its way in, and beside one on its way out.
    sends: [Histogram<u64>; 3],
}

pub(super) fn run(args: &AttachmentsArgs) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let options = args.server();
    let mut report = report_of("attachments", &folder, &options)?;
    report.figure("file_mb_per_s", file_mb_per_s(folder.path(), args.bytes())?);
    let server = Server::start(&folder.path().join("data"), &options)?;
    let rounds = measure(args, &server)?;
    server.stop()?;
    tell(args, &rounds, &mut report);
    Ok(report)
}

fn measure(args: &AttachmentsArgs, server: &Server) -> Result<Vec<Round>, String> {
    let client = server.endpoint().client(Options::default())?;
    let document = runtime(1)?.block_on(client.document_put(KEY, &DocumentPut::new(b"x")));
    document.map_err(|error| format!("cannot write the document: {error}"))?;
    let warm = WARM_BYTES.min(args.bytes());
    for way in [Way::In, Way::Out] {
        moved(server, way, warm)?;
    }
    (0..args.rounds).map(|_| round(args, server)).collect()
}

fn round(args: &AttachmentsArgs, server: &Server) -> Result<Round, String> {
    let bytes = args.bytes();
    let sends = || {
        let senders = (0..args.senders).map(|_| connection(server.endpoint()));
        Ok::<_, String>(Sends::begin(senders.collect::<Result<_, _>>()?, args.rate))
    };
    let ways = [watched(server, Way::In, bytes)?, watched(server, Way::Out, bytes)?];
    let alone = sends()?;
    std::thread::sleep(if args.folder.smoke { SMOKE } else { args.seconds });
    let alone = alone.end()?;
    let beside = |way| {
        let beside = sends()?;
        moved(server, way, bytes)?;
        beside.end()
    };
    Ok(Round { ways, sends: [alone, beside(Way::In)?, beside(Way::Out)?] })
}

/// Moves an attachment, and watches the server meanwhile.
fn watched(server: &Server, way: Way, bytes: u64) -> Result<Moved, String> {
    reset_peak(server.pid())?;
    let before = usage(server.pid())?;
    let seconds = moved(server, way, bytes)?;
    let after = usage(server.pid())?;
    Ok(Moved {
        mb_per_s: bytes as f64 / 1e6 / seconds.max(1e-9),
        memory_mib: mib(after.peak_rss_bytes.saturating_sub(before.rss_bytes)),
        cpu_us: after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6 / mib(bytes),
    })
}

/// Moves an attachment; the time that it took, in seconds. The client has a thread that leaves the processor
/// to all others, since it stands for one on another machine.
fn moved(server: &Server, way: Way, bytes: u64) -> Result<f64, String> {
    let client = server.endpoint().client(Options::default())?;
    let thread = std::thread::spawn(move || {
        rustix::process::nice(NICE).map_err(|error| format!("cannot lower a priority: {error}"))?;
        let runtime = runtime(1)?;
        let began = Instant::now();
        runtime.block_on(async {
            match way {
                Way::In => upload(&client, bytes).await,
                Way::Out => download(&client).await,
            }
        })?;
        Ok(began.elapsed().as_secs_f64())
    });
    thread.join().map_err(|_| "the client of the attachment failed".to_owned())?
}

/// Writes an attachment. The server compares the SHA-256 with that of the client.
async fn upload(client: &Client, bytes: u64) -> Result<(), String> {
    let uploaded = client.upload(KEY, NAME, None, &mut Pattern::new(bytes)).await;
    uploaded.map(drop).map_err(|error| format!("cannot write the attachment: {error}"))
}

/// Reads the attachment. The client compares the SHA-256, and each byte.
async fn download(client: &Client) -> Result<(), String> {
    let mut compared = Compared::default();
    let downloaded = client.download(KEY, NAME, &mut compared).await;
    let attachment = downloaded.map_err(|error| format!("cannot read the attachment: {error}"))?;
    if compared.bytes() != attachment.bytes {
        return Err(format!("{} bytes came of {}", compared.bytes(), attachment.bytes));
    }
    Ok(())
}

fn tell(args: &AttachmentsArgs, rounds: &[Round], report: &mut Report) {
    let median = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).collect::<Samples>().median();
    let mut table = Table::new(&["attachment", "MB/s", "server memory + MiB", "server CPU µs/MiB"]);
    for (at, way) in ["in", "out"].into_iter().enumerate() {
        let figures = [
            median(&|round| round.ways[at].mb_per_s),
            median(&|round| round.ways[at].memory_mib),
            median(&|round| round.ways[at].cpu_us),
        ];
        table.row([vec![way.to_owned()], figures.map(figure).to_vec()].concat());
        report.figure(&format!("{way}_mb_per_s"), figures[0]);
        report.figure(&format!("{way}_memory_mib"), figures[1]);
        report.figure(&format!("{way}_server_cpu_us_per_mib"), figures[2]);
    }
    report.table(&format!("{} MiB, alone", figure(mib(args.bytes()))), table);
    let mut table = Table::new(&["sends", "count", "p50 µs", "p99 µs", "p99.9 µs"]);
    let us = |at: usize, percent: f64| {
        median(&|round: &Round| round.sends[at].value_at_percentile(percent) as f64 / 1e3)
    };
    let names = ["alone", "beside one on its way in", "beside one on its way out"];
    for (at, name) in names.into_iter().enumerate() {
        let count = figure(median(&|round| round.sends[at].len() as f64));
        let times = [50.0, 99.0, 99.9].map(|percent| figure(us(at, percent)));
        table.row([vec![name.to_owned(), count], times.to_vec()].concat());
    }
    report.table(&format!("sends at {} per second on {} connections", args.rate, args.senders), table);
    for (at, name) in ["alone", "beside_in", "beside_out"].into_iter().enumerate() {
        report.figure(&format!("send_p99_us_{name}"), us(at, 99.0));
    }
    for (at, name) in [(1, "in"), (2, "out")] {
        report.figure(&format!("send_p99_ratio_{name}"), us(at, 99.0) / us(0, 99.0).max(1e-9));
    }
    // The client fails when the SHA-256 or a byte is another, and a sender when a send is refused.
    report.check("what came back is what was written, by its SHA-256 and byte by byte", Ok(()));
}
