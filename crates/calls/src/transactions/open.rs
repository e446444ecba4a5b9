//! Open transactions: operations are staged over several calls, in the memory of the node that leads, and
//! committed together by the last one. Documents are read as the transaction sees them, and its commit checks
//! that those which it has read are still as they were. Messages that it receives are acked by its commit,
//! and go back if it ends otherwise.

mod abandoned;
mod close;
mod looking;
mod receive;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::hot::receive::TRANSACTION_TTL_MS_MAX;
use crate::open_transactions::{Held, Led, Open, Staged};
use crate::permit::Permit;
use crate::value::{Nothing, Within};

pub use close::{Close, Closing, close};
pub use looking::{Break, List, Show, StagedOperation};
pub use receive::{Enlisting, Received, receive};
pub use stage::{Stage, StageResult, StageResults, StagedDocument, stage};

/// Time for which a transaction is open that says nothing, in milliseconds.
const TTL_MS: u64 = 30_000;
const ID_EXAMPLE: &str = "9f86d081884c7d659a2feaa0c55ad015";

/// A transaction to begin.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionBeginRequest", example = json!({"ttl_ms": 60_000}))]
pub struct Begin {
    /// Time for which it is open, in milliseconds (default 30,000): then it is rolled back.
    ttl_ms: Option<Within<1, TRANSACTION_TTL_MS_MAX>>,
}

/// A transaction that is open.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionBegun")]
#[schemars(example = json!({"transaction": ID_EXAMPLE, "expires_at_ms": AT_MS_EXAMPLE}))]
pub struct Begun {
    /// Its id, which is not to be shown to others: who has it can use the transaction, within their own
    /// rights.
    transaction: String,
    /// When it is rolled back unless it has ended, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
}

impl Unary for Begin {
    type Answer = Begun;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Begun>, CallError> {
        permit.allow_some_work()?;
        let ttl_ms = self.ttl_ms.map_or(TTL_MS, Within::get);
        let all = permit.calls().open_transactions();
        let ttl = Duration::from_millis(ttl_ms);
        let open = all.begin(led(permit).await?, ttl, permit.caller().name())?;
        Ok(Begun::of(&open).into())
    }
}

impl Begun {
    fn of(open: &Open) -> Begun {
        Begun { transaction: open.id.clone(), expires_at_ms: open.about.expires_at_ms }
    }

    /// The id of the transaction.
    pub fn transaction(&self) -> &str {
        &self.transaction
    }

    /// When it is rolled back unless it has ended, in milliseconds since the Unix epoch.
    pub fn expires_at_ms(&self) -> u64 {
        self.expires_at_ms
    }
}

/// A transaction to roll back.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionRollbackRequest")]
pub struct Rollback {}

impl Unary for Rollback {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.allow_some_work()?;
        // A commit that has begun is waited for.
        let (open, held) = lock_open(permit, permit.name()).await?;
        roll_back(permit, &open, &held.staged).await?;
        Ok(Nothing {}.into())
    }
}

/// Rolls a transaction back, unless its commit may take effect; returns when its messages are back.
async fn roll_back(permit: &Permit<'_>, open: &Open, staged: &Staged) -> Result<(), CallError> {
    open.expect_no_commit()?;
    let _ending = open.waits.end_for_now().await;
    permit.calls().open_transactions().end(&open.id);
    give_back(staged).await;
    Ok(())
}

/// Gives back the messages that a transaction has received.
async fn give_back(staged: &Staged) {
    let going: Vec<_> = staged.enlisted().iter().filter_map(|enlisted| enlisted.give_back()).collect();
    for back in going {
        // What cannot go back is settled already, or returns with the end of its lease.
        let _ = back.done().await;
    }
}

/// The open transaction with an id, under the leader that there is now. No other call works on it.
async fn lock_open(permit: &Permit<'_>, id: &str) -> Result<(Arc<Open>, OwnedMutexGuard<Held>), CallError> {
    let all = permit.calls().open_transactions();
    let open = all.find(permit.namespace_id()?, id)?;
    let held = open.lock(all).await?;
    open.expect_led(led(permit).await?)?;
    Ok((open, held))
}

/// The namespace of a call, under the leader that there is now.
async fn led(permit: &Permit<'_>) -> Result<Led, CallError> {
    let namespace = permit.namespace_id()?;
    Ok(Led { namespace, epoch: permit.node().epoch(namespace).await? })
}
