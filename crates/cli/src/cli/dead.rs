//! `sluice dead`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::DeadErrors;

use super::confirm::Confirmation;
use super::connect::{ReadFlags, ServerFlags};
use super::format::counted;
use super::message_list::{PageFlags, Source, list};
use super::output::Table;
use super::progress::Progress;
use super::{Out, Result, number};

/// Interval between two requests for the progress of a redrive.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(crate) enum DeadVerb {
    /// List dead letters with their reason and last error.
    List {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Count dead letters by the text of their last error.
    Errors {
        /// Name of the queue.
        queue: String,
        /// `next` of the answer before, to continue in a queue of more than 10,000 dead letters.
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Make dead letters ready again, with attempts counted from 0.
    Redrive(RedriveArgs),
    /// Delete dead letters.
    Delete {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// Name of the queue.
    queue: String,
    /// Ids of dead letters.
    #[arg(required_unless_present_any = ["all", "end"], value_name = "ID")]
    ids: Vec<String>,
    /// All messages that are dead letters at this moment.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// With --all: redrive at this rate, 1 to 100000 per second, and wait for the end. The redrive continues
    /// when this command is interrupted.
    #[arg(long, value_name = "N", requires = "all", value_parser = number(1u32..=100_000))]
    per_second: Option<u32>,
    /// With --per-second: do not wait for the end.
    #[arg(long, requires = "per_second")]
    no_wait: bool,
    /// End a redrive at a rate: messages that it has not reached stay dead letters.
    #[arg(long, conflicts_with_all = ["ids", "all", "per_second"])]
    end: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Some dead letters by id, or all.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Ids of dead letters.
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All messages that are dead letters at this moment.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

impl Which {
    fn ids(&self) -> Option<&[String]> {
        if self.all { None } else { Some(&self.ids) }
    }

    fn describe(&self) -> String {
        if self.all { "all dead letters".to_owned() } else { counted(self.ids.len() as u64, "dead letter") }
    }
}

pub(super) async fn run(verb: DeadVerb, out: Out) -> Result<u8> {
    match verb {
        DeadVerb::List { queue, page, server } => {
            list(&server.connect()?, &queue, Source::Dead, &page, out).await?;
        }
        DeadVerb::Errors { queue, cursor, server } => {
            let connection = server.connect()?;
            let counted = connection.client.dead_errors(&queue, cursor.as_deref()).await;
            let counted = counted.map_err(|e| connection.error(&e))?;
            if !out.json && is_empty(&counted) {
                out.note(&format!("no dead letters in queue {queue}"));
            } else {
                out.show(&counted, errors_table)?;
            }
            if let Some(cursor) = &counted.next {
                out.note(&format!("there may be more: continue with --cursor {cursor}"));
            }
        }
        DeadVerb::Redrive(args) => redrive(args, out).await?,
        DeadVerb::Delete { queue, which, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("Deleting {} of queue {queue}", which.describe()))?;
            let deleted = connection.client.dead_delete(&queue, which.ids()).await;
            let deleted = deleted.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": deleted }), |_| {
                format!("deleted {}\n", counted(deleted, "message"))
            })?;
        }
    }
    Ok(0)
}

fn is_empty(counted: &DeadErrors) -> bool {
    let others = counted.with_other_texts + counted.with_damaged_text + counted.without_text;
    counted.errors.is_empty() && others == 0
}

fn errors_table(counted: &DeadErrors) -> String {
    let mut table = Table::new(&[">MESSAGES", "LAST ERROR"]);
    for error in &counted.errors {
        table.row([error.messages.to_string(), error.error.clone()]);
    }
    for (messages, about) in [
        (counted.with_other_texts, "(other texts)"),
        (counted.with_damaged_text, "(damaged text)"),
        (counted.without_text, "(no text)"),
    ] {
        if messages > 0 {
            table.row([messages.to_string(), about.to_owned()]);
        }
    }
    table.render()
}

async fn redrive(args: RedriveArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let (client, queue) = (&connection.client, &args.queue);
    if args.end {
        let left = client.dead_redrive_end(queue).await.map_err(|e| connection.error(&e))?;
        return out.show(&json!({ "left": left }), |_| {
            format!("ended the redrive; {} left as dead letters\n", counted(left, "message"))
        });
    }
    let redriven = match args.per_second {
        None => client.dead_redrive(queue, (!args.all).then_some(&args.ids[..])).await,
        Some(per_second) => client.dead_redrive_rate(queue, per_second).await,
    };
    let redriven = redriven.map_err(|e| connection.error(&e))?;
    if args.per_second.is_some() && !args.no_wait {
        let progress = Progress::things(out, Some(redriven), "redriven");
        let mut done = 0;
        while done < redriven {
            let shown = client.queue(queue).await.map_err(|e| connection.error(&e))?;
            let now_done = redriven.saturating_sub(shown.redriving.map_or(0, |redriving| redriving.left));
            progress.add(now_done.saturating_sub(done));
            done = now_done;
            if shown.redriving.is_none() {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        progress.finish();
    }
    out.show(&json!({ "redriven": redriven }), |_| format!("redriven {}\n", counted(redriven, "message")))
}
