//! Documents that are found by an index: their making, and the queries.

use std::time::Duration;

use bytes::Bytes;
use sluice_client::Client;
use sluice_client::v1::QueryDocumentsResponse;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::calls::Calls;

/// Documents with the same value: a query finds so many.
const ALIKE: u32 = 10;
/// Writes that wait for their answers at a time.
const WRITERS: u32 = 64;
/// Longest time until the index knows all documents.
const BUILT_WITHIN: Duration = Duration::from_secs(60);
/// Time after which calls have come to know an index.
const KNOWN_AFTER: Duration = Duration::from_secs(1);

/// The documents, as a query finds them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queried {
    /// Number of documents, a multiple of [`ALIKE`].
    documents: u32,
}

impl Queried {
    /// So many documents, or a few less, so that each query finds as many.
    pub(super) fn of(documents: u32) -> Queried {
        Queried { documents: documents / ALIKE * ALIKE }
    }

    /// Writes the documents, declares the index, and waits until it is used.
    pub(super) async fn make(self, links: &[Calls], admin: &Client) -> Result<(), String> {
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let calls = links[writer as usize % links.len()].clone();
            tasks.spawn(async move {
                for number in (writer..self.documents).step_by(WRITERS as usize) {
                    let content = self.content(number);
                    calls.put(&format!("queried/{number}").into(), content, None).await?;
                }
                Ok::<(), String>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| format!("a writer failed: {error}"))??;
        }
        let told = |error| format!("cannot declare the index: {error}");
        admin.document_index_put("group", "/group").await.map_err(told)?;
        let until = Instant::now() + BUILT_WITHIN;
        while admin.document_indexes().await.map_err(told)?.iter().any(|index| index.state != "ready") {
            if Instant::now() > until {
                return Err("the index does not become ready".to_owned());
            }
            sleep(Duration::from_millis(20)).await;
        }
        sleep(KNOWN_AFTER).await;
        Ok(())
    }

    fn groups(self) -> u32 {
        self.documents / ALIKE
    }

    fn content(self, number: u32) -> Bytes {
        let group = number % self.groups();
        format!(r#"{{"group":"group {group}","number":{number},"state":"paid","total":120.5}}"#).into()
    }

    /// Finds the documents of the group that comes after others by `count`.
    pub(super) async fn query(self, calls: &Calls, count: u64) -> Result<(), String> {
        let group = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) % u64::from(self.groups());
        let found = calls.query(format!(r#"{{"/group":"group {group}"}}"#)).await?;
        self.expect(group as u32, &found)
    }

    fn expect(self, group: u32, found: &QueryDocumentsResponse) -> Result<(), String> {
        let numbers = (group..self.documents).step_by(self.groups() as usize);
        let mut expected: Vec<Bytes> = numbers.map(|number| self.content(number)).collect();
        let mut contents: Vec<Bytes> = found.documents.iter().filter_map(|it| it.content.clone()).collect();
        expected.sort_unstable();
        contents.sort_unstable();
        if contents == expected && found.index == "group" && found.scanned == u64::from(ALIKE) {
            return Ok(());
        }
        let (count, scanned, index) = (contents.len(), found.scanned, &found.index);
        Err(format!("group {group}: {count} documents of {scanned} by index {index:?}"))
    }
}
