//! `sluice bench search`: a queue is filled, and in its middle stand one message with a tag and one that has
//! failed with an error. Each is searched for again and again while messages are sent to another queue at a
//! steady rate, as they are without searches before; then once more with an index of the queue. Each search
//! has to find its one message and no other.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use sluice_client::{
    Client, Message, MessageOptions, MessageSearch, MessagesFound, QueueChange, Receive, Settle, SettleItem,
};
use sluice_units::parse_duration;

use super::load::{Amount, Ledger, Load, NUMBER_BYTES, connection, runtime};
use super::report::Report;
use super::sends::Sends;
use super::server::{Server, ServerOptions};
use super::setup::{FolderArgs, report_of};
use super::table::{Table, figure};
use sluice_bench_rows::stats::Samples;

const QUEUE: &str = "searched";
const TAG: &str = "needle";
const ERROR: &str = "needle: cannot reach 10.0.0.7 after 3021 ms";
const PAYLOAD: &[u8] = b"{\"needle\":true}";
/// Priority of what is to be received next, whatever waits.
const FIRST: u8 = 9;
/// Delay of the message that has failed.
const AWAY: Duration = Duration::from_secs(24 * 3600);
/// Loops that fill the queue, and messages in each of their requests.
const WORKERS: usize = 8;
const BATCH: usize = 500;
/// Connections of the sends beside; each has one send in flight.
const SENDERS: u32 = 8;
const SMOKE: Duration = Duration::from_millis(300);
const SMOKE_MESSAGES: u64 = 5_000;

/// Measures searches for one message among many, and sends beside them.
#[derive(clap::Args, Clone, Debug)]
pub struct SearchArgs {
    /// Messages in the queue that is searched.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    messages: u64,
    /// Size of each payload in bytes, at least 16.
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Sends per second beside the searches, each of one message of 128 bytes.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Duration of the sends without searches, and at least of those with them.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    seconds: Duration,
    /// Durability of the server: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    #[command(flatten)]
    folder: FolderArgs,
}

/// Kinds of searches that an index is for; they come first.
const WITH_INDEX: usize = 2;
/// Pause between two looks whether the index knows all messages.
const INDEX_PAUSE: Duration = Duration::from_millis(50);

/// A kind of search, with a figure of each of its runs.
struct Kind {
    name: &'static str,
    filter: Value,
    /// Id of the message that it has to find.
    expected: String,
    /// Until the message was found, in milliseconds.
    found_ms: Vec<f64>,
    /// Until all messages were looked at, in milliseconds.
    all_ms: Vec<f64>,
    /// Messages that were looked at each second.
    per_s: Vec<f64>,
    /// Calls.
    calls: Vec<f64>,
}

impl SearchArgs {
    fn seconds(&self) -> Duration {
        if self.folder.smoke { SMOKE } else { self.seconds }
    }

    fn messages(&self) -> u64 {
        if self.folder.smoke { SMOKE_MESSAGES.min(self.messages) } else { self.messages }
    }
}

pub(super) fn run(args: &SearchArgs) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let options = ServerOptions::with_durability(&args.durability);
    let mut report = report_of("search", &folder, &options)?;
    let server = Server::start(&folder.path().join("data"), &options)?;
    let runtime = runtime(1)?;
    let mut kinds = runtime.block_on(fill(args, &server))?;
    let without = sends(args, &server)?;
    std::thread::sleep(args.seconds());
    let without = without.end()?;
    let beside = sends(args, &server)?;
    runtime.block_on(search(args, &connection(server.endpoint())?, &mut kinds))?;
    let beside = beside.end()?;
    let mut indexed: Vec<Kind> = kinds[..WITH_INDEX].iter().map(Kind::again).collect();
    let built = runtime.block_on(index(&connection(server.endpoint())?))?;
    let beside_index = sends(args, &server)?;
    runtime.block_on(search(args, &connection(server.endpoint())?, &mut indexed))?;
    let beside_index = beside_index.end()?;
    server.stop()?;
    tell(args, kinds, "", &mut report);
    report.figure("index_built_s", built.as_secs_f64());
    tell(args, indexed, "_with_index", &mut report);
    tell_sends(args, [&without, &beside, &beside_index], &mut report);
    Ok(report)
}

/// Gives the queue an index; tells how long it takes until this knows all messages.
async fn index(client: &Client) -> Result<Duration, String> {
    let failed = |error: &dyn Display| format!("the queue could not get an index: {error}");
    let begun = Instant::now();
    let change = QueueChange { search_index: Some("tags_and_errors".to_owned()), ..QueueChange::default() };
    client.queue_set(QUEUE, &change, false).await.map_err(|error| failed(&error))?;
    let nothing =
        MessageSearch { filter: Some(json!({"/tags": {"contains": "none"}})), ..MessageSearch::default() };
    loop {
        let page = client.message_search(QUEUE, &nothing).await.map_err(|error| failed(&error))?;
        if let MessagesFound { index: Some(_), scanned: 0, next: None, .. } = page {
            return Ok(begun.elapsed());
        }
        tokio::time::sleep(INDEX_PAUSE).await;
    }
}

fn sends(args: &SearchArgs, server: &Server) -> Result<Sends, String> {
    let senders = (0..SENDERS).map(|_| connection(server.endpoint()));
    Ok(Sends::begin(senders.collect::<Result<_, _>>()?, args.rate))
}

/// Fills the queue; tells what is to be searched for.
async fn fill(args: &SearchArgs, server: &Server) -> Result<Vec<Kind>, String> {
    let half = args.messages() / 2;
    let queues = [QUEUE.to_owned()];
    let load = Load::new(server.endpoint(), &[], &queues, WORKERS, BATCH, args.payload as usize)?;
    load.send(&Arc::new(Ledger::new()), Amount::Messages(half)).await?;
    let client = connection(server.endpoint())?;
    let options = MessageOptions { tags: vec![TAG.into()], ..MessageOptions::default() };
    let tagged = Message { options: Some(Box::new(options)), ..Message::new(PAYLOAD) };
    let tagged = send(&client, tagged).await?;
    let failed = send(&client, Message { priority: Some(FIRST), ..Message::new(b"fails") }).await?;
    fail(&client, &failed).await?;
    load.send(&Arc::new(Ledger::new()), Amount::Messages(args.messages() - half)).await?;
    Ok(vec![
        Kind::new("tag", json!({"/tags": {"contains": TAG}}), &tagged),
        Kind::new("error", json!({"/error": ERROR}), &failed),
        Kind::new("state", json!({"/state": "delayed"}), &failed),
        Kind::new("payload", json!({"/payload/needle": true}), &tagged),
    ])
}

/// Sends a message; tells its id.
async fn send(client: &Client, message: Message<'_>) -> Result<String, String> {
    let sent = client.send(QUEUE, &[message]).await.map_err(|error| format!("a send failed: {error}"))?;
    let ids = sent.decode().map_err(|error| format!("a send failed: {error}"))?.ids;
    ids.first().map(ToString::to_string).ok_or_else(|| "a send has no id".to_owned())
}

/// Receives the message of the highest priority, and gives it back as failed.
async fn fail(client: &Client, expected: &str) -> Result<(), String> {
    let told = |error: &dyn Display| format!("a message could not fail: {error}");
    let received = client.receive(&Receive::from_queue(QUEUE)).await.map_err(|error| told(&error))?;
    let delivered = received.iter().find(|one| one.id == expected).ok_or_else(|| told(&"it did not come"))?;
    let nack = Settle::Nack { error: ERROR.to_owned(), delay: Some(AWAY) };
    let settled = client.settle_one(&SettleItem::of(delivered.receipt.as_str(), nack)).await;
    settled.map_err(|error| told(&error))
}

/// Runs each search in turn, at least once and until the time is over.
async fn search(args: &SearchArgs, client: &Client, kinds: &mut [Kind]) -> Result<(), String> {
    let until = Instant::now() + args.seconds();
    loop {
        for kind in kinds.iter_mut() {
            kind.run(client).await?;
        }
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

impl Kind {
    fn new(name: &'static str, filter: Value, expected: &str) -> Kind {
        let (found_ms, all_ms, per_s, calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Kind { name, filter, expected: expected.to_owned(), found_ms, all_ms, per_s, calls }
    }

    /// The same search, without figures.
    fn again(&self) -> Kind {
        Kind::new(self.name, self.filter.clone(), &self.expected)
    }

    /// Searches the whole queue, page by page.
    async fn run(&mut self, client: &Client) -> Result<(), String> {
        let begun = Instant::now();
        let ms = || begun.elapsed().as_secs_f64() * 1e3;
        let (mut found, mut found_ms, mut scanned, mut calls) = (Vec::new(), None, 0, 0);
        let mut next: Option<String> = None;
        loop {
            let filter = Some(self.filter.clone());
            let search = MessageSearch { filter, cursor: next.as_deref(), ..MessageSearch::default() };
            let page = client.message_search(QUEUE, &search).await;
            let page = page.map_err(|error| format!("a search failed: {error}"))?;
            calls += 1;
            scanned += page.scanned;
            found.extend(page.messages.into_iter().map(|message| message.id));
            if !found.is_empty() {
                found_ms.get_or_insert_with(ms);
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        if found != [self.expected.as_str()] {
            return Err(format!("the search by {} has found {found:?}, not {}", self.name, self.expected));
        }
        self.found_ms.extend(found_ms);
        self.all_ms.push(ms());
        self.per_s.push(scanned as f64 / begun.elapsed().as_secs_f64().max(1e-9));
        self.calls.push(f64::from(calls));
        Ok(())
    }
}

fn tell(args: &SearchArgs, kinds: Vec<Kind>, how: &str, report: &mut Report) {
    let mut table = Table::new(&["search by", "found ms", "all ms", "messages/s", "calls"]);
    for Kind { name, found_ms, all_ms, per_s, calls, .. } in kinds {
        let median = |figures: Vec<f64>| figures.into_iter().collect::<Samples>().median();
        let cells = [found_ms, all_ms, per_s, calls].map(median);
        table.row([vec![name.to_owned()], cells.map(figure).to_vec()].concat());
        report.figure(&format!("by_{name}{how}_found_ms"), cells[0]);
        report.figure(&format!("by_{name}{how}_all_ms"), cells[1]);
        report.figure(&format!("by_{name}{how}_messages_per_s"), cells[2]);
    }
    let among = figure(args.messages() as f64);
    report.table(&format!("one message among {among}{}", how.replace('_', " ")), table);
}

fn tell_sends(args: &SearchArgs, [without, beside, beside_index]: [&Histogram<u64>; 3], report: &mut Report) {
    let mut table = Table::new(&["sends", "count", "p50 µs", "p99 µs", "p99.9 µs"]);
    let us = |times: &Histogram<u64>, percent: f64| times.value_at_percentile(percent) as f64 / 1e3;
    for (name, times) in [
        ("without searches", without),
        ("beside searches", beside),
        ("beside searches with index", beside_index),
    ] {
        let cells = [50.0, 99.0, 99.9].map(|percent| figure(us(times, percent)));
        table.row([vec![name.to_owned(), figure(times.len() as f64)], cells.to_vec()].concat());
    }
    report.table(&format!("sends at {} per second on {SENDERS} connections", args.rate), table);
    let without = us(without, 99.0);
    report.figure("send_p99_us_without", without);
    report.figure("send_p99_us_beside", us(beside, 99.0));
    report.figure("send_p99_ratio", us(beside, 99.0) / without.max(1e-9));
    report.figure("send_p99_us_beside_index", us(beside_index, 99.0));
    report.figure("send_p99_ratio_with_index", us(beside_index, 99.0) / without.max(1e-9));
    // A search fails when it finds anything else, and a sender when a send is refused.
    report.check("each search has found its one message and no other", Ok(()));
}
