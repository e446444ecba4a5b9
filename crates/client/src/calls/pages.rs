//! Lists that come a page at a time.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, encoded};
use crate::error::ClientError;

/// Entries per page.
const PAGE: u32 = 500;

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    #[serde(
        alias = "attachments",
        alias = "consumers",
        alias = "documents",
        alias = "limits",
        alias = "locks",
        alias = "queues",
        alias = "schedules",
        alias = "transactions"
    )]
    entries: Vec<T>,
    next: Option<String>,
}

impl Client {
    /// All entries of a list of the namespace, in its order; of those with names the ones that begin with
    /// `prefix`.
    pub(crate) async fn all_of<T: DeserializeOwned>(
        &self,
        list: &str,
        prefix: &str,
    ) -> Result<Vec<T>, ClientError> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let mut path = self.path(&format!("/{list}?limit={PAGE}"));
            for (key, value) in [("prefix", prefix), ("after", after.as_str())] {
                if !value.is_empty() {
                    path.push_str(&format!("&{key}={}", encoded(value)));
                }
            }
            let page: Page<T> = self.look(path).await?;
            all.extend(page.entries);
            match page.next {
                // A page may be empty, for a caller who may not see its entries, and not be the last.
                Some(next) if next != after => after = next,
                _ => return Ok(all),
            }
        }
    }
}
