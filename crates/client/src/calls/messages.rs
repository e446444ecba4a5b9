//! Calls that send, receive and read messages.

use std::time::Duration;

use http::Method;

use crate::answers::{Delivered, ReceivedBody, SentBody};
use crate::client::{Client, encoded, put_key};
use crate::encode;
use crate::error::ClientError;
use crate::message::{Message, Receive};
use crate::receiving::{self, Enlisting};
use crate::retry::Safety;
use crate::stored::{MessageSearch, MessagesFound, Stored, StoredPage};
use crate::transport::Answer;
use crate::types::parse;

impl Client {
    /// Sends messages, all or nothing, under a fresh idempotency key, so that a retry never sends twice.
    /// The answer is not decoded until asked.
    pub async fn send(&self, queue: &str, messages: &[Message<'_>]) -> Result<SentBody, ClientError> {
        self.send_with_key(queue, messages, &self.idempotency_key()).await
    }

    /// Sends messages under a key of the caller's: a repeat within the server's window gets the first
    /// outcome.
    pub async fn send_with_key(
        &self,
        queue: &str,
        messages: &[Message<'_>],
        key: &str,
    ) -> Result<SentBody, ClientError> {
        let path = self.path(&format!("/queues/{}/messages", encoded(queue)));
        let mut call = self.call(Method::POST, path, encode::send(messages));
        put_key(&mut call, key)?;
        Ok(SentBody(self.run(call, Safety::Repeatable).await?.body))
    }

    /// Receives messages under a lease. An empty list: there was nothing within the waiting time.
    pub async fn receive(&self, receive: &Receive) -> Result<Vec<Delivered>, ClientError> {
        Ok(self.receive_anew(receive).await?.0)
    }

    /// The same, decoded when asked and borrowed from the answer.
    ///
    /// A receive whose answer was lost is tried again: what the lost answer held comes back when its lease
    /// ends.
    pub async fn receive_body(&self, receive: &Receive) -> Result<ReceivedBody, ClientError> {
        Ok(ReceivedBody(self.receive_answer(receive, Enlisting::Apart).await?.body))
    }

    /// Receives in an open transaction: its commit acks the messages that no staged operation settles, and
    /// they go back if it ends otherwise. Their leases last as long as it is open, so `receive` names none.
    ///
    /// After an error the transaction may have received messages whose answer was lost: roll it back, since
    /// its commit would ack them.
    ///
    /// # Errors
    /// `transaction_lost`: it is not open any more. `batch_too_large`: it has 1,000 operations, of which each
    /// message is one.
    pub async fn transaction_receive(
        &self,
        transaction: &str,
        receive: &Receive,
    ) -> Result<Vec<Delivered>, ClientError> {
        ReceivedBody(self.receive_answer(receive, Enlisting::In(transaction)).await?.body).detach()
    }

    /// Receives, and begins a transaction for the messages, if there are any, which is rolled back after
    /// `ttl`:
    /// [`ReceivedBody::decode_enlisted`] tells both. Such a receive, and the commit, are as many calls as a
    /// receive and its acks.
    ///
    /// # Errors
    /// Those of [`Client::transaction_begin`].
    pub async fn receive_and_begin(
        &self,
        ttl: Duration,
        receive: &Receive,
    ) -> Result<ReceivedBody, ClientError> {
        Ok(ReceivedBody(self.receive_answer(receive, Enlisting::Begin(ttl)).await?.body))
    }

    /// Receives, and tells whether the answer of an earlier try was lost with what it may have held.
    pub(crate) async fn receive_anew(
        &self,
        receive: &Receive,
    ) -> Result<(Vec<Delivered>, bool), ClientError> {
        let answer = self.receive_answer(receive, Enlisting::Apart).await?;
        Ok((ReceivedBody(answer.body).detach()?, answer.repeated))
    }

    async fn receive_answer(
        &self,
        receive: &Receive,
        enlisting: Enlisting<'_>,
    ) -> Result<Answer, ClientError> {
        let (path, with_queues) = match receive.queues.as_slice() {
            [(queue, _)] => (format!("/queues/{}/receive", encoded(queue)), false),
            _ => ("/receive".to_owned(), true),
        };
        let body = receiving::body(receive, with_queues, enlisting);
        let mut call = self.call(Method::POST, self.path(&path), body);
        call.timeout = call.timeout.saturating_add(receive.wait.min(Duration::from_secs(3600)));
        let safety = match enlisting {
            // The commit would ack messages that nobody has seen.
            Enlisting::In(_) => Safety::Once,
            Enlisting::Apart | Enlisting::Begin(_) => Safety::Repeatable,
        };
        self.run(call, safety).await
    }

    /// One message with its history, and with `payload` its payload.
    pub async fn message(&self, id: &str, payload: bool) -> Result<Stored, ClientError> {
        let path = self.path(&format!("/messages/{}?payload={payload}", encoded(id)));
        self.look(path).await
    }

    /// A page of a queue's messages by id, in one state or in all.
    pub async fn messages(
        &self,
        queue: &str,
        state: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
        payload: bool,
    ) -> Result<StoredPage, ClientError> {
        let mut path =
            self.path(&format!("/queues/{}/messages?limit={limit}&payload={payload}", encoded(queue)));
        for (key, value) in [("state", state), ("cursor", cursor)] {
            if let Some(value) = value {
                path.push_str(&format!("&{key}={}", encoded(value)));
            }
        }
        self.look(path).await
    }

    /// A page of the messages of a queue that match a filter. It may be short, even empty, and have a next
    /// one.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// use serde_json::json;
    /// use sluice_client::MessageSearch;
    ///
    /// let filter = json!({"/state": "dead", "/payload/customer": 4711});
    /// let mut next: Option<String> = None;
    /// loop {
    ///     let (filter, cursor) = (Some(filter.clone()), next.as_deref());
    ///     let search = MessageSearch { filter, cursor, ..MessageSearch::default() };
    ///     let page = client.message_search("orders", &search).await?;
    ///     for message in page.messages {
    ///         println!("{} {}", message.id, message.attempts);
    ///     }
    ///     next = page.next;
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn message_search(
        &self,
        queue: &str,
        search: &MessageSearch<'_>,
    ) -> Result<MessagesFound, ClientError> {
        let path = self.path(&format!("/queues/{}/search", encoded(queue)));
        parse(&self.run(self.call(Method::POST, path, search.body()), Safety::Repeatable).await?.body)
    }

    /// The first messages in the order of delivery, with payloads, without delivering them.
    pub async fn peek(&self, queue: &str, limit: u32) -> Result<Vec<Stored>, ClientError> {
        let page: StoredPage =
            self.look(self.path(&format!("/queues/{}/peek?limit={limit}", encoded(queue)))).await?;
        Ok(page.messages)
    }

    /// Gets what shows state, as it is by now or as the client allows.
    pub(crate) async fn look<T: serde::de::DeserializeOwned>(
        &self,
        mut path: String,
    ) -> Result<T, ClientError> {
        if self.is_stale() {
            path.push_str(if path.contains('?') { "&stale=true" } else { "?stale=true" });
        }
        self.get(path).await
    }

    pub(crate) async fn get<T: serde::de::DeserializeOwned>(&self, path: String) -> Result<T, ClientError> {
        let answer = self.run(self.call(Method::GET, path, ""), Safety::Repeatable).await?;
        parse(&answer.body)
    }
}
