//! The building of indexes: documents that were written without terms get them, a few at a time.

use std::time::Duration;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::IndexFill;
use sluice_engine::documents::DocumentView;
use sluice_engine::indexes::{FilledDocument, IndexWork};
use sluice_filter::{IndexTerm, Pointer};
use sluice_node::{FoundDocument, LogLimiter, Node};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::sleep;

use super::{index_terms, json_of};

/// Pause before shards are looked at again in which nothing was to be done, or could be.
const PAUSE: Duration = Duration::from_millis(500);
/// Most bytes of contents that are read together; the first may be larger.
const BYTES_MAX: u64 = 4 << 20;

/// Builds indexes on the shards that this node leads, for ever.
pub async fn keep_indexes(node: Node) {
    let limiter = LogLimiter::new();
    loop {
        let mut has_more = false;
        for shard in 0..node.shards() {
            let done = match build_some(&node, shard, u64::MAX).await {
                Err(Error::DocumentDamaged { .. }) => build_some(&node, shard, 1).await,
                done => done,
            };
            has_more |= *done.as_ref().unwrap_or(&false);
            if let Err(error @ Error::LimitExceeded { .. }) = done
                && let Some(unsaid) = limiter.due()
            {
                tracing::warn!(shard, unsaid, %error, "cannot build an index of documents");
            }
        }
        if !has_more {
            sleep(PAUSE).await;
        }
    }
}

/// Tells the terms of some documents of a shard, `most` of them. False: there are none whose terms are not
/// known.
async fn build_some(node: &Node, shard: u32, most: u64) -> Result<bool, Error> {
    if !node.has_index_work(shard).await? {
        return Ok(false);
    }
    let Some((work, found)) = node.index_work(shard).await? else { return Ok(false) };
    let (work, found) = cut(work, found, most);
    let alone = found.first().filter(|_| most == 1).map(|one| one.view.clone());
    let documents = match FoundDocument::load_all(found).await {
        Ok(loaded) => loaded.into_iter().map(|(view, bytes)| (view, Some(bytes))).collect(),
        Err(Error::DocumentDamaged { .. }) if most == 1 => {
            alone.map(|view| (view, None)).into_iter().collect()
        }
        Err(error) => return Err(error),
    };
    let Ok(read) = read_terms(documents, &work.pointer).await else { return Ok(false) };
    let documents: Vec<FilledDocument<'_>> = read
        .iter()
        .map(|(key, revision, terms)| FilledDocument { key, revision: *revision, terms: terms.clone() })
        .collect();
    let IndexWork { namespace, index, ref until, is_last, .. } = work;
    node.index_fill(IndexFill { namespace, index, documents: &documents, until: until.as_deref(), is_last })
        .await?;
    Ok(true)
}

/// The first of the documents, as many as are read together, with the work that they are.
fn cut(mut work: IndexWork, mut found: Vec<FoundDocument>, most: u64) -> (IndexWork, Vec<FoundDocument>) {
    let (mut count, mut bytes) = (0, 0);
    let fits = |one: &&FoundDocument| {
        (count, bytes) = (count + 1, bytes + one.view.content_bytes);
        count == 1 || (count <= most && bytes <= BYTES_MAX)
    };
    let fitting = found.iter().take_while(fits).count();
    if fitting < found.len() {
        found.truncate(fitting);
        work.until = work.until.and_then(|_| found.last().map(|last| last.view.key.clone()));
        work.is_last = false;
    }
    (work, found)
}

/// A document with its revision and its terms.
type Terms = (String, u64, Vec<u128>);

/// Reads the terms of documents; one without bytes, which cannot be read, is found by every lookup.
async fn read_terms(
    documents: Vec<(DocumentView, Option<Bytes>)>,
    pointer: &str,
) -> Result<Vec<Terms>, JoinError> {
    let pointer = Pointer::parse(pointer);
    let terms_of = move |bytes: &[u8]| {
        let content = MessageBlob::parse(bytes).and_then(|blob| json_of(blob.payload));
        pointer.as_ref().map_or_else(Vec::new, |pointer| index_terms(content.as_ref(), pointer))
    };
    let each = move |(view, bytes): (DocumentView, Option<Bytes>)| {
        let terms = bytes.map_or_else(|| vec![IndexTerm::ANY.0], |bytes| terms_of(&bytes));
        (view.key, view.version.revision, terms)
    };
    spawn_blocking(move || documents.into_iter().map(each).collect()).await
}
