//! The three phases on a server, and what the server used for them.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_client::Client;

use super::args::Settings;
use crate::load::{Amount, Done, Ledger, Load, Way};
use crate::process::{Usage, mib};
use crate::server::{JournalFigures, Target};

/// The load of a benchmark over HTTP: how many loops, queues and messages.
#[derive(Clone, Debug)]
pub(super) struct QueueLoad {
    pub(super) workers: usize,
    pub(super) batch: usize,
    pub(super) queues: usize,
    pub(super) namespaces: Vec<String>,
    pub(super) amount: Amount,
    /// `None`: without a combined phase.
    pub(super) in_flight: Option<usize>,
}

impl QueueLoad {
    /// The phases as the arguments say.
    pub(super) fn of(settings: &Settings) -> QueueLoad {
        QueueLoad {
            workers: settings.workers,
            batch: settings.batch,
            queues: settings.queues,
            namespaces: Vec::new(),
            amount: settings.amount,
            in_flight: Some(settings.in_flight),
        }
    }

    fn load(&self, target: &Target, queues: &[String], payload_bytes: usize) -> Result<Load, String> {
        Load::new(target.endpoint(), &self.namespaces, queues, self.workers, self.batch, payload_bytes)
    }
}

/// The results of the phases of one round.
#[derive(Clone, Debug)]
pub(super) struct QueuePhases {
    pub(super) send: Done,
    pub(super) work: Done,
    pub(super) combined: Option<Done>,
    /// Resources that the server used in all phases; `None`: the server was named by --url.
    pub(super) server: Option<ServerUse>,
}

/// Resources that a server used.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerUse {
    pub(super) cpu_s: f64,
    pub(super) peak_rss_mb: f64,
    pub(super) journal: JournalFigures,
}

impl QueuePhases {
    pub(super) fn to_json(&self) -> Value {
        let mut row = json!({
            "messages": self.send.messages,
            "send_per_s": self.send.per_s(),
            "work_per_s": self.work.per_s(),
            "send_p50_us": self.send.ms(50.0) * 1e3,
            "send_p99_us": self.send.ms(99.0) * 1e3,
        });
        if let Some(combined) = &self.combined {
            row["combined_per_s"] = json!(combined.per_s());
            for (key, percent) in [("p50_ms", 50.0), ("p95_ms", 95.0), ("p99_ms", 99.0), ("p99_9_ms", 99.9)] {
                row[key] = json!(combined.ms(percent));
            }
        }
        if let Some(server) = &self.server {
            row["server_cpu_s"] = json!(server.cpu_s);
            row["server_rss_mb"] = json!(server.peak_rss_mb);
            row["fsyncs"] = json!(server.journal.fsyncs);
            row["log_bytes"] = json!(server.journal.log_bytes);
            row["snapshots"] = json!(server.journal.snapshots);
            row["compacted_bytes"] = json!(server.journal.compacted_bytes);
        }
        row
    }
}

/// Runs the phases once. Each message is checked: sent once, acked once.
pub(super) async fn run(
    target: &Target,
    admin: &Client,
    shape: &QueueLoad,
    payload_bytes: usize,
) -> Result<QueuePhases, String> {
    let queues = queue_names(shape);
    let load = || shape.load(target, &queues, payload_bytes);
    let (senders, workers) = (load()?, load()?);
    let ledger = Arc::new(Ledger::new());
    target.reset_peak()?;
    let before = (target.usage()?, JournalFigures::of(admin).await?);
    let send = senders.send(&ledger, shape.amount).await?;
    let work = workers.work(&ledger).await?;
    let combined = match shape.in_flight {
        Some(most) => Some(senders.combined(&workers, &ledger, shape.amount, most).await?),
        None => None,
    };
    let after = (target.usage()?, JournalFigures::of(admin).await?);
    ledger.verify()?;
    delete_queues(admin, shape, &queues).await?;
    Ok(QueuePhases { send, work, combined, server: server_use(before, after) })
}

/// Sends, and works on what was sent in one way. Each message is checked: sent once, acked once.
pub(super) async fn work_in(
    way: Way,
    target: &Target,
    admin: &Client,
    shape: &QueueLoad,
    payload_bytes: usize,
) -> Result<Done, String> {
    let queues = queue_names(shape);
    let load = || shape.load(target, &queues, payload_bytes);
    let (senders, workers) = (load()?, load()?);
    let ledger = Arc::new(Ledger::new());
    senders.send(&ledger, shape.amount).await?;
    let work = workers.work_in(way, &ledger).await?;
    ledger.verify()?;
    delete_queues(admin, shape, &queues).await?;
    Ok(work)
}

fn queue_names(shape: &QueueLoad) -> Vec<String> {
    (0..shape.queues).map(|queue| queue_name(&format!("{queue}"))).collect()
}

/// Queues are named after this run, so that a server that is not ours keeps its own.
pub(super) fn queue_name(of: &str) -> String {
    format!("bench-{}-{of}", std::process::id())
}

async fn delete_queues(admin: &Client, shape: &QueueLoad, queues: &[String]) -> Result<(), String> {
    let homes: Vec<Client> = match shape.namespaces.as_slice() {
        [] => vec![admin.clone()],
        names => names.iter().map(|name| admin.in_namespace(name)).collect(),
    };
    for home in homes {
        for queue in queues {
            match home.queue_delete(queue).await {
                Ok(0) => {}
                Ok(left) => {
                    return Err(format!("{left} messages were left in {queue} after everything was acked"));
                }
                // With more workers than queues and namespaces, not every pair has been used.
                Err(error) if error.code() == Some("queue_not_found") => {}
                Err(error) => return Err(format!("cannot delete {queue}: {error}")),
            }
        }
    }
    Ok(())
}

fn server_use(
    before: (Option<Usage>, JournalFigures),
    after: (Option<Usage>, JournalFigures),
) -> Option<ServerUse> {
    let (used_before, used) = (before.0?, after.0?);
    Some(ServerUse {
        cpu_s: (used.cpu.saturating_sub(used_before.cpu)).as_secs_f64(),
        peak_rss_mb: mib(used.peak_rss_bytes),
        journal: after.1.since(&before.1),
    })
}
