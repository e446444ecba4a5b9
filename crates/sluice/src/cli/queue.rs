//! `sluice queue`.

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Queue, QueueChange};

use super::connect::ServerFlags;
use super::format::{counted, length, size, time};
use super::output::Table;
use super::queue_defaults::{self, DefaultsVerb};
use super::queue_settings::{SettingFlags, settings_table};
use super::sure::Sure;
use super::{CliError, Out, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueVerb {
    /// List queues and what is in them: messages by state, bytes of payloads, headers and content types, and
    /// the age of the message that is next in line.
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
    /// Deliver nothing from a queue until it is resumed. Sends go on, and what is leased runs on.
    Pause(MarkArgs),
    /// Deliver again.
    Resume(MarkArgs),
    /// Refuse sends to a queue until it is opened. What it holds is delivered.
    Close(MarkArgs),
    /// Take sends again.
    Open(MarkArgs),
    /// Settings of queues that are not made yet, by pattern of their names.
    #[command(subcommand)]
    Defaults(DefaultsVerb),
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
pub(crate) struct MarkArgs {
    /// Name of the queue.
    queue: String,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Name of the queue.
    queue: String,
    /// Make the queue if it does not exist.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    server: ServerFlags,
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
        QueueVerb::Defaults(verb) => return queue_defaults::run(verb, out).await,
        QueueVerb::Pause(args) => pause(args, true, out).await?,
        QueueVerb::Resume(args) => pause(args, false, out).await?,
        QueueVerb::Close(args) => close(args, true, out).await?,
        QueueVerb::Open(args) => close(args, false, out).await?,
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

async fn pause(args: MarkArgs, paused: bool, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let queue = connection.client.queue_pause(&args.queue, paused).await.map_err(|e| connection.error(&e))?;
    let what = if paused { "paused" } else { "resumed" };
    out.show(&queue, |queue| format!("{what} {}: {} ready\n", queue.name, queue.counts.ready))
}

async fn close(args: MarkArgs, closed: bool, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let queue = connection.client.queue_close(&args.queue, closed).await.map_err(|e| connection.error(&e))?;
    let what = if closed { "closed" } else { "opened" };
    out.show(&queue, |queue| format!("{what} {}\n", queue.name))
}

async fn set(args: SetArgs, out: Out) -> Result<()> {
    let change = args.settings.change();
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
            settings_table(&queue.settings).render()
        )
    })
}

/// The states of messages, as columns.
const STATES: &[&str] = &[">READY", ">DELAYED", ">BLOCKED", ">LEASED", ">HELD", ">DEAD", ">DONE"];

/// How many messages are in each of [`STATES`].
fn numbers(queue: &Queue) -> [String; STATES.len()] {
    let c = &queue.counts;
    [c.ready, c.delayed, c.blocked, c.leased, c.held, c.dead, c.done].map(|count| count.to_string())
}

fn table(queues: &[Queue]) -> String {
    let columns: Vec<&str> = [&["QUEUE"], STATES, &[">SIZE", ">OLDEST"]].concat();
    let mut table = Table::new(&columns);
    for queue in queues {
        let marks = [(queue.settings.paused, " (paused)"), (queue.settings.closed, " (closed)")];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let mut row = vec![format!("{}{marks}", queue.name)];
        row.extend(numbers(queue));
        row.push(size(queue.bytes));
        row.push(queue.oldest_ready_age_ms.map_or_else(|| "-".to_owned(), length));
        table.row(row);
    }
    table.render()
}

fn details(queue: &Queue) -> String {
    let t = &queue.totals;
    let mut about = Table::fields();
    about.field("queue", queue.name.clone());
    about.field("namespace", queue.namespace.clone());
    about.field("created", time(queue.created_at_ms));
    about.field("size", size(queue.bytes));
    about.field("oldest ready", queue.oldest_ready_age_ms.map_or_else(|| "-".to_owned(), length));
    if let Some(redriving) = queue.redriving {
        about.field("redriving", format!("{} left, {} per second", redriving.left, redriving.per_second));
    }
    let mut now = Table::new(STATES);
    now.row(numbers(queue));
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
        settings_table(&queue.settings).render(),
        now.render(),
        total.join(", ")
    )
}
