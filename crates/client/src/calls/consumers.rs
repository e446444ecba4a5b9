//! Consumers.

use std::time::Duration;

use http::Method;

use crate::client::{Client, encoded};
use crate::consumers::Consumer;
use crate::encode::millis;
use crate::error::ClientError;
use crate::retry::Safety;

impl Client {
    /// All consumers of the namespace, in the order in which they came.
    pub async fn consumers(&self) -> Result<Vec<Consumer>, ClientError> {
        self.all_of("consumers", "").await
    }

    /// One consumer with what it has held for longest, at most `most` messages (1 to 1,000).
    pub async fn consumer(&self, consumer: &str, most: u32) -> Result<Consumer, ClientError> {
        self.look(self.path(&format!("/consumers/{}?limit={most}", encoded(consumer)))).await
    }

    /// Detaches a consumer: it gets nothing more. What it holds goes back after `grace` (`None`: 30 s), and
    /// the attempt does not count.
    pub async fn consumer_detach(&self, consumer: &str, grace: Option<Duration>) -> Result<(), ClientError> {
        let grace = grace.map(|grace| format!("?grace_ms={}", millis(grace))).unwrap_or_default();
        let path = self.path(&format!("/consumers/{}{grace}", encoded(consumer)));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }
}
