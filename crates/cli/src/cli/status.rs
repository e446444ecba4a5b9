//! `sluice status`: the state of the server on one screen.

use clap::Args;
use serde_json::{Value, json};
use sluice_client::{Counts, Queue};

use super::connect::ReadFlags;
use super::format::{counted, length, size};
use super::output::Table;
use super::{Out, Result};

/// Maximum number of queues that are named in one line.
const NAMED_MAX: usize = 5;
/// Age from which on a transaction in doubt is a problem, in milliseconds: others end by themselves before.
const IN_DOUBT_MS_MAX: u64 = 30_000;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 0: the server answers, whatever its state; 7: no answer, or no node leads."
)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    server: ReadFlags,
}

/// Requests the status of the server and the queues of the namespace.
pub(super) async fn run(args: StatusArgs, out: Out) -> Result<u8> {
    let connection = args.server.connect()?;
    let server = connection.client.status().await.map_err(|e| connection.error(&e))?;
    let queues = connection.client.queues("").await.map_err(|e| connection.error(&e))?;
    let problems = problems(&server, &queues);
    let about = json!({ "server": server, "namespace": connection.namespace, "queues": queues.len(),
        "counts": sum(&queues), "problems": problems });
    out.show(&about, |_| {
        let mut table = Table::fields();
        about_server(&server, &connection.url(), &mut table);
        about_queues(&connection.namespace, &queues, &mut table);
        table.field("problems", problems.first().map_or("none", String::as_str));
        for problem in problems.iter().skip(1) {
            table.field("", problem.as_str());
        }
        table.render()
    })?;
    Ok(0)
}

fn about_server(server: &Value, url: &str, table: &mut Table) {
    let text = |name: &str| server[name].as_str().unwrap_or("-");
    let up = length(server["uptime_ms"].as_u64().unwrap_or_default());
    let ready = if server["ready"] == true { "up" } else { "up, not ready" };
    table.field("server", format!("{url}, {ready} for {up}"));
    table.field("version", text("version"));
    table.field("durability", text("durability"));
    let (used, free) = (total(server, "disk_bytes"), least(server, "disk_free_bytes"));
    table.field(
        "disk",
        free.map_or_else(|| "-".to_owned(), |free| format!("{} used, {} free", size(used), size(free))),
    );
}

fn about_queues(namespace: &str, queues: &[Queue], table: &mut Table) {
    let counts = sum(queues);
    let bytes = queues.iter().map(|queue| queue.bytes).sum();
    table.field(
        "namespace",
        format!("{namespace}: {}, {}", counted(queues.len() as u64, "queue"), size(bytes)),
    );
    let states = [
        ("ready", counts.ready),
        ("delayed", counts.delayed),
        ("blocked", counts.blocked),
        ("leased", counts.leased),
        ("held", counts.held),
        ("dead", counts.dead),
    ];
    let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    table.field("messages", states.join(", "));
    let oldest = queues.iter().filter_map(|queue| Some((queue.oldest_ready_age_ms?, &queue.name))).max();
    table.field(
        "oldest ready",
        oldest.map_or_else(|| "-".to_owned(), |(age, queue)| format!("{} in {queue}", length(age))),
    );
}

fn sum(queues: &[Queue]) -> Counts {
    let mut all = Counts::default();
    for queue in queues {
        let counts = &queue.counts;
        all.ready += counts.ready;
        all.delayed += counts.delayed;
        all.blocked += counts.blocked;
        all.leased += counts.leased;
        all.held += counts.held;
        all.dead += counts.dead;
        all.done += counts.done;
    }
    all
}

fn shards(server: &Value) -> impl Iterator<Item = &Value> {
    server["shards"].as_array().into_iter().flatten()
}

fn total(server: &Value, figure: &str) -> u64 {
    shards(server).filter_map(|shard| shard[figure].as_u64()).sum()
}

/// The smallest value of a figure over all shards, which share one disk at most.
fn least(server: &Value, figure: &str) -> Option<u64> {
    shards(server).filter_map(|shard| shard[figure].as_u64()).min()
}

/// The largest value of a figure over all shards.
fn most(server: &Value, figure: &str) -> Option<u64> {
    shards(server).filter_map(|shard| shard[figure].as_u64()).max()
}

/// Conditions that need an operator, each with a first step.
fn problems(server: &Value, queues: &[Queue]) -> Vec<String> {
    let mut problems = Vec::new();
    let any = |figure: &str| shards(server).any(|shard| shard[figure] == true);
    if server["ready"] == false {
        problems.push("the server is not ready: see its log".to_owned());
    }
    if any("disk_full") {
        problems
            .push("the disk is full and sends are refused: settle messages, or enlarge the disk".to_owned());
    } else if any("disk_low") {
        problems.push("the disk is nearly full".to_owned());
    }
    let damaged = total(server, "damaged_blobs");
    if damaged > 0 {
        problems
            .push(format!("{} cannot be read back from the disk: see the log", counted(damaged, "payload")));
    }
    let oldest = most(server, "in_doubt_oldest_age_ms").filter(|age| *age > IN_DOUBT_MS_MAX);
    if let Some(age) = oldest {
        problems.push(format!("a transaction is in doubt for {}: sluice txn list", length(age)));
    }
    let mut of_queues = |what: &str, how: &str, is: fn(&Queue) -> bool| {
        let names: Vec<&str> =
            queues.iter().filter(|queue| is(queue)).map(|queue| queue.name.as_str()).collect();
        if !names.is_empty() {
            problems.push(format!("{what} in {}: {how}", named(&names)));
        }
    };
    of_queues("dead letters", "sluice dead list QUEUE", |queue| queue.counts.dead > 0);
    of_queues("held messages", "sluice message list QUEUE --state held", |queue| queue.counts.held > 0);
    of_queues("deliveries are paused", "sluice queue resume QUEUE", |queue| queue.settings.paused);
    of_queues("sends are refused", "sluice queue open QUEUE", |queue| queue.settings.closed);
    problems
}

/// `a, b and 3 more`
fn named(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_named() {
        let shard = json!({"disk_full": false, "disk_low": true, "damaged_blobs": 2});
        let doubt = |age: u64| json!({"in_doubt": 1, "in_doubt_oldest_age_ms": age});
        let problems = problems(&json!({"ready": true, "shards": [shard, doubt(9_000), doubt(90_000)]}), &[]);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[1].starts_with("2 payloads cannot"), "{problems:?}");
        assert!(problems[2].starts_with("a transaction is in doubt for 1m30s"), "{problems:?}");
        assert_eq!(super::problems(&json!({"ready": true, "shards": []}), &[]), Vec::<String>::new());
        assert_eq!(named(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
