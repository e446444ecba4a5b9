//! Rates and processor time: one server, a cluster, and independent servers that are each given the same
//! messages, in turns.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::servers::{Group, Servers};
use crate::endpoint::Endpoint;
use crate::load::{Amount, Done, Ledger, connection};
use crate::process::usage;
use crate::report::Report;
use crate::stream::{SessionLoad, SessionRun, finish, queue_name, sent, worked};
use crate::table::{Table, figure};
use sluice_bench_rows::stats::Samples;

/// Messages that each group gets before anything is measured.
const WARM_MESSAGES: u64 = 5_000;

/// The phases of one run on one group of servers. A message counts once, whatever the number of its copies.
#[derive(Clone, Copy, Debug)]
struct Moved {
    messages: u64,
    send_s: f64,
    work_s: f64,
    send_p50_us: f64,
    /// Processor time of all servers of the group, in both phases.
    cpu_us: f64,
}

impl Moved {
    fn send_per_s(&self) -> f64 {
        self.messages as f64 / self.send_s.max(1e-9)
    }

    fn work_per_s(&self) -> f64 {
        self.messages as f64 / self.work_s.max(1e-9)
    }

    /// Messages a second that were sent and worked, one phase after the other.
    fn per_s(&self) -> f64 {
        self.messages as f64 / (self.send_s + self.work_s).max(1e-9)
    }

    fn cpu_us_per_message(&self) -> f64 {
        self.cpu_us / self.messages.max(1) as f64
    }
}

/// One round: the same load on each group.
#[derive(Clone, Copy, Debug)]
struct Round {
    r1: Moved,
    r3: Moved,
    i3: Moved,
}

impl Round {
    fn of(&self, group: Group) -> &Moved {
        match group {
            Group::One => &self.r1,
            Group::Cluster => &self.r3,
            Group::Independent => &self.i3,
        }
    }
}

/// Runs the rounds, each of which begins with another group, and tells the medians of rates and ratios.
pub(super) async fn measure(
    servers: &Servers,
    shape: &SessionLoad,
    rounds: u32,
    report: &mut Report,
) -> Result<(), String> {
    let warm = SessionLoad { amount: Amount::Messages(WARM_MESSAGES), ..*shape };
    for group in Group::ALL {
        run(servers, group, &warm).await?;
    }
    let mut found = Vec::new();
    for number in 0..rounds as usize {
        let mut order = Group::ALL;
        order.rotate_left(number % Group::ALL.len());
        let mut moved = [None; Group::ALL.len()];
        for group in order {
            moved[group as usize] = Some(run(servers, group, shape).await?);
        }
        let [Some(r1), Some(r3), Some(i3)] = moved else { continue };
        found.push(Round { r1, r3, i3 });
    }
    tell(&found, report);
    Ok(())
}

/// Measures single messages of one session: the next is sent when the one before was confirmed.
pub(super) async fn measure_lone(
    servers: &Servers,
    shape: &SessionLoad,
    rounds: u32,
    report: &mut Report,
) -> Result<(), String> {
    let mut found = Vec::new();
    for _ in 0..rounds {
        let alone = run(servers, Group::One, shape).await?.send_p50_us;
        let replicated = run(servers, Group::Cluster, shape).await?.send_p50_us;
        found.push((alone, replicated));
    }
    let median = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).collect::<Samples>().median();
    let (alone, replicated) = (median(|round| round.0), median(|round| round.1));
    report.row("lone", json!({ "r1_p50_us": alone, "r3_p50_us": replicated }));
    let mut table = Table::new(&["lone send", "p50 us"]);
    table.row(vec!["one server".to_owned(), figure(alone)]);
    table.row(vec!["cluster".to_owned(), figure(replicated)]);
    report.table("one message at a time", table);
    report.figure("lone_ratio", median(|round| round.1 / round.0.max(1e-9)));
    Ok(())
}

/// Sends, then works, on each server of a group that clients talk to, side by side. Each message is checked
/// there: sent once, acked once.
async fn run(servers: &Servers, group: Group, shape: &SessionLoad) -> Result<Moved, String> {
    let processes = servers.processes(group)?;
    let runs = servers.endpoints(group).await?.iter().map(Run::new).collect::<Result<Vec<_>, _>>()?;
    let cpu_before = cpu_us(&processes)?;
    let send = beside(&runs, |run| {
        let run = run.begin(shape, shape.amount);
        async move { sent(&run).await }
    })
    .await?;
    let work = beside(&runs, |run| {
        let run = run.begin(shape, Amount::Messages(0));
        async move { worked(&run).await }
    })
    .await?;
    let cpu_us = cpu_us(&processes)? - cpu_before;
    for run in &runs {
        finish(&run.admin, &queue_name(), &run.ledger).await?;
    }
    let longest = |done: &[Done]| done.iter().map(|done| done.seconds).fold(0.0, f64::max);
    let (messages, send_p50_us) = send.first().map_or((0, 0.0), |done| (done.messages, done.ms(50.0) * 1e3));
    Ok(Moved { messages, send_s: longest(&send), work_s: longest(&work), send_p50_us, cpu_us })
}

/// A load on one server.
#[derive(Debug)]
struct Run {
    admin: sluice_client::Client,
    ledger: Arc<Ledger>,
}

impl Run {
    fn new(to: &Endpoint) -> Result<Run, String> {
        Ok(Run { admin: connection(to)?, ledger: Arc::new(Ledger::new()) })
    }

    fn begin(&self, shape: &SessionLoad, amount: Amount) -> Arc<SessionRun> {
        SessionRun::new(&self.admin, &queue_name(), &self.ledger, shape, amount)
    }
}

/// Runs a phase on all servers at once.
async fn beside<F>(runs: &[Run], phase: impl Fn(&Run) -> F) -> Result<Vec<Done>, String>
where
    F: Future<Output = Result<Done, String>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for run in runs {
        running.spawn(phase(run));
    }
    let mut all = Vec::new();
    while let Some(ended) = running.join_next().await {
        all.push(ended.map_err(|error| format!("a phase failed: {error}"))??);
    }
    Ok(all)
}

/// Processor time of all these processes, in microseconds.
fn cpu_us(processes: &[u32]) -> Result<f64, String> {
    processes.iter().map(|pid| usage(*pid).map(|used| used.cpu.as_secs_f64() * 1e6)).sum()
}

fn tell(rounds: &[Round], report: &mut Report) {
    let median = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).collect::<Samples>().median();
    let mut table = Table::new(&["servers", "send/s", "work/s", "sent and worked/s", "cpu us a message"]);
    let groups = [
        (Group::One, "r1", "one"),
        (Group::Cluster, "r3", "three, replicated"),
        (Group::Independent, "i3", "three, independent"),
    ];
    for (group, key, title) in groups {
        let figures: [fn(&Moved) -> f64; 4] =
            [Moved::send_per_s, Moved::work_per_s, Moved::per_s, Moved::cpu_us_per_message];
        let [send, work, both, cpu] = figures.map(|value| median(&|round| value(round.of(group))));
        table.row([vec![title.to_owned()], [send, work, both, cpu].map(figure).to_vec()].concat());
        let row = json!({ "send_per_s": send, "work_per_s": work, "per_s": both, "cpu_us_per_message": cpu });
        report.row(key, row);
    }
    report.table("messages of sessions with mutual TLS", table);
    report.figure("r3_send_per_s", median(&|round| round.r3.send_per_s()));
    report.figure("r3_work_per_s", median(&|round| round.r3.work_per_s()));
    let ratio = |over: &dyn Fn(&Round) -> (f64, f64)| {
        median(&|round| {
            let (value, base) = over(round);
            value / base.max(1e-9)
        })
    };
    report.figure("r3_over_r1_send", ratio(&|round| (round.r3.send_per_s(), round.r1.send_per_s())));
    report.figure("r3_over_r1_work", ratio(&|round| (round.r3.work_per_s(), round.r1.work_per_s())));
    report.figure("r3_over_i3", ratio(&|round| (round.r3.per_s(), round.i3.per_s())));
    report.figure("cpu_us_per_message", median(&|round| round.r3.cpu_us_per_message()));
    let cpu = |round: &Round| (round.r3.cpu_us_per_message(), round.r1.cpu_us_per_message());
    report.figure("cpu_ratio", ratio(&cpu));
}
