//! `sluice queue`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Backoff, OnExpire, OrderingRetry, Queue, QueueChange};

use super::connect::ServerFlags;
use super::format::{counted, length, size, time};
use super::output::Table;
use super::values::{backoff, fair_weight};
use super::{CliError, Out, Result, duration};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueVerb {
    /// List queues and what is in them: messages by state, bytes of payloads, headers and content types, and the age of
    /// the message that is next in line.
    List {
        /// Only queues whose names begin with this.
        #[arg(default_value = "")]
        prefix: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Show a queue: settings, messages by state, totals.
    Show {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Change settings of a queue. They hold for messages that wait in it, too.
    Set(Box<SetArgs>),
    /// Drop what waits in a queue: ready, delayed, held. Leased messages and dead letters stay.
    Purge {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        sure: Sure,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Delete a queue and everything in it.
    Delete {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        sure: Sure,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Name of the queue.
    queue: String,
    /// Make the queue if it does not exist.
    #[arg(long)]
    create: bool,
    /// The lease of a receive that names none; at most 12h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    lease: Option<Duration>,
    /// Attempts of a message that names none.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Deliveries in all, released ones included, before a message becomes a dead letter.
    #[arg(long, value_name = "N")]
    max_deliveries: Option<u32>,
    /// Delay between attempts: none, or fixed, linear, exponential with base, cap and jitter, such as
    /// exponential:1s:10m:10%.
    #[arg(long, value_name = "BACKOFF", value_parser = backoff)]
    backoff: Option<Backoff>,
    /// Keep finished messages readable for so long; 0s: not for time alone.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retain_done: Option<Duration>,
    /// Keep so many finished messages readable, the oldest goes first; 0: no number.
    #[arg(long, value_name = "N")]
    retain_done_count: Option<u32>,
    /// Messages that a fair key gives in its turn; repeat it for each key. Replaces all weights that were set.
    #[arg(long, value_name = "KEY=WEIGHT", value_parser = fair_weight)]
    fair_weight: Vec<(String, u16)>,
    /// Forget all weights of fair keys.
    #[arg(long, conflicts_with = "fair_weight")]
    no_fair_weights: bool,
    /// What a delayed message does to the others with its ordering key.
    #[arg(long, value_name = "HOW", value_parser = ["block", "step_aside"])]
    ordering_retry: Option<String>,
    /// The limit that the queue follows; '': none.
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// What becomes of a message that still waits at its end.
    #[arg(long, value_name = "HOW", value_parser = ["dead_letter", "drop"])]
    on_expire: Option<String>,
    /// Messages that wait or are leased, at which sends are refused; 0: no number.
    #[arg(long, value_name = "N")]
    max_messages: Option<u64>,
    /// Bytes of these messages, above which sends are refused; 0: no number.
    #[arg(long, value_name = "N")]
    max_bytes: Option<u64>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Consent to what cannot be undone.
#[derive(Debug, Args)]
pub(crate) struct Sure {
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

impl Sure {
    /// Asks at the terminal; without one, consent must be given beforehand.
    pub(super) fn ask(&self, what: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(CliError::usage(format!("{what} cannot be undone: confirm it with --yes")));
        }
        eprint!("{what}? This cannot be undone. [y/N] ");
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.map_err(|e| CliError::failed(format!("cannot read the answer: {e}")))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(CliError::failed("nothing was done")),
        }
    }
}

pub(super) async fn run(verb: QueueVerb, out: Out) -> Result<u8> {
    match verb {
        QueueVerb::List { prefix, server } => {
            let connection = server.connect()?;
            let queues = connection.client.queues(&prefix).await.map_err(|e| connection.error(&e))?;
            if queues.is_empty() {
                out.note(&format!("no queues in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&queues, table)?;
        }
        QueueVerb::Show { queue, server } => {
            let connection = server.connect()?;
            let queue = connection.client.queue(&queue).await.map_err(|e| connection.error(&e))?;
            out.show(&queue, details)?;
        }
        QueueVerb::Set(args) => set(*args, out).await?,
        QueueVerb::Purge { queue, sure, server } => {
            let connection = server.connect()?;
            sure.ask(&format!("Dropping what waits in queue {queue}"))?;
            let purged = connection.client.queue_purge(&queue).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "purged": purged }), |_| format!("purged {}\n", counted(purged, "message")))?;
        }
        QueueVerb::Delete { queue, sure, server } => {
            let connection = server.connect()?;
            sure.ask(&format!("Deleting queue {queue} and everything in it"))?;
            let deleted = connection.client.queue_delete(&queue).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": deleted }), |_| {
                format!("deleted {queue} with {}\n", counted(deleted, "message"))
            })?;
        }
    }
    Ok(0)
}

async fn set(args: SetArgs, out: Out) -> Result<()> {
    let weights = args.no_fair_weights || !args.fair_weight.is_empty();
    let change = QueueChange {
        lease_ms: args.lease.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
        max_attempts: args.max_attempts,
        max_deliveries: args.max_deliveries,
        backoff: args.backoff,
        fair_weights: weights.then(|| args.fair_weight.into_iter().collect()),
        ordering_retry: args.ordering_retry.map(|how| match how.as_str() {
            "step_aside" => OrderingRetry::StepAside,
            _ => OrderingRetry::Block,
        }),
        limit: args.limit,
        retain_done_ms: args.retain_done.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
        retain_done_count: args.retain_done_count,
        max_messages: args.max_messages,
        max_bytes: args.max_bytes,
        on_expire: args.on_expire.map(|how| match how.as_str() {
            "drop" => OnExpire::Drop,
            _ => OnExpire::DeadLetter,
        }),
    };
    if change == QueueChange::default() && !args.create {
        return Err(CliError::usage("nothing to set")
            .hint("Name at least one of the settings, see `sluice queue set --help`; or --create."));
    }
    let connection = args.server.connect()?;
    let set = connection.client.queue_set(&args.queue, &change, args.create).await;
    let (queue, created) = set.map_err(|e| {
        let error = connection.error(&e);
        if e.code() == Some("queue_not_found") { error.hint("--create makes it.") } else { error }
    })?;
    out.show(&queue, |queue| {
        format!(
            "{} {}\n{}",
            if created { "created" } else { "changed" },
            queue.name,
            settings(queue).render()
        )
    })
}

fn table(queues: &[Queue]) -> String {
    let mut table =
        Table::new(&["QUEUE", ">READY", ">DELAYED", ">LEASED", ">HELD", ">DEAD", ">SIZE", ">OLDEST"]);
    for queue in queues {
        let counts = &queue.counts;
        let numbers = [counts.ready, counts.delayed, counts.leased, counts.held, counts.dead];
        let mut row = vec![queue.name.clone()];
        row.extend(numbers.iter().map(u64::to_string));
        row.push(size(queue.bytes));
        row.push(queue.oldest_ready_age_ms.map_or_else(|| "-".to_owned(), length));
        table.row(row);
    }
    table.render()
}

fn settings(queue: &Queue) -> Table {
    let mut table = Table::fields();
    let settings = &queue.settings;
    table.field("lease", length(settings.lease_ms));
    table.field("max attempts", settings.max_attempts.to_string());
    table.field("max deliveries", settings.max_deliveries.to_string());
    let b = &settings.backoff;
    let text = format!("{}:{}:{}:{}%", b.kind, length(b.base_ms), length(b.cap_ms), b.jitter_percent);
    table.field("backoff", text);
    if settings.retain_done_ms > 0 {
        table.field("retain done", length(settings.retain_done_ms));
    }
    if settings.retain_done_count > 0 {
        table.field("retain done count", settings.retain_done_count.to_string());
    }
    if !settings.fair_weights.is_empty() {
        let weights: Vec<String> =
            settings.fair_weights.iter().map(|(key, weight)| format!("{key}={weight}")).collect();
        table.field("fair weights", weights.join(", "));
    }
    if settings.ordering_retry == OrderingRetry::StepAside {
        table.field("ordering retry", "step_aside".to_owned());
    }
    if !settings.limit.is_empty() {
        table.field("limit", settings.limit.clone());
    }
    if settings.on_expire == OnExpire::Drop {
        table.field("on expire", "drop".to_owned());
    }
    if settings.max_messages > 0 {
        table.field("max messages", settings.max_messages.to_string());
    }
    if settings.max_bytes > 0 {
        table.field("max bytes", size(settings.max_bytes));
    }
    table
}

fn details(queue: &Queue) -> String {
    let (c, t) = (&queue.counts, &queue.totals);
    let mut about = Table::fields();
    about.field("queue", queue.name.clone());
    about.field("namespace", queue.namespace.clone());
    about.field("created", time(queue.created_at_ms));
    about.field("size", size(queue.bytes));
    about.field("oldest ready", queue.oldest_ready_age_ms.map_or_else(|| "-".to_owned(), length));
    let mut now = Table::new(&[">READY", ">DELAYED", ">BLOCKED", ">LEASED", ">HELD", ">DEAD"]);
    now.row([c.ready, c.delayed, c.blocked, c.leased, c.held, c.dead].map(|n| n.to_string()));
    let totals = [
        ("sent", t.sent),
        ("delivered", t.delivered),
        ("acked", t.acked),
        ("nacked", t.nacked),
        ("released", t.released),
        ("rejected", t.rejected),
        ("expired", t.expired),
        ("died", t.died),
        ("redriven", t.redriven),
        ("dropped", t.dropped),
        ("cancelled", t.cancelled),
        ("moved here", t.moved_in),
        ("moved away", t.moved_out),
    ];
    let total: Vec<String> = totals.iter().map(|(name, count)| format!("{count} {name}")).collect();
    format!(
        "{}\n{}\n{}\nsince it was made: {}\n",
        about.render(),
        settings(queue).render(),
        now.render(),
        total.join(", ")
    )
}
