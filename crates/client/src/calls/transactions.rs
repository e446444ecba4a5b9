//! Transactions.

use std::future::Future;
use std::time::Duration;

use http::Method;

use crate::client::{Client, put_key};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::transactions::{Committed, Transaction};
use crate::types::parse;
use crate::work::{self, Terms, Work, WorkError};

impl Client {
    /// Does all operations of a transaction, or none. `key`: a repeat with the same one within the server's
    /// window gets the first outcome; `None`: a fresh one, so that a retry never does anything twice.
    ///
    /// # Errors
    /// What one of the operations would be refused with alone: its place stands in the details under
    /// `operation`.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// use sluice_client::{DocumentPut, LockRequest, Message, Receive, Transaction};
    ///
    /// let batch = client.receive(&Receive::from_queue("orders")).await?;
    /// for order in &batch {
    ///     let grant = client.lock_acquire(&LockRequest::waiting("orders/17")).await?;
    ///     let paid = DocumentPut { token: Some(&grant.token), ..DocumentPut::new(b"paid") };
    ///     let done = Transaction::new()
    ///         .put("orders/17", paid)
    ///         .ack(&order.receipt)
    ///         .send("mail", Message::new(b"thank you"))
    ///         .release(&grant.token);
    ///     client.commit(&done, None).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn commit(
        &self,
        transaction: &Transaction,
        key: Option<&str>,
    ) -> Result<Committed, ClientError> {
        self.commit_json(transaction.body(), key).await
    }

    /// Commits a transaction that is given as JSON, the body of the HTTP API, such as
    /// `{"operations":[{"release":{"token":"..."}}]}`. `key`: as in [`Client::commit`].
    ///
    /// # Errors
    /// Those of [`Client::commit`]; also those of text that is no such body, such as `invalid_json`.
    pub async fn commit_json(&self, body: String, key: Option<&str>) -> Result<Committed, ClientError> {
        let mut call = self.call(Method::POST, self.path("/transactions"), body);
        let fresh = key.is_none().then(|| self.idempotency_key());
        put_key(&mut call, key.or(fresh.as_deref()).unwrap_or_default())?;
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Does a unit of work, and commits what it has staged as one transaction; again on fresh reads after a
    /// conflict (`version_mismatch`, `lock_held`, of the commit or in an error of the work), up to 20 times
    /// within some seconds. The outcome of the work, and the results of the operations: those of sends,
    /// settlements and locks in the order in which they were staged, then those of documents by key.
    ///
    /// A unit that only reads is committed too: what it has read was there together.
    ///
    /// # Errors
    /// The error of the work, or a [`ClientError`] of the commit. If no answer came in time, the unit may be
    /// committed. `idempotency_mismatch`: a former try was committed after all, whose answer was lost.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::WorkError> {
    /// use sluice_client::Work;
    ///
    /// // Moves what is on one account to another.
    /// let (moved, _) = client
    ///     .transact(|work: Work| async move {
    ///         let from = String::from_utf8(work.get("accounts/a").await?.ok_or("no account")?)?;
    ///         let to = String::from_utf8(work.get("accounts/b").await?.ok_or("no account")?)?;
    ///         let amount: u64 = from.parse()?;
    ///         work.put("accounts/a", "0")?;
    ///         work.put("accounts/b", (to.parse::<u64>()? + amount).to_string())?;
    ///         Ok(amount)
    ///     })
    ///     .await?;
    /// println!("{moved}");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn transact<T, Fut>(&self, work: impl FnMut(Work) -> Fut) -> Result<(T, Committed), WorkError>
    where
        Fut: Future<Output = Result<T, WorkError>>,
    {
        let terms = Terms { receipt: None, patience: Duration::ZERO };
        let finished = work::run(self, terms, work, || true).await?;
        Ok((finished.value, finished.committed.unwrap_or_default()))
    }
}
