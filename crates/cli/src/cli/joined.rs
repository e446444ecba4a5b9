//! The open transaction that a verb belongs to: the verb stages what it would do by itself, or receives in
//! it.

use clap::Args;
use sluice_client::{StageResult, Transaction};

use super::connect::{Connection, TRANSACTION};
use super::values::not_empty;
use super::{Out, Result};

#[derive(Debug, Args)]
pub(crate) struct JoinFlag {
    /// Open transaction of `sluice txn begin`, of which this is a part: it is done when that is committed.
    #[arg(long, value_name = "ID", env = TRANSACTION, hide_env_values = true, value_parser = not_empty)]
    transaction: Option<String>,
}

impl JoinFlag {
    /// Id of the transaction, if there is one.
    pub(super) fn transaction(&self) -> Option<&str> {
        self.transaction.as_deref()
    }

    /// Stages operations in the transaction, if there is one.
    pub(super) async fn stage(
        &self,
        connection: &Connection,
        operations: impl FnOnce() -> Transaction,
    ) -> Result<Option<Vec<StageResult>>> {
        let Some(transaction) = self.transaction() else { return Ok(None) };
        let staged = connection.client.transaction_stage(transaction, &operations()).await;
        staged.map(Some).map_err(|e| connection.error(&e))
    }
}

/// Says, where a verb might be taken for a part of a transaction, that it is none.
pub(super) fn told_outside(out: Out) {
    if std::env::var_os(TRANSACTION).is_some_and(|id| !id.is_empty()) {
        out.note(&format!("{TRANSACTION} is set, and this is no part of it: it is done at once"));
    }
}

/// Tells that something is staged.
pub(super) fn told(out: Out, results: &[StageResult]) -> Result<()> {
    out.list(results, |_| "staged\n".to_owned())
}
