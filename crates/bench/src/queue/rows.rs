//! The rows beside the main one: a queue for each worker, a lone client, batches of one, receives in
//! transactions, several shards.

use std::path::Path;

use serde_json::json;
use sluice_client::{Client, QuotaChange};

use super::args::{RowKind, Settings};
use super::phases::{QueueLoad, QueuePhases, run, work_in};
use crate::disk::fdatasync_us;
use crate::load::{Amount, Done, Way, connection};
use crate::report::Report;
use crate::server::{Server, Target};
use crate::table::{Table, figure};
use sluice_bench_rows::stats::Samples;

/// Shards of the row that compares them.
const SHARDS: [u32; 3] = [1, 3, 6];
/// Messages of a lone client: each takes a round trip and a sync.
const LONE_MESSAGES: u64 = 3_000;
/// Divisor of the number of messages in the row that sends one by one, which is slower.
const BATCH_1_DIVISOR: u64 = 10;

/// Runs a row on the server that the main row used.
pub(super) async fn on_same_server(
    kind: RowKind,
    target: &Target,
    folder: &Path,
    admin: &Client,
    settings: &Settings,
    main: Option<&QueuePhases>,
    report: &mut Report,
) -> Result<(), String> {
    match kind {
        RowKind::Main | RowKind::Shards => Ok(()),
        RowKind::OwnQueues => own_queues(target, admin, settings, report).await,
        RowKind::Lone => lone(target, folder, admin, settings, report).await,
        RowKind::Batch1 => batch_1(target, admin, settings, main, report).await,
        RowKind::Enlisted => enlisted(target, admin, settings, report).await,
    }
}

async fn own_queues(
    target: &Target,
    admin: &Client,
    settings: &Settings,
    report: &mut Report,
) -> Result<(), String> {
    let shape = QueueLoad { queues: settings.workers, ..QueueLoad::of(settings) };
    let phases = run(target, admin, &shape, settings.payload_bytes).await?;
    tell("own_queues", &format!("one queue for each of {} workers", settings.workers), &phases, report);
    Ok(())
}

async fn lone(
    target: &Target,
    folder: &Path,
    admin: &Client,
    settings: &Settings,
    report: &mut Report,
) -> Result<(), String> {
    let messages = if settings.folder.smoke { LONE_MESSAGES / 30 } else { LONE_MESSAGES };
    if matches!(target, Target::Child(_)) {
        // Measured again, close to what it is compared with: a disk that others use, too, changes from minute
        // to minute.
        let us = fdatasync_us(folder)?;
        report.row("lone_fdatasync", json!({ "us": us }));
        report.note(format!("fdatasync just before the lone client: {} µs", figure(us)));
    }
    let shape = QueueLoad {
        workers: 1,
        batch: 1,
        queues: 1,
        amount: Amount::Messages(messages),
        in_flight: None,
        ..QueueLoad::of(settings)
    };
    let phases = run(target, admin, &shape, settings.payload_bytes).await?;
    tell("lone", "a lone client, one message at a time", &phases, report);
    report.figure("lone_send_p50_us", phases.send.ms(50.0) * 1e3);
    Ok(())
}

async fn batch_1(
    target: &Target,
    admin: &Client,
    settings: &Settings,
    main: Option<&QueuePhases>,
    report: &mut Report,
) -> Result<(), String> {
    let shape = QueueLoad {
        batch: 1,
        amount: settings.part(BATCH_1_DIVISOR),
        in_flight: None,
        ..QueueLoad::of(settings)
    };
    let phases = run(target, admin, &shape, settings.payload_bytes).await?;
    tell("batch_1", "batches of one", &phases, report);
    if let Some(main) = main {
        let ratio = |many: &Done, one: &Done| many.per_s() / one.per_s().max(1e-9);
        let (send, work) = (ratio(&main.send, &phases.send), ratio(&main.work, &phases.work));
        report.row("batch_ratio", json!({ "batch": settings.batch, "send": send, "work": work }));
        report.note(format!(
            "batches of {} against batches of one: send {} times, work {} times as fast",
            settings.batch,
            figure(send),
            figure(work)
        ));
    }
    Ok(())
}

/// Works on what was sent by receives and acks, and by receives in transactions and their commits, in
/// alternating order.
async fn enlisted(
    target: &Target,
    admin: &Client,
    settings: &Settings,
    report: &mut Report,
) -> Result<(), String> {
    let shape = QueueLoad::of(settings);
    let mut rounds: Vec<[f64; 2]> = Vec::new();
    for round in 0..settings.rounds as usize {
        let mut per_s = [0.0; 2];
        for at in [round % 2, (round + 1) % 2] {
            let way = [Way::Plain, Way::Enlisted][at];
            per_s[at] = work_in(way, target, admin, &shape, settings.payload_bytes).await?.per_s();
        }
        rounds.push(per_s);
    }
    let median = |of: fn(&[f64; 2]) -> f64| rounds.iter().map(of).collect::<Samples>().median();
    let (plain, enlisted) = (median(|round| round[0]), median(|round| round[1]));
    let ratio = median(|[plain, enlisted]| enlisted / plain.max(1e-9));
    report.row(
        "enlisted",
        json!({ "work_per_s": plain, "work_enlisted_per_s": enlisted, "work_enlisted_ratio": ratio }),
    );
    report.note(format!(
        "work by receives in transactions and their commits: {} messages per second, {} times that by receives \
         and acks",
        figure(enlisted),
        figure(ratio)
    ));
    report.figure("work_enlisted_per_s", enlisted);
    report.figure("work_enlisted_ratio", ratio);
    Ok(())
}

/// Measures 1, 3 and 6 shards with as many namespaces, each on a server of its own.
pub(super) async fn shards(folder: &Path, settings: &Settings, report: &mut Report) -> Result<(), String> {
    for shards in SHARDS {
        let server = Server::start(&folder.join(format!("shards-{shards}")), &settings.server(shards))?;
        let target = Target::Child(server);
        let admin = connection(target.endpoint())?;
        let shape = QueueLoad { namespaces: namespaces(&admin, shards).await?, ..QueueLoad::of(settings) };
        let phases = run(&target, &admin, &shape, settings.payload_bytes).await?;
        tell(&format!("shards_{shards}"), &format!("{shards} shards, as many namespaces"), &phases, report);
        target.stop()?;
    }
    Ok(())
}

/// Makes one namespace on each shard; with one shard there is one already.
pub(super) async fn namespaces(admin: &Client, shards: u32) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for shard in (0..shards).filter(|_| shards > 1) {
        let name = format!("bench-{shard}");
        let created = admin.namespace_create(&name, QuotaChange::default(), Some(shard)).await;
        created.map_err(|error| format!("cannot create the namespace {name}: {error}"))?;
        names.push(name);
    }
    Ok(names)
}

/// Puts a row's phases into the report.
pub(super) fn tell(name: &str, title: &str, phases: &QueuePhases, report: &mut Report) {
    let mut table =
        Table::new(&["phase", "messages", "messages/s", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms"]);
    let head =
        |phase: &str, done: &Done| vec![phase.to_owned(), figure(done.messages as f64), figure(done.per_s())];
    let times = |done: &Done| [50.0, 95.0, 99.0, 99.9].map(|percent| figure(done.ms(percent)));
    table.row([head("send (times of a request)", &phases.send), times(&phases.send).to_vec()].concat());
    table.row(head("work", &phases.work));
    if let Some(combined) = &phases.combined {
        table.row([head("combined (times from send to ack)", combined), times(combined).to_vec()].concat());
    }
    report.table(title, table);
    report.row(name, phases.to_json());
}
