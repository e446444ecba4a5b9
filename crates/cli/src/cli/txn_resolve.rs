//! `sluice txn resolve`.

use clap::Args;
use sluice_client::Resolved;

use super::confirm::Confirmation;
use super::connect::ServerFlags;
use super::{Out, Result};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice txn resolve 000004000000000004d2 --namespace billing\n  \
    sluice txn resolve 000004000000000004d2 --namespace billing --abort --yes\n\n\
    Servers do this by themselves: within seconds, or as soon as the shard that decides has a leader. Where \
    that shard is lost for good, --commit or --abort finishes the part of this namespace. The other parts may \
    be finished otherwise, and the transaction is done by halves then. If the shard answers, its decision \
    counts, and a flag against it is refused.")]
pub(crate) struct ResolveArgs {
    /// Id of the transaction, as `sluice txn list` prints it.
    id: String,
    /// Commit the part of this namespace if the shard that decides does not answer.
    #[arg(long, conflicts_with = "abort")]
    commit: bool,
    /// Abort the part of this namespace if the shard that decides does not answer.
    #[arg(long)]
    abort: bool,
    #[command(flatten)]
    confirm: Confirmation,
    #[command(flatten)]
    server: ServerFlags,
}

/// Finishes a transaction that is in doubt.
pub(super) async fn resolve(args: ResolveArgs, out: Out) -> Result<()> {
    let ResolveArgs { id, commit, abort, confirm, server } = args;
    let connection = server.connect()?;
    let force = match (commit, abort) {
        (true, _) => Some(("commit", "Committing")),
        (_, true) => Some(("abort", "Aborting")),
        (false, false) => None,
    };
    if let Some((_, ending)) = force {
        let namespace = &connection.namespace;
        confirm.ask(&format!(
            "{ending} only the part of transaction {id} in namespace {namespace} (others may end otherwise)"
        ))?;
    }
    let resolved = connection.client.in_doubt_resolve(&id, force.map(|(force, _)| force)).await;
    let resolved = resolved.map_err(|e| connection.error(&e))?;
    if resolved.forced {
        out.note("the decision is not known: other parts of the transaction may end otherwise");
    }
    out.show(&resolved, |Resolved { outcome, forced, .. }| {
        format!("{outcome}{}\n", if *forced { " by force" } else { "" })
    })
}
