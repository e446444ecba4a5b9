//! `sluice doc watch`.

use std::time::Duration;

use clap::Args;
use sluice_client::{ChangedDocument, DocumentChanges};

use super::connect::{Connection, ServerFlags};
use super::format::{size, time};
use super::outage::Outage;
use super::{Out, Result, number};

/// Longest wait of one request.
const WAIT: Duration = Duration::from_secs(60);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice doc watch config/ --new\n  sluice doc watch --json | jq -r .key\n\n\
                  Of each document the last version is printed, not each one. After a broken connection the \
                  command continues after the last change."
)]
pub(crate) struct WatchArgs {
    /// Watch only keys that begin with this.
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    /// Do not print the documents as they are at the beginning.
    #[arg(long, conflicts_with = "since")]
    new: bool,
    /// Begin after this change, the `etag` of --json.
    #[arg(long, value_name = "ETAG")]
    since: Option<String>,
    /// End after this number of changes.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    max: Option<u64>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Prints changes until it is interrupted.
pub(super) async fn run(args: WatchArgs, out: Out) -> Result<()> {
    let WatchArgs { prefix, new, since, max, server } = args;
    let connection = server.connect()?;
    let mut watch = Watch { connection, prefix, after: since, has_begun: false, outage: Outage::default() };
    let (mut count, mut is_printed) = (0, !new);
    while max.is_none_or(|max| count < max) {
        let DocumentChanges { changes, more, .. } = watch.next(out).await?;
        for change in changes.iter().filter(|_| is_printed) {
            if max.is_some_and(|max| count == max) {
                break;
            }
            count += 1;
            out.show(change, line)?;
        }
        is_printed |= !more;
    }
    Ok(())
}

struct Watch {
    connection: Connection,
    prefix: String,
    /// Place after which it goes on.
    after: Option<String>,
    has_begun: bool,
    outage: Outage,
}

impl Watch {
    /// The next changes, none after a failure that may pass.
    async fn next(&mut self, out: Out) -> Result<DocumentChanges> {
        let wait = if self.after.is_some() { WAIT } else { Duration::ZERO };
        let found = self.connection.client.document_changes(&self.prefix, self.after.as_deref(), wait).await;
        match found {
            Ok(found) => {
                self.outage.ends(&self.connection, out);
                self.has_begun = true;
                self.after = Some(found.next.clone());
                Ok(found)
            }
            Err(error) if self.has_begun && error.code() == Some("changes_forgotten") => {
                out.note("ends of documents may be missing: this reader was away for too long");
                self.after = None;
                Ok(self.nothing())
            }
            Err(error) => {
                self.outage.begins(&self.connection, &error, self.has_begun, out)?;
                tokio::time::sleep(PAUSE).await;
                Ok(self.nothing())
            }
        }
    }

    fn nothing(&self) -> DocumentChanges {
        let next = self.after.clone().unwrap_or_default();
        DocumentChanges { changes: Vec::new(), next, more: true }
    }
}

fn line(change: &ChangedDocument) -> String {
    let at = time(change.changed_at_ms);
    match &change.document {
        None => format!("{at}  gone                    {}\n", change.key),
        Some(document) => {
            let version = format!("version {}", document.version);
            format!("{at}  {version:<12}  {:>8}  {}\n", size(document.content_bytes), change.key)
        }
    }
}
