//! Transactions over several namespaces that are in doubt.

use http::Method;
use serde_json::json;

use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::transactions::{InDoubtTransaction, Resolved};
use crate::types::parse;

impl Client {
    /// All transactions over several namespaces that are in doubt in the namespace, by id.
    pub async fn in_doubt_transactions(&self) -> Result<Vec<InDoubtTransaction>, ClientError> {
        self.all_of("in-doubt-transactions", "").await
    }

    /// A transaction that is in doubt, with the operations that are prepared.
    ///
    /// # Errors
    /// `transaction_not_found`: it is not in doubt in the namespace.
    pub async fn in_doubt_transaction(&self, transaction: &str) -> Result<InDoubtTransaction, ClientError> {
        self.look(self.path(&format!("/in-doubt-transactions/{}", encoded(transaction)))).await
    }

    /// Finishes a transaction that is in doubt, as its coordinator has decided. `force`: `commit` or `abort`
    /// finishes the prepared part of the namespace in this way where the shard that decides does not answer;
    /// its other parts may be finished otherwise.
    ///
    /// # Errors
    /// `transaction_not_found`: it is not in doubt in the namespace. `wrong_state`: it was decided otherwise,
    /// may still be decided, or a shard that it takes for that does not answer.
    pub async fn in_doubt_resolve(
        &self,
        transaction: &str,
        force: Option<&str>,
    ) -> Result<Resolved, ClientError> {
        let path = self.path(&format!("/in-doubt-transactions/{}/resolve", encoded(transaction)));
        let body = force.map_or_else(|| json!({}), |force| json!({ "force": force })).to_string();
        parse(&self.run(self.call(Method::POST, path, body), Safety::Once).await?.body)
    }
}
