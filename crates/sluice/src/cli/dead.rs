//! `sluice dead`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::connect::ServerFlags;
use super::format::counted;
use super::message::{PageFlags, Source, list};
use super::progress::Progress;
use super::sure::Sure;
use super::{Out, Result, number};

/// How often one looks how far a redrive has come.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(crate) enum DeadVerb {
    /// List dead letters with the reason and the last error.
    List {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Make dead letters ready again, their attempts counted from 0.
    Redrive(RedriveArgs),
    /// Delete dead letters.
    Delete {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        sure: Sure,
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
    /// All that are dead at this moment.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// With --all: so many per second, 1 to 100000, and wait until all are. It goes on when the command is
    /// interrupted.
    #[arg(long, value_name = "N", requires = "all", value_parser = number(1u32..=100_000))]
    per_second: Option<u32>,
    /// With --per-second: do not wait.
    #[arg(long, requires = "per_second")]
    no_wait: bool,
    /// End a redrive at a rate: what is left of it stays dead.
    #[arg(long, conflicts_with_all = ["ids", "all", "per_second"])]
    end: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Some, or all.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Ids of dead letters.
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All that are dead at this moment.
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
        DeadVerb::Redrive(args) => redrive(args, out).await?,
        DeadVerb::Delete { queue, which, sure, server } => {
            let connection = server.connect()?;
            sure.ask(&format!("Deleting {} of queue {queue}", which.describe()))?;
            let deleted = connection.client.dead_delete(&queue, which.ids()).await;
            let deleted = deleted.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": deleted }), |_| {
                format!("deleted {}\n", counted(deleted, "message"))
            })?;
        }
    }
    Ok(0)
}

async fn redrive(args: RedriveArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let (client, queue) = (&connection.client, &args.queue);
    if args.end {
        let left = client.dead_redrive_end(queue).await.map_err(|e| connection.error(&e))?;
        return out
            .show(&json!({ "left": left }), |_| format!("ended with {} left\n", counted(left, "message")));
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
