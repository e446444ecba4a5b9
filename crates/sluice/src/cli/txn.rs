//! `sluice txn`.

use std::fs::File;
use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sluice_client::{Committed, OperationResult};

use super::connect::ServerFlags;
use super::format::size;
use super::{CliError, Out, Result};

/// Longest transaction in bytes; a longer one is refused before it fills the memory.
const BYTES_MAX: u64 = 96 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum TxnVerb {
    /// Do operations on queues, documents and locks together, all or none.
    Commit(CommitArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice txn commit <<'END'\n  {\"operations\": [\n    \
    {\"put\": {\"key\": \"orders/17\", \"content\": \"paid\", \"if_version\": 3}},\n    \
    {\"send\": {\"queue\": \"mail\", \"payload\": \"thank you\"}}\n  ]}\n  END\n\n\
    Operations are send, settle, put, patch, delete, acquire and release, with the fields of the HTTP API.\n\
    Prints what came of each, one per line. Each is admitted by the state before the transaction: none\n\
    depends on another.")]
pub(crate) struct CommitArgs {
    /// JSON file with the operations. If it is missing or `-`, stdin has them.
    file: Option<PathBuf>,
    /// A repeat with the same key within the server's window does nothing and prints the first outcome.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: TxnVerb, out: Out) -> Result<u8> {
    let TxnVerb::Commit(args) = verb;
    let body = operations(args.file.as_deref())?;
    let connection = args.server.connect()?;
    let committed = connection.client.commit_json(body, args.idempotency_key.as_deref()).await;
    let committed = committed.map_err(|e| connection.error(&e))?;
    if committed.duplicate {
        out.note("done before: this is the outcome of the first request with this key");
    }
    out.show(&committed, lines)?;
    Ok(0)
}

/// Reads the text of the operations.
fn operations(file: Option<&Path>) -> Result<String> {
    let (source, name): (Box<dyn Read>, String) = match file {
        Some(path) if path != Path::new("-") => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|e| CliError::unreadable(&name, &e))?;
            (Box::new(file), name)
        }
        None if std::io::stdin().is_terminal() => {
            return Err(CliError::usage("no operations given").hint("Give a JSON file, or pipe it in."));
        }
        _ => (Box::new(std::io::stdin()), "stdin".to_owned()),
    };
    let mut text = String::new();
    let read = source.take(BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|e| CliError::unreadable(&name, &e))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(CliError::usage(format!("{name} has more than {}, which is the limit", size(BYTES_MAX))));
    }
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
