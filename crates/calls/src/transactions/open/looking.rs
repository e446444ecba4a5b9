//! Open transactions as operators see them: list, show, and end by force.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::transactions::OperationView;

use super::{led, roll_back};
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::open_transactions::{About, Open};
use crate::permit::Permit;
use crate::value::{Nothing, PageSize, Shown, Whole, cut_page, given, page_size};

/// A transaction that is open.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenTransaction", example = example())]
pub struct Transaction {
    /// Its name for operators; not the id, by which its caller uses it.
    name: String,
    /// Name of who has begun it.
    caller: String,
    /// When it was begun, in milliseconds since the Unix epoch.
    begun_at_ms: u64,
    /// When it is rolled back unless it has ended, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
    /// Number of operations that are staged.
    operation_count: u64,
    /// Memory that it takes, in bytes.
    bytes: u64,
    /// True while its commit may take effect: then it cannot be rolled back.
    committing: bool,
    /// The operations in their order, without contents, when one transaction is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    operations: Option<Vec<StagedOperation>>,
}

fn example() -> Value {
    json!({
        "name": "01ba4f2c3d8-5a0c41e7", "caller": "shop", "begun_at_ms": AT_MS_EXAMPLE,
        "expires_at_ms": AT_MS_EXAMPLE + 30_000, "operation_count": 1, "bytes": 402, "committing": false,
    })
}

impl Whole for Transaction {
    const NAME: &'static str = "OpenTransactionShown";
    const FIELD: &'static str = "operations";

    fn example() -> Value {
        json!([{"operation": "put", "about": ["orders/17"], "content_bytes": 16}])
    }
}

/// An operation that is staged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StagedOperation")]
pub struct StagedOperation {
    /// `send`, `settle`, `put`, `delete`, `check`, `attach`, `delete_attachment`, `acquire` or `release`; a
    /// patch is a put by then. `receive`: a message that was received, which the commit acks.
    operation: String,
    /// The queue of a send, the id of the message that is settled or was received, or keys; empty of a
    /// release.
    about: Vec<String>,
    /// Length of the content that a put writes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_bytes: Option<u64>,
}

impl From<&Arc<Open>> for Transaction {
    fn from(open: &Arc<Open>) -> Transaction {
        let About { name, caller, begun_at_ms, expires_at_ms } = open.about.clone();
        let (operations, bytes) = open.figures();
        Transaction {
            name,
            caller: caller.to_string(),
            begun_at_ms,
            expires_at_ms,
            operation_count: operations as u64,
            bytes: bytes as u64,
            committing: open.is_closing(),
            operations: None,
        }
    }
}

impl From<OperationView> for StagedOperation {
    fn from(view: OperationView) -> StagedOperation {
        StagedOperation {
            operation: view.kind.to_owned(),
            about: view.about,
            content_bytes: view.content_bytes,
        }
    }
}

/// The open transactions of a namespace, the oldest first.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "OpenTransactionListRequest")]
pub struct List {
    /// `next` of the page before.
    after: Option<String>,
    /// Most transactions of the page.
    limit: Option<PageSize>,
}

/// A page of open transactions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenTransactionList", example = json!({"transactions": [example()]}))]
pub struct Transactions {
    /// The oldest first.
    transactions: Vec<Transaction>,
    /// Name after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Transactions;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Transactions>, CallError> {
        let (size, all) = (page_size(self.limit), permit.calls().open_transactions());
        let mut found = all.list(led(permit).await?, given(self.after.as_deref()), size + 1);
        let next = cut_page(&mut found, size, |open| &open.about.name);
        Ok(Transactions { transactions: found.iter().map(Transaction::from).collect(), next }.into())
    }
}

/// An open transaction to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "OpenTransactionShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Shown<Transaction>;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Transaction>>, CallError> {
        let all = permit.calls().open_transactions();
        let open = all.named(led(permit).await?, permit.name())?;
        // A call that works on it is waited for.
        let held = open.lock(all).await?;
        let shown = held.staged.shown().map(|(shown, bytes)| StagedOperation {
            operation: shown.name.to_owned(),
            about: shown.about,
            content_bytes: bytes.map(|bytes| bytes as u64),
        });
        let operations = Some(shown.collect());
        Ok(Shown(Transaction { operations, ..Transaction::from(&open) }).into())
    }
}

/// An open transaction to roll back, whoever has begun it.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "OpenTransactionBreakRequest")]
pub struct Break {}

impl Unary for Break {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        let all = permit.calls().open_transactions();
        let open = all.named(led(permit).await?, permit.name())?;
        // A commit that has begun is waited for.
        let held = open.lock(all).await?;
        roll_back(permit, &open, &held.staged).await?;
        Ok(Nothing {}.into())
    }
}
