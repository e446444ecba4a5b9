//! Consumers.

use http::Method;
use serde::Deserialize;

use crate::client::{Client, encoded};
use crate::consumers::Consumer;
use crate::error::ClientError;
use crate::retry::Safety;

/// Consumers per page of a listing.
const PAGE: u32 = 500;

impl Client {
    /// All consumers of the namespace, in the order in which they came.
    pub async fn consumers(&self) -> Result<Vec<Consumer>, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            consumers: Vec<Consumer>,
            next: Option<String>,
        }
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let mut path = self.path(&format!("/consumers?limit={PAGE}"));
            if !after.is_empty() {
                path.push_str(&format!("&after={}", encoded(&after)));
            }
            let page: Page = self.look(path).await?;
            let came_on = !page.consumers.is_empty();
            all.extend(page.consumers);
            match page.next {
                Some(next) if came_on => after = next,
                _ => return Ok(all),
            }
        }
    }

    /// One consumer with what it has held for longest, at most `most` messages (1 to 1,000).
    pub async fn consumer(&self, consumer: &str, most: u32) -> Result<Consumer, ClientError> {
        self.look(self.path(&format!("/consumers/{}?limit={most}", encoded(consumer)))).await
    }

    /// Detaches a consumer: it gets nothing more. What it holds goes back after `grace_ms` (`None`: 30 s),
    /// and the attempt does not count.
    pub async fn consumer_detach(&self, consumer: &str, grace_ms: Option<u64>) -> Result<(), ClientError> {
        let grace = grace_ms.map(|grace_ms| format!("?grace_ms={grace_ms}")).unwrap_or_default();
        let path = self.path(&format!("/consumers/{}{grace}", encoded(consumer)));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }
}
