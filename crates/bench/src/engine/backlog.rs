//! Cost against backlog: receive and ack with 10⁴ to 10⁷ messages waiting, and what a waiting message takes.

use std::time::Instant;

use serde_json::json;
use sluice_alloc_count::{Mode, counts, set_mode};

use crate::report::Report;
use crate::table::{Table, figure};
use sluice_bench_rows::rig::{QUEUES, Rig};
use sluice_bench_rows::stats::{Samples, per};

/// Messages that are taken in one timed stretch; as many are sent behind it, so that the backlog stays.
const STRETCH: u64 = 500;
/// Timed stretches at each backlog.
const STRETCHES: u64 = 200;

/// The result of one size of backlog.
struct AtBacklog {
    waiting: u64,
    receive_ack_ns: f64,
    spread_percent: f64,
    index_bytes: f64,
    journal_bytes: f64,
}

/// Measures at growing backlogs, the last of them `most`, and reports the ratio of the last to the first.
pub(super) fn run(most: u64, report: &mut Report) {
    let mut waiting = 10_000.min(most);
    let mut measured = Vec::new();
    loop {
        measured.push(at(waiting, report));
        if waiting >= most {
            break;
        }
        waiting = (waiting * 10).min(most);
    }
    let mut table =
        Table::new(&["waiting", "receive+ack ns", "spread %", "index B/message", "journal B/message"]);
    for found in &measured {
        table.row(vec![
            figure(found.waiting as f64),
            figure(found.receive_ack_ns),
            figure(found.spread_percent),
            figure(found.index_bytes),
            figure(found.journal_bytes),
        ]);
        report.row(
            &format!("backlog_{}", found.waiting),
            json!({
                "receive_ack_ns": found.receive_ack_ns, "index_bytes_per_message": found.index_bytes,
                "journal_bytes_per_message": found.journal_bytes,
            }),
        );
    }
    report.table("cost against backlog (25 B, one header)", table);
    if let (Some(first), Some(last)) = (measured.first(), measured.last()) {
        if most < 10_000_000 {
            report.note(format!("the backlog went up to {most} messages instead of 10,000,000"));
        }
        report.figure("backlog_ratio_1e7", last.receive_ack_ns / first.receive_ack_ns);
        report.figure("index_bytes_per_message", last.index_bytes);
    }
}

fn at(waiting: u64, report: &mut Report) -> AtBacklog {
    set_mode(Mode::Count);
    let before = counts().held_bytes;
    let mut rig = Rig::new();
    rig.watch_memory();
    rig.fill(QUEUES[0], waiting);
    let all = counts().held_bytes - before;
    let index = rig.engine_held_bytes();
    set_mode(Mode::Off);
    let times: Samples = (0..STRETCHES).map(|_| stretch(&mut rig)).collect();
    report.check_equal(format!("refused commands with {waiting} waiting"), 0, rig.failures());
    AtBacklog {
        waiting,
        receive_ack_ns: times.median(),
        spread_percent: times.spread_percent(),
        index_bytes: per(index as f64, waiting),
        journal_bytes: per((all - index) as f64, waiting),
    }
}

fn stretch(rig: &mut Rig) -> f64 {
    let start = Instant::now();
    for _ in 0..STRETCH {
        rig.receive_and_ack(QUEUES[0]);
    }
    let ns = per(start.elapsed().as_nanos() as f64, STRETCH);
    rig.fill(QUEUES[0], STRETCH);
    ns
}
