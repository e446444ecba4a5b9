//! `sluice txn list` and `show`: the open transactions of a namespace.

use sluice_client::{OpenTransaction, StagedOperation};

use super::connect::ServerFlags;
use super::format::{size, time};
use super::output::Table;
use super::{Out, Result};

/// Lists the open transactions of the namespace.
pub(super) async fn list(server: &ServerFlags, out: Out) -> Result<()> {
    let connection = server.connect()?;
    let open = connection.client.open_transactions().await.map_err(|e| connection.error(&e))?;
    if open.is_empty() {
        out.note(&format!("no transactions are open in namespace {}", connection.namespace));
        return Ok(());
    }
    out.list(&open, table)
}

/// Shows an open transaction.
pub(super) async fn show(name: &str, server: &ServerFlags, out: Out) -> Result<()> {
    let connection = server.connect()?;
    let open = connection.client.open_transaction(name).await.map_err(|e| connection.error(&e))?;
    out.show(&open, details)
}

fn table(open: &[OpenTransaction]) -> String {
    let mut table = Table::new(&["NAME", "CALLER", "BEGUN", "UNTIL", ">OPERATIONS", ">SIZE"]);
    for one in open {
        table.row([
            one.name.clone(),
            one.caller.clone(),
            time(one.begun_at_ms),
            time(one.expires_at_ms),
            one.operation_count.to_string(),
            size(one.bytes),
        ]);
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
    if open.operations.is_empty() {
        return about.render();
    }
    let mut operations = Table::new(&["OPERATION", "ABOUT", ">CONTENT"]);
    for StagedOperation { operation, about, content_bytes } in &open.operations {
        let content = content_bytes.map_or_else(String::new, size);
        operations.row([operation.clone(), about.join(" "), content]);
    }
    format!("{}\n{}", about.render(), operations.render())
}
