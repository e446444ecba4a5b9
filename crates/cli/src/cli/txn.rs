//! `sluice txn`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Committed, OperationResult, StageResult, StagedDocument};

use super::confirm::Confirmation;
use super::connect::ServerFlags;
use super::values::not_empty;

use super::txn_resolve::{self, ResolveArgs};
use super::{CliError, Out, Result, bounded, duration, txn_open};
use crate::connect::{TRANSACTION, WORK_TRANSACTION};

#[derive(Debug, Subcommand)]
pub(crate) enum TxnVerb {
    /// Do operations on queues, documents and locks together, all or none.
    Commit(CommitArgs),
    /// Begin a transaction whose operations are staged over several calls; print its id.
    Begin {
        /// Time after which it is rolled back.
        #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
        ttl: Duration,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Stage operations in an open transaction, and read documents as it sees them.
    Stage(StageArgs),
    /// Roll an open transaction back: nothing of it is done.
    Rollback(RollbackArgs),
    /// List the transactions of a namespace that are open or in doubt.
    List {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Show one of them with its operations, without contents.
    Show {
        /// Name of the transaction, as `sluice txn list` prints it.
        name: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Finish a transaction over several namespaces that is in doubt.
    Resolve(ResolveArgs),
}

/// An open transaction.
#[derive(Debug, Args)]
pub(crate) struct OpenFlag {
    /// Id of the transaction, as `sluice txn begin` has printed it.
    #[arg(long, value_name = "ID", env = TRANSACTION, hide_env_values = true, value_parser = not_empty)]
    transaction: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  export SLUICE_TRANSACTION=$(sluice txn begin --ttl 1m)\n  \
    echo '{\"operations\": [{\"get\": {\"key\": \"orders/17\"}}]}' | sluice txn stage\n  \
    echo '{\"operations\": [{\"put\": {\"key\": \"orders/17\", \"content\": \"paid\"}}]}' | sluice txn stage\n  \
    sluice txn commit\n\n\
    Operations are those of `sluice txn commit`, and get, which prints the content of a document. Nobody \
    else sees what is staged. The commit is refused if a document that was read has changed.")]
pub(crate) struct StageArgs {
    /// JSON file with the operations. If it is missing or `-`, stdin has them.
    file: Option<PathBuf>,
    #[command(flatten)]
    open: OpenFlag,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice txn commit <<'END'\n  {\"operations\": [\n    \
    {\"put\": {\"key\": \"orders/17\", \"content\": \"paid\", \"if_version\": 3}},\n    \
    {\"send\": {\"queue\": \"mail\", \"payload\": \"thank you\"}}\n  ]}\n  END\n\n\
    Operations are send, settle, put, patch, delete, check, attach, delete_attachment, acquire and release, \
    with the fields of the HTTP API; with `namespace` one is of another namespace. Prints what came of each, \
    one per line. Each is admitted by the state before the transaction: none depends on another.")]
pub(crate) struct CommitArgs {
    /// JSON file with the operations. If it is missing or `-`, stdin has them. An open transaction takes no
    /// file, and stdin is not read for it: `sluice txn stage` adds operations to it.
    file: Option<PathBuf>,
    /// A repeat with the same key within the server's window does nothing and prints the first outcome.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Commit all that is staged in this open transaction. A repeat prints the first outcome.
    #[arg(long, value_name = "ID", env = TRANSACTION, hide_env_values = true, value_parser = not_empty)]
    transaction: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

impl CommitArgs {
    /// Id of the open transaction to commit; `None`: the operations are given.
    fn open(&self) -> Result<Option<&str>> {
        let Some(open) = self.transaction.as_deref() else { return Ok(None) };
        let refused = match (&self.file, &self.idempotency_key) {
            (Some(_), _) => "an open transaction is committed as it is staged: FILE is not a part of it",
            (None, Some(_)) => "the commit of an open transaction has no idempotency key: it can be repeated",
            (None, None) => return Ok(Some(open)),
        };
        Err(CliError::usage(refused).hint(format!(
            "`sluice txn stage` adds operations to it. Leave --transaction out, or unset {TRANSACTION}, for a \
             transaction of its own."
        )))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice txn rollback\n  \
    sluice txn rollback 01ba4f2c3d8-5a0c41e7 --yes\n\n\
    Who has begun a transaction rolls it back by its id. An operator, who does not know that, names one of \
    `sluice txn list`.")]
pub(crate) struct RollbackArgs {
    /// Name of another's transaction, as `sluice txn list` prints it.
    name: Option<String>,
    /// Id of the transaction, as `sluice txn begin` has printed it.
    #[arg(
        long,
        value_name = "ID",
        env = TRANSACTION,
        hide_env_values = true,
        value_parser = not_empty,
        required_unless_present = "name"
    )]
    transaction: Option<String>,
    #[command(flatten)]
    confirm: Confirmation,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: TxnVerb, out: Out) -> Result<u8> {
    match verb {
        TxnVerb::Commit(args) => commit(&args, out).await?,
        TxnVerb::Begin { ttl, server } => {
            let connection = server.connect()?;
            let begun = connection.client.transaction_begin(ttl).await;
            out.show(&begun.map_err(|e| connection.error(&e))?, |begun| format!("{}\n", begun.transaction))?;
        }
        TxnVerb::Stage(args) => {
            let body = operations(args.file.as_deref())?;
            let connection = args.server.connect()?;
            let results = connection.client.transaction_stage_json(&args.open.transaction, body).await;
            let results = results.map_err(|e| connection.error(&e))?;
            out.list(&results, read)?;
            for at in absent(&results) {
                out.note(&format!("operations[{at}].get: there is no such document"));
            }
        }
        TxnVerb::Rollback(args) => roll_back(args, out).await?,
        TxnVerb::List { server } => txn_open::list(&server, out).await?,
        TxnVerb::Show { name, server } => txn_open::show(&name, &server, out).await?,
        TxnVerb::Resolve(args) => txn_resolve::resolve(args, out).await?,
    }
    Ok(0)
}

/// Rolls the transaction back that is named, or else the one of the caller.
async fn roll_back(args: RollbackArgs, out: Out) -> Result<()> {
    let RollbackArgs { name, transaction, confirm, server } = args;
    let connection = server.connect()?;
    let done = match (&name, &transaction) {
        (Some(name), _) => {
            confirm.ask(&format!("Rolling back transaction {name}"))?;
            connection.client.open_transaction_break(name).await
        }
        (None, own) => {
            let own = own.as_deref().unwrap_or_default();
            expect_own(own)?;
            connection.client.transaction_rollback(own).await
        }
    };
    done.map_err(|e| connection.error(&e))?;
    out.show(&json!({}), |_| "rolled back\n".to_owned())
}

async fn commit(args: &CommitArgs, out: Out) -> Result<()> {
    let open = args.open()?;
    let connection = args.server.connect()?;
    let committed = match open {
        Some(transaction) => {
            expect_own(transaction)?;
            connection.client.transaction_commit(transaction).await
        }
        None => {
            let body = operations(args.file.as_deref())?;
            connection.client.commit_json(body, args.idempotency_key.as_deref()).await
        }
    };
    let committed = committed.map_err(|e| connection.error(&e))?;
    if committed.duplicate {
        out.note("done before: this is the outcome of the first request with this key");
    }
    out.show(&committed, lines)
}

/// Refuses to end the transaction of a command of `sluice work --transactional`, which ends it.
fn expect_own(transaction: &str) -> Result<()> {
    if std::env::var_os(WORK_TRANSACTION).is_none_or(|of_work| of_work != *transaction) {
        return Ok(());
    }
    let reason = "sluice work ends the transaction of this command";
    Err(CliError::usage(reason).hint("It commits when the command ends with 0, and else rolls back."))
}

/// Contents that were read, each with a line end.
fn read(results: &[StageResult]) -> String {
    let read = results.iter().filter_map(|result| result.document.as_ref().and_then(StagedDocument::bytes));
    read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned() + "\n").collect()
}

/// Places of the operations that have read a document which is not there.
fn absent(results: &[StageResult]) -> impl Iterator<Item = usize> {
    results.iter().enumerate().filter(|(_, result)| result.found == Some(false)).map(|(at, _)| at)
}

/// Reads the text of the operations.
fn operations(file: Option<&Path>) -> Result<String> {
    if file.is_none() && std::io::stdin().is_terminal() {
        return Err(CliError::usage("no operations given").hint("Give a JSON file, or pipe it in."));
    }
    let path = file.unwrap_or(Path::new("-"));
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let text = bounded::text(bounded::read_file(path, bounded::FILE_BYTES_MAX)?, &name)?;
    if text.trim().is_empty() {
        return Err(CliError::usage(format!("no operations given: {name} is empty")));
    }
    Ok(text)
}

fn lines(committed: &Committed) -> String {
    committed.results.iter().map(|result| line(result) + "\n").collect()
}

fn line(result: &OperationResult) -> String {
    match result {
        OperationResult { id: Some(id), .. } => format!("sent {id}"),
        OperationResult { written: Some(written), .. } => {
            format!("written version {}, etag {}", written.version, written.etag)
        }
        OperationResult { grant: Some(grant), .. } => {
            format!("granted {}, fencing token {}", grant.token, grant.fencing_token)
        }
        OperationResult { .. } => "done".to_owned(),
    }
}
