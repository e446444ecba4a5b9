//! `sluice bench webhooks`: messages that a server pushes to an HTTPS endpoint in this process, over
//! connections that are kept. They are sent while the pushes are paused, and then pushed as fast as it goes.
//!
//! Map: `receiver` the endpoint, which counts each message.

mod receiver;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use sluice_client::{Client, Message, QueueChange};

use super::certificates::Certificates;
use super::load::{NUMBER_BYTES, connection, runtime, write_number};
use super::process::{Usage, mib, reset_peak, usage};
use super::report::Report;
use super::server::{Server, ServerOptions};
use super::setup::{FolderArgs, report_of};
use super::table::{Table, figure};
use receiver::{Received, Receiver};

const QUEUE: &str = "webhooks";
/// Messages of a send.
const BATCH: u64 = 500;
/// Messages of a smoke test, at most.
const SMOKE_MESSAGES: u64 = 500;
/// A secret for signatures; the endpoint is in this process.
const SECRET: &str = "whsec_c2x1aWNlLWJlbmNoLXdlYmhvb2tzLXNlY3JldC0wMQ==";
/// Time without another ack after which the rest is given up.
const STALLED: Duration = Duration::from_secs(30);
/// Pause between two looks at the queue.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Measures pushes to an HTTPS endpoint.
#[derive(clap::Args, Clone, Debug)]
pub struct WebhooksArgs {
    /// Messages that are pushed.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    messages: u64,
    /// Pushes at a time, each over a connection that is kept.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=256))]
    connections: u32,
    /// Size of each payload in bytes, at least 16.
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Durability of the server: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "always")]
    durability: String,
    #[command(flatten)]
    folder: FolderArgs,
}

pub(super) fn run(args: &WebhooksArgs) -> Result<Report, String> {
    let messages = if args.folder.smoke { args.messages.min(SMOKE_MESSAGES) } else { args.messages };
    let folder = args.folder.make()?;
    let certificates = Certificates::in_folder(&folder.path().join("endpoint"));
    certificates.make(&["127.0.0.1"])?;
    let receiver = Receiver::start(&certificates.server(), messages)?;
    let flags = vec![
        "--push-allowed-addresses=127.0.0.0/8".to_owned(),
        format!("--push-ca={}", certificates.ca().cert.display()),
    ];
    let options = ServerOptions { flags, ..ServerOptions::with_durability(&args.durability) };
    let mut report = report_of("webhooks", &folder, &options)?;
    let server = Server::start(&folder.path().join("data"), &options)?;
    let used = runtime(1)?.block_on(measure(args, messages, &server, &receiver, &mut report))?;
    server.stop()?;
    let received = receiver.stop()?;
    tell(args, messages, &received, used, &mut report);
    Ok(report)
}

/// Sends the messages and lets them be pushed; gives what the server has used meanwhile.
async fn measure(
    args: &WebhooksArgs,
    messages: u64,
    server: &Server,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<[Usage; 2], String> {
    let client = connection(server.endpoint())?;
    let set = async |change: QueueChange| {
        let set = client.queue_set(QUEUE, &change, true).await;
        set.map(drop).map_err(|error| format!("cannot set the queue: {error}"))
    };
    set(QueueChange {
        push_url: Some(receiver.url()),
        push_secrets: Some(vec![SECRET.to_owned()]),
        push_concurrency: Some(args.connections),
        push_headers: Some(BTreeMap::from([("x-bench".to_owned(), "webhooks".to_owned())])),
        push_paused: Some(true),
        ..QueueChange::default()
    })
    .await?;
    send(&client, messages, args.payload as usize).await?;
    reset_peak(server.pid())?;
    let before = usage(server.pid())?;
    set(QueueChange { push_paused: Some(false), ..QueueChange::default() }).await?;
    let acked = wait_for_acks(&client, messages).await?;
    report.check_equal("messages acked", messages, acked);
    Ok([before, usage(server.pid())?])
}

async fn send(client: &Client, messages: u64, payload_bytes: usize) -> Result<(), String> {
    for first in (0..messages).step_by(BATCH as usize) {
        let payload = |number: u64| {
            let mut payload = vec![b'.'; payload_bytes];
            write_number(number, &mut payload);
            payload
        };
        let payloads: Vec<Vec<u8>> = (first..messages.min(first + BATCH)).map(payload).collect();
        let batch: Vec<Message<'_>> = payloads.iter().map(|payload| Message::new(payload)).collect();
        client.send(QUEUE, &batch).await.map_err(|error| format!("cannot send: {error}"))?;
    }
    Ok(())
}

async fn wait_for_acks(client: &Client, messages: u64) -> Result<u64, String> {
    let (mut acked, mut progress) = (0, Instant::now());
    while acked < messages && progress.elapsed() < STALLED {
        tokio::time::sleep(LOOK_PAUSE).await;
        let queue =
            client.queue(QUEUE).await.map_err(|error| format!("cannot look at the queue: {error}"))?;
        if queue.totals.acked != acked {
            (acked, progress) = (queue.totals.acked, Instant::now());
        }
    }
    Ok(acked)
}

fn tell(args: &WebhooksArgs, messages: u64, received: &Received, used: [Usage; 2], report: &mut Report) {
    let [before, after] = used;
    let per_s = messages as f64 / received.took.as_secs_f64().max(1e-9);
    let cpu_us = (after.cpu - before.cpu).as_secs_f64() * 1e6 / messages as f64;
    let peak_mb = mib(after.peak_rss_bytes);
    let mut table =
        Table::new(&["messages", "connections", "pushes/s", "server CPU us/message", "server MiB"]);
    table.row([messages as f64, received.connections as f64, per_s, cpu_us, peak_mb].map(figure).to_vec());
    report.table("pushes over HTTPS", table);
    report.row("webhooks", json!({ "messages": messages, "per_s": per_s, "server_cpu_us": cpu_us }));
    report.figure("per_s", per_s);
    report.figure("server_cpu_us", cpu_us);
    report.figure("server_rss_mb", peak_mb);
    report.check_equal("messages that came exactly once", messages, received.once);
    report.check_equal("pushes without a signature or of no message", 0, received.wrong);
    let kept = received.connections <= u64::from(args.connections);
    let many = || format!("{} connections for {} pushes at a time", received.connections, args.connections);
    report.check("each connection was kept", if kept { Ok(()) } else { Err(many()) });
}
