//! `sluice txn list` and `show`: the transactions of a namespace that are open, and those that are in doubt.

use serde::Serialize;
use sluice_client::{InDoubtTransaction, OpenTransaction, StagedOperation};

use super::connect::ServerFlags;
use super::format::{size, time};
use super::output::Table;
use super::{Out, Result};

/// A transaction of a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed {
    Open {
        state: &'static str,
        #[serde(flatten)]
        open: OpenTransaction,
    },
    InDoubt(InDoubtTransaction),
}

impl Listed {
    fn open(open: OpenTransaction) -> Listed {
        let state = if open.committing { "committing" } else { "open" };
        Listed::Open { state, open }
    }
}

/// Lists the transactions of the namespace: first those that are open, the oldest first.
pub(super) async fn list(server: &ServerFlags, out: Out) -> Result<()> {
    let connection = server.connect()?;
    let open = connection.client.open_transactions().await.map_err(|e| connection.error(&e))?;
    let in_doubt = connection.client.in_doubt_transactions().await.map_err(|e| connection.error(&e))?;
    let all: Vec<Listed> =
        open.into_iter().map(Listed::open).chain(in_doubt.into_iter().map(Listed::InDoubt)).collect();
    if all.is_empty() {
        out.note(&format!("no transactions are open or in doubt in namespace {}", connection.namespace));
        return Ok(());
    }
    out.list(&all, table)
}

/// Shows a transaction that is open or in doubt.
pub(super) async fn show(name: &str, server: &ServerFlags, out: Out) -> Result<()> {
    let connection = server.connect()?;
    // Names of open ones begin with a time and a hyphen; ids have none.
    if name.contains('-') {
        let open = connection.client.open_transaction(name).await.map_err(|e| connection.error(&e))?;
        return out.show(&open, details);
    }
    let found = connection.client.in_doubt_transaction(name).await.map_err(|e| connection.error(&e))?;
    out.show(&found, in_doubt_details)
}

fn table(all: &[Listed]) -> String {
    let mut table = Table::new(&["NAME", "STATE", "CALLER", "SINCE", "UNTIL", ">OPERATIONS", ">SIZE"]);
    for one in all {
        table.row(match one {
            Listed::Open { state, open } => [
                open.name.clone(),
                (*state).to_owned(),
                open.caller.clone(),
                time(open.begun_at_ms),
                time(open.expires_at_ms),
                open.operation_count.to_string(),
                size(open.bytes),
            ],
            Listed::InDoubt(one) => [
                one.transaction.clone(),
                one.state.clone(),
                "-".to_owned(),
                time(one.since_at_ms),
                one.undecided_until_ms.map_or_else(|| "-".to_owned(), time),
                one.undecided_until_ms.map_or_else(|| "-".to_owned(), |_| one.operation_count.to_string()),
                "-".to_owned(),
            ],
        });
    }
    table.render()
}

fn details(open: &OpenTransaction) -> String {
    let mut about = Table::fields();
    about.field("name", open.name.clone());
    about.field("caller", open.caller.clone());
    about.field("begun", time(open.begun_at_ms));
    about.field("until", time(open.expires_at_ms));
    about.field("size", size(open.bytes));
    if open.committing {
        about.field("state", "its commit may take effect".to_owned());
    }
    with_operations(about, &open.operations)
}

/// A transaction that is in doubt, as text.
fn in_doubt_details(one: &InDoubtTransaction) -> String {
    let mut about = Table::fields();
    about.field("id", one.transaction.clone());
    about.field("state", one.state.clone());
    about.field("decided by", one.coordinator.clone());
    if !one.parts.is_empty() {
        about.field("other parts", one.parts.join(" "));
    }
    about.field("since", time(one.since_at_ms));
    if let Some(until) = one.undecided_until_ms {
        about.field("until", time(until));
    }
    with_operations(about, &one.operations)
}

/// The fields of a transaction, and behind them its operations, if there are any.
fn with_operations(about: Table, operations: &[StagedOperation]) -> String {
    if operations.is_empty() {
        return about.render();
    }
    let mut table = Table::new(&["OPERATION", "ABOUT", ">CONTENT"]);
    for StagedOperation { operation, about, content_bytes } in operations {
        let content = content_bytes.map_or_else(String::new, size);
        table.row([operation.clone(), about.join(" "), content]);
    }
    format!("{}\n{}", about.render(), table.render())
}
