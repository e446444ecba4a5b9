//! Changes of messages: `sluice message cancel|hold|approve|deny|retry|move|change`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use sluice_client::{Change, NewFields, Note};
use sluice_engine::limit::COST_MAX;

use super::connect::ServerFlags;
use super::{CliError, Out, Result, duration, number};

/// The messages to change, and who changes them.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Ids of the messages.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    note: NoteFlags,
    /// Change the message only if it still has this version, as shown by `sluice message show`.
    #[arg(long)]
    version: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Author of and reason for a change.
#[derive(Clone, Debug, Args)]
pub(super) struct NoteFlags {
    /// Author of the change, kept in the message's list of changes.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Reason for the change, kept in the message's list of changes.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl NoteFlags {
    pub(super) fn note(self) -> Note {
        Note { by: self.by, why: self.why }
    }
}

/// New fields of messages.
#[derive(Clone, Debug, Args)]
#[group(multiple = true)]
pub(super) struct FieldFlags {
    /// Priority, 0 to 9; higher is delivered first.
    #[arg(long, short, value_parser = number(0u8..=9))]
    priority: Option<u8>,
    /// Make the message ready after this time.
    #[arg(long, short, value_name = "DURATION", value_parser = duration, conflicts_with = "deliver_at_ms")]
    delay: Option<Duration>,
    /// Make the message ready at this time, in milliseconds since the Unix epoch.
    #[arg(long, value_name = "MS", value_parser = number(0u64..))]
    deliver_at_ms: Option<u64>,
    /// Attempts before a message becomes a dead letter.
    #[arg(long, value_name = "N", value_parser = number(1u32..=10_000))]
    max_attempts: Option<u32>,
    /// Cost of each delivery from now on, in the rates of the queue's limit.
    #[arg(long, value_name = "COST", value_parser = number(0u32..=COST_MAX))]
    cost: Option<u32>,
    /// New tag, which replaces the message's tags; repeat the flag for several tags.
    #[arg(long = "set-tag", value_name = "TAG", conflicts_with = "no_tags")]
    tags: Vec<String>,
    /// Remove all tags.
    #[arg(long)]
    no_tags: bool,
}

impl FieldFlags {
    pub(super) fn fields(self) -> NewFields {
        let millis = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        NewFields {
            priority: self.priority,
            delay_ms: self.delay.map(millis),
            deliver_at_ms: self.deliver_at_ms,
            max_attempts: self.max_attempts,
            cost: self.cost,
            tags: (self.no_tags || !self.tags.is_empty()).then_some(self.tags),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Queue to move to; it must exist.
    #[arg(long, value_name = "QUEUE")]
    to: String,
}

impl MoveArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        self.change.run(Change::Move { to: self.to }, "moved", out).await
    }
}

#[derive(Debug, Args)]
pub(crate) struct ChangeFieldsArgs {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    fields: FieldFlags,
}

impl ChangeFieldsArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        self.change.run(Change::Set(self.fields.fields()), "changed", out).await
    }
}

impl ChangeArgs {
    /// Changes one message after the other. Returns the error of the first one that could not be changed.
    pub(super) async fn run(self, change: Change, done: &str, out: Out) -> Result<u8> {
        let connection = self.server.connect()?;
        let note = self.note.note();
        let mut failed: Option<CliError> = None;
        for id in &self.ids {
            let changed = connection.client.message_change(id, &change, &note, self.version.as_deref()).await;
            match changed {
                Ok(()) => out.show(&json!({"id": id, "done": done}), |_| format!("{done} {id}\n"))?,
                Err(error) if failed.is_some() => out.note(&format!("error: {error}")),
                Err(error) => failed = Some(connection.error(&error)),
            }
        }
        failed.map_or(Ok(0), Err)
    }
}
