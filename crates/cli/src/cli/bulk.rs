//! `sluice bulk`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Bulk, BulkFilter, Change};

use super::change::{FieldFlags, NoteFlags};
use super::confirm::Confirmation;
use super::connect::{Connection, ServerFlags};
use super::filter::FilterFlag;
use super::format::{counted, relative};
use super::output::Table;
use super::progress::Progress;
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
#[command(after_help = "Examples:\n  \
    sluice bulk start move --queue a --to b --where '{\"/tags\":{\"contains\":\"red\"}}' --dry-run\n  \
    sluice bulk start retry --queue a --where '{\"/state\":\"dead\",\"/error\":\"smtp: 451\"}' --per-second 50\n  \
    sluice bulk start change --queue a --where '{\"/headers/customer\":\"12\"}' --priority 9")]
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
    /// Change at most so many messages in a second, 1 to 100000.
    #[arg(long, value_name = "N", value_parser = number(1u32..=100_000))]
    per_second: Option<u32>,
    /// Print the id of the bulk without waiting for its end.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    confirm: Confirmation,
    /// Name of the queue.
    #[arg(long, short)]
    queue: String,
    #[command(flatten)]
    filter: FilterFlag,
    #[command(flatten)]
    server: ServerFlags,
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
    let filter = BulkFilter { queue: args.queue, filter: args.filter.read()? };
    let connection = args.server.connect()?;
    if let Some(doing) = irrevocable(&change).filter(|_| !args.dry_run) {
        args.confirm.ask(&format!("{doing} all messages of queue {} that match", filter.queue))?;
    }
    let (note, client) = (args.note.note(), &connection.client);
    let started = client.bulk_start(&change, &filter, &note, args.dry_run, args.per_second).await;
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
    if let Some(per_second) = bulk.per_second {
        table.field("per second", per_second.to_string());
    }
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
