//! Limits.

use http::Method;
use serde_json::json;

use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::limits::{Limit, LimitSettings};
use crate::retry::Safety;
use crate::types::parse;

impl Client {
    /// All limits of the namespace, by name.
    pub async fn limits(&self) -> Result<Vec<Limit>, ClientError> {
        self.all_of("limits", "").await
    }

    /// One limit with a page of its keys, with `waiting` only those that hold something back. `cursor` is the
    /// `next` of the page before.
    pub async fn limit(
        &self,
        limit: &str,
        waiting: bool,
        cursor: Option<&str>,
        keys: u32,
    ) -> Result<Limit, ClientError> {
        let path = format!("/limits/{}?waiting={waiting}&limit={keys}", encoded(limit));
        let cursor = cursor.map(|cursor| format!("&cursor={}", encoded(cursor))).unwrap_or_default();
        self.look(self.path(&(path + &cursor))).await
    }

    /// One limit with one of its keys, if anything is known of that.
    pub async fn limit_key(&self, limit: &str, key: &str) -> Result<Limit, ClientError> {
        self.look(self.path(&format!("/limits/{}?key={}", encoded(limit), encoded(key)))).await
    }

    /// Creates a limit, or replaces what it allows: what is `None` is not limited. Tells whether it is new.
    pub async fn limit_set(
        &self,
        limit: &str,
        settings: &LimitSettings,
    ) -> Result<(Limit, bool), ClientError> {
        let path = self.path(&format!("/limits/{}", encoded(limit)));
        let call = self.call(Method::PUT, path, json!(settings).to_string());
        let answer = self.run(call, Safety::Repeatable).await?;
        Ok((parse(&answer.body)?, answer.status == 201))
    }

    /// Deletes a limit that no queue follows.
    pub async fn limit_delete(&self, limit: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/limits/{}", encoded(limit)));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }
}
