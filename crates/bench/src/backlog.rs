//! `sluice bench backlog`: a backlog larger than the cache, in and out; and one old message that stays while
//! much else passes. Told is what memory and disk the server keeps.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sluice_client::{Message, Receive};
use sluice_units::parse_size;

use super::disk::directory_bytes;
use super::load::{Amount, Ledger, Load, NUMBER_BYTES, connection, runtime};
use super::process::{mib, usage};
use super::report::Report;
use super::server::{Server, ServerOptions};
use super::setup::FolderArgs;
use super::table::{Table, figure};

/// Time within which the server must free disk space.
const SHRINK_WITHIN: Duration = Duration::from_secs(60);
/// Directory size that is aimed at after the drain, in bytes.
const DRAINED_BYTES: u64 = 256 << 20;
/// Directory size that one old message may keep, in bytes.
const OLD_BYTES: u64 = 512 << 20;
/// Parts of what passes; memory is looked at after each, and first after one, when cache and tables have
/// their size.
const PARTS: u64 = 10;
const WORKERS: usize = 8;
const BATCH: usize = 64;
const QUEUE: &str = "bench";
const OLD_QUEUE: &str = "old";
const OLD_PAYLOAD: &[u8] = b"the old message";

/// Moves a backlog larger than the cache in and out, then keeps one old message while much else passes.
#[derive(clap::Args, Debug)]
pub struct BacklogArgs {
    /// Messages in the backlog.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Size of each payload in bytes, at least 16: it begins with the number of the message.
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Bytes of payloads sent and acked while the old message stays, for example 10GiB.
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = parse_size)]
    pass: u64,
    /// Size in bytes of each of those payloads.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=128 << 10))]
    pass_payload: u32,
    /// Size of the server's cache of payloads, for example 256MiB.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    cache: String,
    /// Durability of the server: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    #[command(flatten)]
    folder: FolderArgs,
}

/// The arguments as they are used.
struct Settings {
    messages: u64,
    payload_bytes: usize,
    pass_messages: u64,
    pass_payload_bytes: usize,
    server: ServerOptions,
}

impl Settings {
    fn of(args: &BacklogArgs) -> Settings {
        let (messages, pass) = if args.folder.smoke {
            (args.messages.min(20_000), args.pass.min(64 << 20))
        } else {
            (args.messages, args.pass)
        };
        let mut server = ServerOptions::with_durability(&args.durability);
        server.flags.push(format!("--cache={}", args.cache));
        Settings {
            messages,
            payload_bytes: args.payload as usize,
            pass_messages: (pass / u64::from(args.pass_payload)).max(PARTS),
            pass_payload_bytes: args.pass_payload as usize,
            server,
        }
    }
}

pub(super) fn run(args: &BacklogArgs) -> Result<Report, String> {
    let settings = Settings::of(args);
    let folder = args.folder.make()?;
    let mut report = Report::new("backlog", settings.server.durability()).secured(settings.server.security());
    let runtime = runtime(1)?;
    runtime.block_on(in_and_out(&settings, &folder.path().join("backlog"), &mut report))?;
    runtime.block_on(old_message(&settings, &folder.path().join("old"), &mut report))?;
    Ok(report)
}

fn load(server: &Server, payload_bytes: usize) -> Result<Load, String> {
    Load::new(server.endpoint(), &[], &[QUEUE.to_owned()], WORKERS, BATCH, payload_bytes)
}

async fn in_and_out(settings: &Settings, data: &Path, report: &mut Report) -> Result<(), String> {
    let server = Server::start(data, &settings.server)?;
    let load = load(&server, settings.payload_bytes)?;
    let ledger = Arc::new(Ledger::new());
    let sent = load.send(&ledger, Amount::Messages(settings.messages)).await?;
    let full = (usage(server.pid())?, directory_bytes(data)?);
    let worked = load.work(&ledger).await?;
    ledger.verify()?;
    report.check_equal("backlog: messages acked exactly once", settings.messages, ledger.acked_count());
    let shrunk = wait_for_size(data, DRAINED_BYTES)?;
    let peak = usage(server.pid())?.peak_rss_bytes;
    let mut table = Table::new(&["", "messages/s", "memory MiB", "disk MiB"]);
    let mb = |bytes: u64| figure(mib(bytes));
    table.row(vec!["in".to_owned(), figure(sent.per_s()), mb(full.0.rss_bytes), mb(full.1)]);
    table.row(vec![
        "out".to_owned(),
        figure(worked.per_s()),
        mb(usage(server.pid())?.rss_bytes),
        mb(shrunk.bytes),
    ]);
    report.table(&format!("{} messages of {} B", settings.messages, settings.payload_bytes), table);
    report.figure("send_per_s", sent.per_s());
    report.figure("work_per_s", worked.per_s());
    report.figure("peak_rss_mb", mib(peak));
    report.figure("disk_after_mb", mib(shrunk.bytes));
    report.figure("disk_after_s", shrunk.after.as_secs_f64());
    server.stop()
}

async fn old_message(settings: &Settings, data: &Path, report: &mut Report) -> Result<(), String> {
    let server = Server::start(data, &settings.server)?;
    let client = connection(server.endpoint())?;
    let sent = client.send(OLD_QUEUE, &[Message::new(OLD_PAYLOAD)]).await;
    sent.map_err(|error| format!("cannot send the old message: {error}"))?;
    let mut rss_mb = Vec::new();
    for _ in 0..PARTS {
        pass(&server, settings, settings.pass_messages / PARTS).await?;
        rss_mb.push(mib(usage(server.pid())?.rss_bytes));
    }
    let shrunk = wait_for_size(data, OLD_BYTES)?;
    let old = client.receive(&Receive::from_queue(OLD_QUEUE)).await;
    let old = old.map_err(|error| format!("cannot receive the old message: {error}"))?;
    let whole = matches!(old.as_slice(), [message] if message.payload.0 == OLD_PAYLOAD);
    report.check("the old message is whole", if whole { Ok(()) } else { Err(format!("got {old:?}")) });
    report.figure("old_message_disk_mb", mib(shrunk.bytes));
    tell_memory(settings, &rss_mb, report);
    server.stop()
}

fn tell_memory(settings: &Settings, rss_mb: &[f64], report: &mut Report) {
    let (Some(first), Some(last)) = (rss_mb.first(), rss_mb.last()) else { return };
    report.figure("old_message_rss_growth_mb", (last - first).max(0.0));
    report.row("old_message", json!({ "rss_mb_after_each_tenth": rss_mb }));
    let memory: Vec<String> = rss_mb.iter().map(|mb| figure(*mb)).collect();
    report.note(format!(
        "{} MiB passed the old message; memory after each tenth of it, in MiB: {}",
        figure(mib(settings.pass_messages * settings.pass_payload_bytes as u64)),
        memory.join(" ")
    ));
}

/// Sends and works off so many messages, with few waiting at any time.
async fn pass(server: &Server, settings: &Settings, messages: u64) -> Result<(), String> {
    let (senders, workers) =
        (load(server, settings.pass_payload_bytes)?, load(server, settings.pass_payload_bytes)?);
    let ledger = Arc::new(Ledger::new());
    senders.combined(&workers, &ledger, Amount::Messages(messages), 4 * WORKERS * BATCH).await?;
    ledger.verify()
}

/// Size of a data directory after the drain.
struct Shrunk {
    bytes: u64,
    after: Duration,
}

/// Waits until a directory is as small as hoped for, or the time is over.
fn wait_for_size(dir: &Path, hoped_bytes: u64) -> Result<Shrunk, String> {
    let start = Instant::now();
    loop {
        let shrunk = Shrunk { bytes: directory_bytes(dir)?, after: start.elapsed() };
        if shrunk.bytes < hoped_bytes || shrunk.after > SHRINK_WITHIN {
            return Ok(shrunk);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
