//! `sluice dead`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::connect::ServerFlags;
use super::format::counted;
use super::message::{PageFlags, Source, list};
use super::queue::Sure;
use super::{Out, Result};

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
    Redrive {
        /// Name of the queue.
        queue: String,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        server: ServerFlags,
    },
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
        DeadVerb::Redrive { queue, which, server } => {
            let connection = server.connect()?;
            let redriven = connection.client.dead_redrive(&queue, which.ids()).await;
            let redriven = redriven.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "redriven": redriven }), |_| {
                format!("redriven {}\n", counted(redriven, "message"))
            })?;
        }
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
