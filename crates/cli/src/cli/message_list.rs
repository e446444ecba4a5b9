//! Lists of messages: the part of a queue to show, and tables.

use clap::Args;
use sluice_client::Stored;

use super::connect::Connection;
use super::format::{line, relative, size};
use super::output::Table;
use super::{Out, Result, number};

/// Maximum number of characters of a payload in a list.
const PREVIEW: usize = 60;

/// The part of a long list to show.
#[derive(Debug, Args)]
pub(crate) struct PageFlags {
    /// Maximum number of messages.
    #[arg(long, short, value_name = "N", default_value_t = 100, value_parser = number(1u32..))]
    limit: u32,
    /// Cursor at which an earlier list ended.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// List all messages, without a maximum.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl PageFlags {
    /// Maximum number of messages, and the cursor at which the list begins.
    pub(super) fn begin(&self) -> (u64, Option<String>) {
        (if self.all { u64::MAX } else { u64::from(self.limit) }, self.cursor.clone())
    }
}

/// Messages to list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Messages { state: Option<&'a str>, payload: bool },
    Dead,
}

/// Prints page after page, up to the maximum or the end.
pub(super) async fn list(
    connection: &Connection,
    queue: &str,
    source: Source<'_>,
    page: &PageFlags,
    out: Out,
) -> Result<()> {
    let (mut left, mut cursor) = page.begin();
    let mut found = 0;
    loop {
        let limit = u32::try_from(left.min(500)).unwrap_or(500);
        let answer = match source {
            Source::Messages { state, payload } => {
                connection.client.messages(queue, state, cursor.as_deref(), limit, payload).await
            }
            Source::Dead => connection.client.dead(queue, cursor.as_deref(), limit).await,
        };
        let answer = answer.map_err(|e| connection.error(&e))?;
        if !answer.messages.is_empty() {
            out.list(&answer.messages, if matches!(source, Source::Dead) { dead_table } else { table })?;
        }
        found += answer.messages.len();
        left -= answer.messages.len() as u64;
        cursor = answer.next;
        if cursor.is_none() || left == 0 {
            break;
        }
    }
    match cursor {
        Some(cursor) => out.note(&format!(
            "there may be more: continue with --cursor {cursor}, or list everything with --all"
        )),
        None if found == 0 => out.note(&format!("no messages to list in {queue}")),
        None => {}
    }
    Ok(())
}

fn preview(message: &Stored) -> String {
    if message.payload_damaged {
        return "(damaged)".to_owned();
    }
    match message.payload_bytes() {
        Ok(Some(payload)) => match std::str::from_utf8(&payload) {
            Ok(text) => line(text, PREVIEW),
            Err(_) => format!("{} of binary data", size(payload.len() as u64)),
        },
        _ => String::new(),
    }
}

/// The state with its reason: `dead (max_attempts)`, `blocked (limit)`.
pub(super) fn state(m: &Stored) -> String {
    let because = m.reason.as_deref().or(m.blocked_by.as_deref()).or(m.cancelled.then_some("cancelled"));
    because.map_or_else(|| m.state.clone(), |because| format!("{} ({because})", m.state))
}

pub(super) fn table(messages: &[Stored]) -> String {
    let mut table =
        Table::new(&["ID", "STATE", ">PRIORITY", ">ATTEMPTS", ">SENT", ">DUE", ">SIZE", "PAYLOAD"]);
    for m in messages {
        table.row([
            m.id.clone(),
            state(m),
            m.priority.to_string(),
            format!("{}/{}", m.attempts, m.max_attempts),
            relative(m.sent_at_ms),
            m.deadline_ms.map_or_else(|| "-".to_owned(), relative),
            size(m.size_bytes),
            preview(m),
        ]);
    }
    table.render()
}

fn dead_table(messages: &[Stored]) -> String {
    let mut table = Table::new(&["ID", "REASON", ">ATTEMPTS", ">SENT", ">DIED", "LAST ERROR", "PAYLOAD"]);
    for m in messages {
        let error = m.history.iter().rev().find_map(|a| a.error.as_deref()).unwrap_or("-");
        table.row([
            m.id.clone(),
            m.reason.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{}/{}", m.attempts, m.max_attempts),
            relative(m.sent_at_ms),
            m.reason_at_ms.map_or_else(|| "-".to_owned(), relative),
            line(error.trim(), PREVIEW),
            preview(m),
        ]);
    }
    table.render()
}
