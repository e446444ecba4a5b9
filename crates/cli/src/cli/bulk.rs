//! `sluice bulk`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Bulk, BulkFilter, BulkHeader, Change};

use super::change::{FieldFlags, NoteFlags};
use super::confirm::Confirmation;
use super::connect::{Connection, ServerFlags};
use super::format::{counted, relative};
use super::output::Table;
use super::progress::Progress;
use super::values::header;
use super::{CliError, Out, Result, number};

/// Interval between two requests for the progress of a bulk.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(crate) enum BulkVerb {
    /// Change all messages of a queue that match a filter, and wait for the end.
    ///
    /// The server runs the bulk in the background: it continues when this command is interrupted. The actions
    /// cancel, deny and move ask for confirmation.
    Start(Box<StartArgs>),
    /// Show a bulk and its progress.
    Show {
        /// Id of the bulk.
        bulk: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// List bulks, oldest first.
    List {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// End a bulk; messages that it has changed stay changed.
    Cancel {
        /// Id of the bulk.
        bulk: String,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice bulk start move --queue a --to b --tag red --dry-run\n  \
    sluice bulk start retry --queue emails --state dead --error-contains 'smtp: 451'\n  \
    sluice bulk start change --queue a --header customer=12 --priority 9")]
pub(crate) struct StartArgs {
    /// The change to make.
    #[arg(value_parser = PossibleValuesParser::new(["cancel", "hold", "approve", "deny", "retry", "move", "change"]))]
    action: String,
    /// Queue to move to; it must exist.
    #[arg(long, value_name = "QUEUE", required_if_eq("action", "move"))]
    to: Option<String>,
    #[command(flatten)]
    fields: FieldFlags,
    #[command(flatten)]
    note: NoteFlags,
    /// Count the messages that would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the id of the bulk without waiting for its end.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    confirm: Confirmation,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    server: ServerFlags,
}

/// The filter: a message must match all that is given.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
struct FilterFlags {
    /// Name of the queue.
    #[arg(long, short)]
    queue: String,
    /// Messages in this state.
    #[arg(long, short, value_parser = PossibleValuesParser::new(["delayed", "ready", "leased", "held", "dead", "blocked"]))]
    state: Option<String>,
    /// Messages with this tag.
    #[arg(long, short)]
    tag: Option<String>,
    /// Messages with this header and value.
    #[arg(long, short = 'H', value_name = "NAME=VALUE", value_parser = header)]
    header: Option<(String, String)>,
    /// Messages sent before this time, in milliseconds since the Unix epoch.
    #[arg(long, value_name = "MS", value_parser = number(0u64..))]
    sent_before_ms: Option<u64>,
    /// Messages sent at this time or later, in milliseconds since the Unix epoch.
    #[arg(long, value_name = "MS", value_parser = number(0u64..))]
    sent_after_ms: Option<u64>,
    /// Messages with at least this number of attempts begun.
    #[arg(long, value_name = "N", value_parser = number(0u16..=u16::MAX))]
    attempts_min: Option<u16>,
    /// Messages with this text in the error of an attempt.
    #[arg(long, value_name = "TEXT")]
    error_contains: Option<String>,
}

pub(super) async fn run(verb: BulkVerb, out: Out) -> Result<u8> {
    match verb {
        BulkVerb::Start(args) => return start(*args, out).await,
        BulkVerb::Show { bulk, server } => {
            let connection = server.connect()?;
            let bulk = connection.client.bulk(&bulk).await.map_err(|e| connection.error(&e))?;
            out.show(&bulk, details)?;
        }
        BulkVerb::List { server } => {
            let connection = server.connect()?;
            let bulks = connection.client.bulks().await.map_err(|e| connection.error(&e))?;
            if bulks.is_empty() {
                out.note("no bulks");
                return Ok(0);
            }
            out.list(&bulks, table)?;
        }
        BulkVerb::Cancel { bulk, server } => {
            let connection = server.connect()?;
            let bulk = connection.client.bulk_cancel(&bulk).await.map_err(|e| connection.error(&e))?;
            out.show(&bulk, details)?;
        }
    }
    Ok(0)
}

async fn start(args: StartArgs, out: Out) -> Result<u8> {
    let fields = args.fields.fields();
    let given = fields != sluice_client::NewFields::default();
    if given && args.action != "change" {
        return Err(CliError::usage(
            "--priority, --delay, --deliver-at-ms, --max-attempts, --set-tag and --no-tags need the action \
            change",
        ));
    }
    if args.to.is_some() && args.action != "move" {
        return Err(CliError::usage("--to needs the action move"));
    }
    let change = match args.action.as_str() {
        "cancel" => Change::Cancel,
        "hold" => Change::Hold,
        "approve" => Change::Approve,
        "deny" => Change::Deny,
        "retry" => Change::Retry,
        "move" => Change::Move { to: args.to.unwrap_or_default() },
        _ => Change::Set(fields),
    };
    let filter = BulkFilter {
        queue: args.filter.queue,
        state: args.filter.state,
        tag: args.filter.tag,
        header: args.filter.header.map(|(name, value)| BulkHeader { name, value }),
        sent_before_ms: args.filter.sent_before_ms,
        sent_after_ms: args.filter.sent_after_ms,
        attempts_min: args.filter.attempts_min,
        error_contains: args.filter.error_contains,
    };
    let connection = args.server.connect()?;
    if let Some(doing) = irrevocable(&change).filter(|_| !args.dry_run) {
        args.confirm.ask(&format!("{doing} all messages of queue {} that match", filter.queue))?;
    }
    let started = connection.client.bulk_start(&change, &filter, &args.note.note(), args.dry_run).await;
    let id = started.map_err(|e| connection.error(&e))?;
    if args.detach {
        out.show(&json!({ "bulk": id }), |_| format!("{id}\n"))?;
        return Ok(0);
    }
    let bulk = ended(&connection, &id, out).await?;
    out.show(&bulk, details)?;
    match bulk.error {
        Some(error) => Err(CliError::server(&error.code, &error.message, &error.details)),
        None => Ok(0),
    }
}

/// The name of a change that no other change reverses, for the confirmation.
fn irrevocable(change: &Change) -> Option<&'static str> {
    match change {
        Change::Cancel => Some("Cancelling"),
        Change::Deny => Some("Denying"),
        Change::Move { .. } => Some("Moving"),
        _ => None,
    }
}

/// Waits for the end of a bulk, with a progress bar.
async fn ended(connection: &Connection, id: &str, out: Out) -> Result<Bulk> {
    let mut shown: Option<(Progress, u64)> = None;
    loop {
        let bulk = connection.client.bulk(id).await.map_err(|e| connection.error(&e))?;
        let (progress, done) =
            shown.get_or_insert_with(|| (Progress::things(out, Some(bulk.total), "scanned"), 0));
        progress.add(bulk.scanned.saturating_sub(*done));
        *done = bulk.scanned;
        if !bulk.is_running() {
            progress.finish();
            return Ok(bulk);
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

fn what(bulk: &Bulk) -> String {
    let to = bulk.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
    let dry = if bulk.dry_run { " (dry run)" } else { "" };
    format!("{}{to}{dry}", bulk.action)
}

fn details(bulk: &Bulk) -> String {
    let mut table = Table::fields();
    table.field("bulk", bulk.bulk.clone());
    table.field("action", what(bulk));
    table.field("queue", bulk.filter.queue.clone());
    table.field("state", bulk.state.clone());
    table.field("scanned", format!("{} of {}", bulk.scanned, counted(bulk.total, "message")));
    table.field("matched", bulk.matched.to_string());
    table.field(if bulk.dry_run { "would change" } else { "changed" }, bulk.changed.to_string());
    table.field("skipped", bulk.skipped.to_string());
    if let Some(error) = &bulk.error {
        table.field("error", format!("{}: {}", error.code, error.message));
    }
    table.render()
}

fn table(bulks: &[Bulk]) -> String {
    let mut table = Table::new(&[
        "BULK", "ACTION", "QUEUE", "STATE", ">SCANNED", ">MATCHED", ">CHANGED", ">SKIPPED", ">STARTED",
    ]);
    for bulk in bulks {
        table.row([
            bulk.bulk.clone(),
            what(bulk),
            bulk.filter.queue.clone(),
            bulk.state.clone(),
            format!("{}/{}", bulk.scanned, bulk.total),
            bulk.matched.to_string(),
            bulk.changed.to_string(),
            bulk.skipped.to_string(),
            relative(bulk.started_at_ms),
        ]);
    }
    table.render()
}
