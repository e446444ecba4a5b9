//! `sluice message`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use sluice_client::{Change, Stored};

use super::change::{ChangeArgs, ChangeFieldsArgs, MoveArgs};
use super::connect::{ReadFlags, ServerFlags};
use super::format::{line, relative, size, time};
use super::message_list::{PageFlags, Source, list, state, table};
use super::message_search::{self, SearchArgs};
use super::output::Table;
use super::{CliError, Out, Result, duration, number, request};

#[derive(Debug, Subcommand)]
pub(crate) enum MessageVerb {
    /// Show a message: fields, history, payload.
    Show {
        /// Id of the message.
        id: String,
        /// Print only the payload, unchanged.
        #[arg(long, conflicts_with = "json")]
        raw: bool,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Print the result of a message, after waiting for it if --wait is given.
    Result {
        /// Id of the message.
        id: String,
        /// Maximum wait for the end of the message.
        #[arg(long, short, value_name = "DURATION", value_parser = duration, default_value = "0s")]
        wait: Duration,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Show the messages that are next in line, without receiving them.
    Peek {
        /// Name of the queue.
        queue: String,
        /// Maximum number of messages.
        #[arg(long, short, value_name = "N", default_value_t = 10, value_parser = number(1u32..=100))]
        limit: u32,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// List the messages of a queue by id, which is the order of sending.
    List(ListArgs),
    /// Find the messages of a queue that match a filter, by id.
    Search(SearchArgs),
    /// Cancel messages: they are deleted at once, or, if leased, when their lease ends.
    Cancel(ChangeArgs),
    /// Hold waiting messages until somebody approves or denies them.
    Hold(ChangeArgs),
    /// Approve held messages: they become ready or delayed again.
    Approve(ChangeArgs),
    /// Deny held messages: they become dead letters.
    Deny(ChangeArgs),
    /// Make delayed messages and dead letters ready now.
    Retry(ChangeArgs),
    /// Move messages to another queue.
    Move(MoveArgs),
    /// Change fields of waiting messages.
    Change(ChangeFieldsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Name of the queue.
    queue: String,
    /// Only messages in this state.
    #[arg(long, short, value_parser = PossibleValuesParser::new(["delayed", "ready", "leased", "held", "dead", "blocked", "done"]))]
    state: Option<String>,
    #[command(flatten)]
    page: PageFlags,
    /// Include payloads.
    #[arg(long)]
    payload: bool,
    #[command(flatten)]
    server: ReadFlags,
}

pub(super) async fn run(verb: MessageVerb, out: Out) -> Result<u8> {
    match verb {
        MessageVerb::Show { id, raw, server } => {
            let connection = server.connect()?;
            let message = connection.client.message(&id, true).await.map_err(|e| connection.error(&e))?;
            if !raw {
                out.show(&message, details)?;
                return Ok(0);
            }
            match message.payload_bytes().map_err(|e| CliError::client(&e))? {
                Some(payload) => out.bytes(&payload)?,
                None => return Err(CliError::failed(format!("the payload of {id} cannot be read"))),
            }
        }
        MessageVerb::Result { id, wait, server } => {
            return request::result(&server.connect()?, &id, wait, out).await;
        }
        MessageVerb::Peek { queue, limit, server } => {
            let connection = server.connect()?;
            let messages = connection.client.peek(&queue, limit).await.map_err(|e| connection.error(&e))?;
            if messages.is_empty() {
                out.note(&format!("nothing is ready in {queue}"));
                return Ok(0);
            }
            out.list(&messages, table)?;
        }
        MessageVerb::Cancel(args) => return args.run(Change::Cancel, "cancelled", out).await,
        MessageVerb::Hold(args) => return args.run(Change::Hold, "held", out).await,
        MessageVerb::Approve(args) => return args.run(Change::Approve, "approved", out).await,
        MessageVerb::Deny(args) => return args.run(Change::Deny, "denied", out).await,
        MessageVerb::Retry(args) => return args.run(Change::Retry, "retried", out).await,
        MessageVerb::Move(args) => return args.run(out).await,
        MessageVerb::Change(args) => return args.run(out).await,
        MessageVerb::Search(args) => message_search::run(args, out).await?,
        MessageVerb::List(args) => {
            let connection = args.server.connect()?;
            let source = Source::Messages { state: args.state.as_deref(), payload: args.payload };
            list(&connection, &args.queue, source, &args.page, out).await?;
        }
    }
    Ok(0)
}

fn details(m: &Stored) -> String {
    let mut table = Table::fields();
    add_state(&mut table, m);
    add_options(&mut table, m);
    table.field("version", m.version.clone());
    for changed in &m.changes {
        let by = changed.note.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let why = changed.note.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        table.field(&changed.change, format!("{}{by}{why}", relative(changed.at_ms)));
    }
    table.field("size", size(m.size_bytes));
    let mut text = table.render();
    if !m.history.is_empty() {
        text.push('\n');
        text.push_str(&history(m));
    }
    text.push_str(&payload(m));
    text
}

/// Adds the state, with its times and its holder.
fn add_state(table: &mut Table, m: &Stored) {
    table.field("id", m.id.clone());
    table.field("queue", m.queue.clone());
    table.field("state", state(m));
    if let Some(from) = &m.from_queue {
        table.field("died in", from.clone());
    }
    table.field("priority", m.priority.to_string());
    table.field("attempts", format!("{} of {}", m.attempts, m.max_attempts));
    table.field("deliveries", m.deliveries.to_string());
    table.field("sent", format!("{} ({})", time(m.sent_at_ms), relative(m.sent_at_ms)));
    if let Some(at) = m.deadline_ms {
        let what = match &*m.state {
            "leased" => "lease ends",
            "held" => "ready at the earliest",
            _ => "ready",
        };
        table.field(what, format!("{} ({})", time(at), relative(at)));
    }
    if let Some(holder) = &m.holder {
        let name = if holder.name.is_empty() { String::new() } else { format!(" ({})", holder.name) };
        table.field("held by", format!("consumer {}{name}", holder.consumer));
    }
    if let Some(at) = m.reason_at_ms {
        table.field("since", format!("{} ({})", time(at), relative(at)));
    }
    if let Some(receipt) = &m.receipt {
        table.field("receipt", receipt.clone());
    }
    if let Some(progress) = &m.progress {
        let note = progress.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        table.field("progress", format!("{}% {}{note}", progress.percent, relative(progress.at_ms)));
    }
    if let Some(at) = m.done_at_ms {
        table.field("done", format!("{} ({})", time(at), relative(at)));
    }
    if let Some(at) = m.kept_until_ms {
        table.field("kept until", format!("{} ({})", time(at), relative(at)));
    }
    if let Some(at) = m.expires_at_ms {
        table.field("expires", format!("{} ({})", time(at), relative(at)));
    }
}

/// Adds the fields that the sender has given.
fn add_options(table: &mut Table, m: &Stored) {
    for (name, value) in [
        ("ordering key", &m.ordering_key),
        ("fair key", &m.fair_key),
        ("limit key", &m.limit_key),
        ("unique key", &m.unique_key),
        ("correlation id", &m.correlation_id),
        ("reply to", &m.reply_to),
    ] {
        if let Some(value) = value {
            table.field(name, value.as_str());
        }
    }
    if let Some(cost) = m.cost {
        table.field("cost", cost.to_string());
    }
    if let Some(content_type) = &m.content_type {
        table.field("content type", content_type.as_str());
    }
    for (name, value) in &m.headers {
        table.field("header", format!("{name}: {value}"));
    }
    if !m.tags.is_empty() {
        table.field("tags", m.tags.join(", "));
    }
}

/// The payload as a paragraph, or the reason why it is not shown.
fn payload(m: &Stored) -> String {
    match m.payload_bytes() {
        Ok(Some(payload)) => match std::str::from_utf8(&payload) {
            Ok(payload) => format!("\n{payload}\n"),
            Err(_) => "\nThe payload is binary: --raw prints it unchanged.\n".to_owned(),
        },
        _ => "\nThe payload cannot be read.\n".to_owned(),
    }
}

fn history(m: &Stored) -> String {
    let mut table = Table::new(&[">ATTEMPT", "END", "STARTED", ">TOOK", "ERROR"]);
    for attempt in &m.history {
        table.row([
            attempt.attempt.to_string(),
            attempt.end.clone(),
            time(attempt.started_at_ms),
            super::format::length(attempt.ended_at_ms.saturating_sub(attempt.started_at_ms)),
            attempt.error.as_deref().map_or_else(|| "-".to_owned(), |e| line(e.trim(), 200)),
        ]);
    }
    table.render()
}
