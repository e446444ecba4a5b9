//! The time for which no write is acknowledged when the node that leads fails: for a client that sends one
//! message after another and follows leaders.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sluice_client::{Client, Options};

use super::faults::Fault;
use crate::load::{Amount, Lane, Ledger, Load, SendTime, connection};
use crate::nodes::Nodes;
use crate::report::Report;
use crate::stream::{finish, queue_name};
use crate::table::{Table, figure};
use sluice_bench_rows::stats::Samples;

/// Time for which the client writes before the fault.
const BEFORE: Duration = Duration::from_millis(300);
/// Time after which the client asks another node, when one does not answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// The table of pauses, with a row for each fault.
pub(super) fn table() -> Table {
    Table::new(&["fault", "tries", "messages", "median ms", "longest ms"])
}

/// Runs so many tries of a fault. Tells the longest pause of writes.
pub(super) async fn measure(
    nodes: &mut Nodes,
    fault: Fault,
    tries: u32,
    payload_bytes: usize,
    table: &mut Table,
    report: &mut Report,
) -> Result<(), String> {
    let mut pauses = Vec::new();
    let mut written = 0;
    for number in 1..=tries {
        let told = |error| format!("{}, try {number}: {error}", fault.key());
        let found = one(nodes, fault, payload_bytes).await.map_err(told)?;
        pauses.push(found.pause.as_secs_f64() * 1e3);
        written += found.written;
    }
    let (longest, median) =
        (pauses.iter().copied().fold(0.0, f64::max), pauses.iter().copied().collect::<Samples>().median());
    let cells = [f64::from(tries), written as f64, median, longest].map(figure);
    table.row([vec![fault.key().to_owned()], cells.to_vec()].concat());
    report.row(fault.key(), json!({ "pauses_ms": pauses, "median_ms": median, "messages": written }));
    report.figure(&format!("failover_{}_ms", fault.key()), longest);
    Ok(())
}

/// The result of one try.
#[derive(Clone, Copy, Debug)]
struct Try {
    pause: Duration,
    /// Messages that were sent, and then received exactly once.
    written: u64,
}

async fn one(nodes: &mut Nodes, fault: Fault, payload_bytes: usize) -> Result<Try, String> {
    let leader = nodes.leader().await?;
    let ledger = Arc::new(Ledger::new());
    ledger.note_sends();
    let queue = queue_name();
    let load =
        |client: Client| Load { lanes: vec![Lane { client, queue: queue.clone() }], batch: 1, payload_bytes };
    let writer = load(follower(nodes)?);
    let writing = tokio::spawn({
        let (ledger, amount) = (Arc::clone(&ledger), Amount::For(BEFORE + fault.lasts()));
        async move { writer.send(&ledger, amount).await }
    });
    tokio::time::sleep(BEFORE).await;
    let struck = fault.strike(nodes, leader).await?;
    let struck_ns = ledger.now_ns();
    let sent = writing.await.map_err(|error| format!("the writes failed: {error}"))?;
    struck.heal(nodes)?;
    sent?;
    let next = nodes.leader().await?;
    if next == leader && matches!(fault, Fault::Disk | Fault::Planned) {
        return Err("no other node has led".to_owned());
    }
    let reader = Load { batch: 100, ..load(connection(nodes.endpoint(next))?) };
    reader.work(&ledger).await?;
    finish(&connection(nodes.endpoint(next))?, &queue, &ledger).await?;
    Ok(Try { pause: longest_pause(ledger.noted_sends(), struck_ns), written: ledger.sent_count() })
}

/// A client that follows leaders, and soon gives up a node that does not answer.
fn follower(nodes: &Nodes) -> Result<Client, String> {
    nodes.all().client(Options {
        connections_max: 1,
        request_timeout: ANSWER_WITHIN,
        connect_timeout: ANSWER_WITHIN,
        ..Options::default()
    })
}

/// The longest time without an acknowledged write, from a time on.
fn longest_pause(mut sends: Vec<SendTime>, from_ns: u64) -> Duration {
    sends.sort_by_key(|send| send.to_ns);
    let acknowledged = sends.iter().map(|send| send.to_ns).filter(|to_ns| *to_ns > from_ns);
    let mut last_ns = from_ns;
    let pauses = acknowledged.map(|to_ns| to_ns - std::mem::replace(&mut last_ns, to_ns));
    Duration::from_nanos(pauses.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_begins_with_the_fault() {
        let send = |from_ns, to_ns| SendTime { from_ns, to_ns };
        let sends = vec![send(0, 100), send(100, 205), send(205, 230), send(230, 245)];
        assert_eq!(longest_pause(sends.clone(), 200), Duration::from_nanos(25));
        assert_eq!(longest_pause(sends, 150), Duration::from_nanos(55));
        assert_eq!(longest_pause(Vec::new(), 10), Duration::ZERO);
    }
}
