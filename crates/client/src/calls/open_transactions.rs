//! Open transactions: operations are staged over several calls.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Client, encoded};
use crate::encode::millis;
use crate::error::ClientError;
use crate::retry::Safety;
use crate::transactions::{Begun, Committed, OpenTransaction, StageResult, Transaction};
use crate::types::parse;

impl Client {
    /// Begins a transaction whose operations are staged over several calls. It is rolled back after `ttl`, at
    /// most 30 minutes.
    ///
    /// # Errors
    /// `overloaded`: too many are open.
    pub async fn transaction_begin(&self, ttl: Duration) -> Result<Begun, ClientError> {
        let body = json!({ "ttl_ms": millis(ttl) }).to_string();
        // One that nobody knows of ends with its time.
        let call = self.call(Method::POST, self.path("/transactions/begin"), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Stages operations of an open transaction, all or none, and reads documents as it sees them. After a
    /// lost answer they may be staged: roll back then.
    ///
    /// # Errors
    /// `transaction_lost`: it is not open any more. What can be said of an operation before the commit.
    pub async fn transaction_stage(
        &self,
        transaction: &str,
        operations: &Transaction,
    ) -> Result<Vec<StageResult>, ClientError> {
        self.transaction_stage_json(transaction, operations.body()).await
    }

    /// Stages operations that are given as JSON, the body of the HTTP API.
    ///
    /// # Errors
    /// Those of [`Client::transaction_stage`]; also those of text that is no such body.
    pub async fn transaction_stage_json(
        &self,
        transaction: &str,
        body: String,
    ) -> Result<Vec<StageResult>, ClientError> {
        #[derive(Deserialize)]
        struct Staged {
            results: Vec<StageResult>,
        }
        let call = self.call(Method::POST, self.open_path(transaction, "operations"), body);
        Ok(parse::<Staged>(&self.run(call, Safety::Once).await?.body)?.results)
    }

    /// Does all that is staged in an open transaction, or nothing. A repeat gets the first outcome.
    ///
    /// # Errors
    /// `version_mismatch`: a document that it has read has changed. `transaction_lost`: it is not open any
    /// more, and was not committed. What one of the operations would be refused with alone.
    pub async fn transaction_commit(&self, transaction: &str) -> Result<Committed, ClientError> {
        let call = self.call(Method::POST, self.open_path(transaction, "commit"), "");
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Rolls an open transaction back: nothing of it is done.
    ///
    /// # Errors
    /// `transaction_lost`: it is not open any more.
    pub async fn transaction_rollback(&self, transaction: &str) -> Result<(), ClientError> {
        let call = self.call(Method::POST, self.open_path(transaction, "rollback"), "");
        self.run(call, Safety::Once).await.map(|_| ())
    }

    /// All open transactions of the namespace, the oldest first.
    pub async fn open_transactions(&self) -> Result<Vec<OpenTransaction>, ClientError> {
        self.all_of("open-transactions", "").await
    }

    /// An open transaction of this name, with its operations.
    ///
    /// # Errors
    /// `transaction_lost`: there is none.
    pub async fn open_transaction(&self, name: &str) -> Result<OpenTransaction, ClientError> {
        self.look(self.path(&format!("/open-transactions/{}", encoded(name)))).await
    }

    /// Rolls an open transaction of this name back, whoever has begun it.
    ///
    /// # Errors
    /// `transaction_lost`: there is none. `wrong_state`: its commit may take effect.
    pub async fn open_transaction_break(&self, name: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/open-transactions/{}", encoded(name)));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    fn open_path(&self, transaction: &str, rest: &str) -> String {
        self.path(&format!("/transactions/{}/{rest}", encoded(transaction)))
    }
}
