//! `sluice queue`.

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Queue, QueueChange};

use super::confirm::Confirmation;
use super::connect::{ReadFlags, ServerFlags};
use super::format::{counted, length, size, time};
use super::output::Table;
use super::push::{self, PushesArgs};
use super::queue_defaults::{self, DefaultsVerb};
use super::queue_settings::{QueueSettingFlags, settings_table};
use super::{CliError, Out, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueVerb {
    /// List queues with their messages by state, their size in bytes (payloads, headers, content types), and
    /// the age of the message that is next in line.
    List {
        /// Only queues whose names begin with this prefix.
        #[arg(default_value = "")]
        prefix: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Show a queue: settings, messages by state, totals.
    Show {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Change settings of a queue. They apply to waiting messages, too.
    Set(Box<SetQueueArgs>),
    /// Stop deliveries from a queue until it is resumed. Sends are accepted, and leases run on.
    Pause(QueueArgs),
    /// Resume deliveries from a queue.
    Resume(QueueArgs),
    /// Refuse sends to a queue until it is opened. Its messages are still delivered.
    Close(QueueArgs),
    /// Accept sends to a queue again.
    Open(QueueArgs),
    /// List the latest pushes of a queue to its endpoint, the newest first. They are kept in the memory of
    /// the node that pushes, since it leads.
    Pushes(PushesArgs),
    /// Manage the settings with which new queues begin, by pattern of their names.
    #[command(subcommand)]
    Defaults(DefaultsVerb),
    /// Drop the waiting messages of a queue: ready, delayed, blocked, held. Leased messages and dead letters
    /// stay.
    Purge {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Delete a queue and all its messages.
    Delete {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Name of the queue.
    queue: String,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SetQueueArgs {
    /// Name of the queue.
    queue: String,
    /// Create the queue if it does not exist.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    settings: QueueSettingFlags,
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
        QueueVerb::Pushes(args) => push::pushes(args, out).await?,
        QueueVerb::Defaults(verb) => return queue_defaults::run(verb, out).await,
        QueueVerb::Pause(args) => pause(args, true, out).await?,
        QueueVerb::Resume(args) => pause(args, false, out).await?,
        QueueVerb::Close(args) => close(args, true, out).await?,
        QueueVerb::Open(args) => close(args, false, out).await?,
        QueueVerb::Purge { queue, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("Dropping the waiting messages of queue {queue}"))?;
            let purged = connection.client.queue_purge(&queue).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "purged": purged }), |_| format!("purged {}\n", counted(purged, "message")))?;
        }
        QueueVerb::Delete { queue, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("Deleting queue {queue} with all its messages"))?;
            let deleted = connection.client.queue_delete(&queue).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": deleted }), |_| {
                format!("deleted {queue} with {}\n", counted(deleted, "message"))
            })?;
        }
    }
    Ok(0)
}

async fn pause(args: QueueArgs, paused: bool, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let queue = connection.client.queue_pause(&args.queue, paused).await.map_err(|e| connection.error(&e))?;
    let what = if paused { "paused" } else { "resumed" };
    out.show(&queue, |queue| format!("{what} {}: {} ready\n", queue.name, queue.counts.ready))
}

async fn close(args: QueueArgs, closed: bool, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let queue = connection.client.queue_close(&args.queue, closed).await.map_err(|e| connection.error(&e))?;
    let what = if closed { "closed" } else { "opened" };
    out.show(&queue, |queue| format!("{what} {}\n", queue.name))
}

async fn set(args: SetQueueArgs, out: Out) -> Result<()> {
    let change = args.settings.change()?;
    if change == QueueChange::default() && !args.create {
        return Err(CliError::usage("no setting given")
            .hint("Give at least one setting, see `sluice queue set --help`; or --create."));
    }
    let connection = args.server.connect()?;
    let set = connection.client.queue_set(&args.queue, &change, args.create).await;
    let (queue, created) = set.map_err(|e| {
        let error = connection.error(&e);
        if e.code() == Some("queue_not_found") { error.hint("--create creates it.") } else { error }
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

/// The states of messages, as table columns.
const STATES: &[&str] = &[">READY", ">DELAYED", ">BLOCKED", ">LEASED", ">HELD", ">DEAD", ">DONE"];

/// The number of messages in each of [`STATES`].
fn numbers(queue: &Queue) -> [String; STATES.len()] {
    let c = &queue.counts;
    [c.ready, c.delayed, c.blocked, c.leased, c.held, c.dead, c.done].map(|count| count.to_string())
}

fn table(queues: &[Queue]) -> String {
    let columns: Vec<&str> = [&["QUEUE"], STATES, &[">SIZE", ">OLDEST"]].concat();
    let mut table = Table::new(&columns);
    for queue in queues {
        let marks = [
            (queue.settings.paused, " (paused)"),
            (queue.settings.closed, " (closed)"),
            (queue.settings.push_paused, " (push paused)"),
        ];
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
        "{}\n{}\n{}\nsince it was created: {}\n",
        about.render(),
        settings_table(&queue.settings).render(),
        now.render(),
        total.join(", ")
    )
}
