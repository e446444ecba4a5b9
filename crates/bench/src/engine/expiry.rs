//! Expiry of many leases at one moment: in slices, none of which may hold the shard up.

use std::time::{Duration, Instant};

use sluice_engine::command::{Command, Receive};
use sluice_engine::id::NamespaceId;
use sluice_engine::query::State;

use crate::report::Report;
use crate::table::{Table, figure};
use sluice_bench_rows::rig::{QUEUES, Rig};
use sluice_bench_rows::stats::{per, percentile};

/// The lease that all have.
const LEASE_MS: u64 = 30_000;
/// Messages of one receive.
const RECEIVE: u32 = 1_000;

/// Lets so many leases end at once, and reports what that took.
pub(super) fn run(leases: u64, report: &mut Report) -> Result<(), String> {
    let mut rig = Rig::new();
    rig.fill(QUEUES[0], leases);
    let queues = [(QUEUES[0], 0)];
    let receive = Command::Receive(Receive {
        namespace: NamespaceId::DEFAULT,
        queues: &queues,
        max_messages: RECEIVE,
        max_bytes: u32::MAX,
        lease_ms: LEASE_MS,
        consumer: "",
    });
    for _ in 0..leases.div_ceil(u64::from(RECEIVE)) {
        rig.run_at_same_time(&receive);
    }
    report.check_equal("leases that end at one moment", leases, leased(&rig));
    let slices = tick_until_none(&mut rig, leases)?;
    report.check_equal("leases expired", leases, rig.engine().totals().expired);
    tell(leases, &slices, report);
    Ok(())
}

/// The time of each tick, sorted.
fn tick_until_none(rig: &mut Rig, leases: u64) -> Result<Vec<Duration>, String> {
    let mut slices = Vec::new();
    while leased(rig) > 0 {
        let before = leased(rig);
        // As a shard does: the next tick comes when the engine has something to do again.
        let due_us = rig.engine().next_deadline().unwrap_or(0);
        rig.set_now_us(rig.now_us().max(due_us));
        let start = Instant::now();
        rig.run_at_same_time(&Command::Tick);
        slices.push(start.elapsed());
        if leased(rig) == before && slices.len() as u64 > leases {
            return Err(format!(
                "expiry: {before} of {leases} leases do not end {:?} {} {} {due_us}",
                rig.engine().next_deadline(),
                rig.now_us(),
                rig.failures()
            ));
        }
    }
    slices.sort_unstable();
    Ok(slices)
}

fn leased(rig: &Rig) -> u64 {
    rig.engine().totals().states[State::Leased as usize]
}

fn tell(leases: u64, slices: &[Duration], report: &mut Report) {
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let total: Duration = slices.iter().sum();
    let worst = micros(percentile(slices, 100.0));
    let mut table =
        Table::new(&["leases", "slices", "total ms", "ns/lease", "worst slice µs", "median slice µs"]);
    table.row(vec![
        figure(leases as f64),
        figure(slices.len() as f64),
        figure(micros(total) / 1e3),
        figure(per(total.as_nanos() as f64, leases)),
        figure(worst),
        figure(micros(percentile(slices, 50.0))),
    ]);
    report.table("expiry of leases at one moment", table);
    report.row(
        "expiry",
        serde_json::json!({
            "leases": leases, "slices": slices.len(), "total_ms": micros(total) / 1e3, "worst_slice_us": worst,
        }),
    );
}
