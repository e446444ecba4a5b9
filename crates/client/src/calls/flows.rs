//! Calls about groups and flows of messages.

use http::Method;

use crate::client::{Client, encoded, put_key};
use crate::encode;
use crate::error::ClientError;
use crate::flows::{Flow, Group, GroupSent, QueueMessage};
use crate::retry::Safety;
use crate::types::parse;

impl Client {
    /// Sends messages and a callback that follows when all of them have ended; all or none. `key`: a repeat
    /// with the same one within the server's window gets the first outcome; `None`: a fresh one, so that a
    /// retry never sends twice.
    pub async fn group_send(
        &self,
        messages: &[QueueMessage<'_>],
        callback: &QueueMessage<'_>,
        key: Option<&str>,
    ) -> Result<GroupSent, ClientError> {
        let mut call = self.call(Method::POST, self.path("/groups"), encode::group(messages, callback));
        let fresh = key.is_none().then(|| self.idempotency_key());
        put_key(&mut call, key.or(fresh.as_deref()).unwrap_or_default())?;
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// State of a group, by the id of its callback.
    pub async fn group(&self, group: &str) -> Result<Group, ClientError> {
        self.look(self.path(&format!("/groups/{}", encoded(group)))).await
    }

    /// A message with the messages that it waits for and those that follow it.
    pub async fn flow(&self, id: &str) -> Result<Flow, ClientError> {
        self.look(self.path(&format!("/flows/{}", encoded(id)))).await
    }
}
