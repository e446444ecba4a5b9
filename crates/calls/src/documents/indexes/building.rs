//! The building of indexes: documents that were written without terms get them, a few at a time.

use std::mem::take;
use std::time::Duration;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::IndexFill;
use sluice_engine::documents::DocumentView;
use sluice_engine::indexes::{FilledDocument, IndexWork};
use sluice_engine::limits::{DOCUMENT_TERMS_MAX, FILLED_TERMS_MAX};
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
    let mut builders: Vec<Builder> = (0..node.shards()).map(|shard| Builder::new(&node, shard)).collect();
    loop {
        let mut has_more = false;
        for builder in &mut builders {
            let done = builder.build().await;
            has_more |= *done.as_ref().unwrap_or(&false);
            if let Err(error @ Error::LimitExceeded { .. }) = done
                && let Some(unsaid) = limiter.due()
            {
                tracing::warn!(shard = builder.shard, unsaid, %error, "cannot build an index of documents");
            }
        }
        if !has_more {
            sleep(PAUSE).await;
        }
    }
}

/// The building of the indexes of a shard, which take turns.
struct Builder {
    node: Node,
    shard: u32,
    /// Number of the index whose turn was last.
    behind: u64,
}

impl Builder {
    fn new(node: &Node, shard: u32) -> Builder {
        Builder { node: node.clone(), shard, behind: 0 }
    }

    /// Tells the terms of some documents; of one, where that is all that can be done. False: there are none
    /// whose terms are not known.
    async fn build(&mut self) -> Result<bool, Error> {
        let behind = self.behind;
        match self.build_some(u64::MAX).await {
            Err(Error::DocumentDamaged { .. } | Error::LimitExceeded { .. }) => {
                self.behind = behind;
                self.build_some(1).await
            }
            done => done,
        }
    }

    async fn build_some(&mut self, most: u64) -> Result<bool, Error> {
        let node = &self.node;
        if !node.has_index_work(self.shard).await? {
            return Ok(false);
        }
        let Some((work, found)) = node.index_work(self.shard, self.behind).await? else { return Ok(false) };
        self.behind = work.index;
        let (mut work, found) = cut(work, found, most);
        let alone = found.first().filter(|_| most == 1).map(|one| one.view.clone());
        let documents = match FoundDocument::load_all(found).await {
            Ok(loaded) => loaded.into_iter().map(|(view, bytes)| (view, Some(bytes))).collect(),
            Err(Error::DocumentDamaged { .. }) if most == 1 => {
                alone.map(|view| (view, None)).into_iter().collect()
            }
            Err(error) => return Err(error),
        };
        let indexes = node.document_indexes(work.namespace).await?.len();
        let Ok(mut read) = read_terms(documents, &work.pointer, indexes).await else { return Ok(false) };
        cut_terms(&mut work, &mut read);
        let documents: Vec<FilledDocument<'_>> = read
            .iter_mut()
            .map(|(key, revision, terms)| FilledDocument { key, revision: *revision, terms: take(terms) })
            .collect();
        let IndexWork { namespace, index, ref until, is_last, .. } = work;
        let until = until.as_deref();
        node.index_fill(IndexFill { namespace, index, documents: &documents, until, is_last }).await?;
        Ok(true)
    }
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
        end_with(&mut work, found.last().map(|last| last.view.key.clone()));
    }
    (work, found)
}

/// Keeps the first of the documents, as many as are told together, and the work that they are.
fn cut_terms(work: &mut IndexWork, read: &mut Vec<Terms>) {
    let mut count = 0;
    let fits = |(_, _, terms): &&Terms| {
        count += terms.len();
        count <= FILLED_TERMS_MAX
    };
    let fitting = read.iter().take_while(fits).count();
    if fitting < read.len() {
        read.truncate(fitting);
        end_with(work, read.last().map(|(key, ..)| key.clone()));
    }
}

/// Ends work with a document that is not its last.
fn end_with(work: &mut IndexWork, last: Option<String>) {
    work.until = work.until.take().and(last);
    work.is_last = false;
}

/// A document with its revision and its terms.
type Terms = (String, u64, Vec<u128>);

/// Reads the terms of documents in one of so many indexes; one without bytes, which cannot be read, is found
/// by every lookup, and so is one with more terms than its share.
async fn read_terms(
    documents: Vec<(DocumentView, Option<Bytes>)>,
    pointer: &str,
    indexes: usize,
) -> Result<Vec<Terms>, JoinError> {
    let pointer = Pointer::parse(pointer);
    let share = DOCUMENT_TERMS_MAX / indexes.max(1);
    let terms_of = move |bytes: &[u8]| {
        let content = MessageBlob::parse(bytes).and_then(|blob| json_of(blob.payload));
        pointer.as_ref().map_or_else(Vec::new, |pointer| index_terms(content.as_ref(), pointer))
    };
    let each = move |(view, bytes): (DocumentView, Option<Bytes>)| {
        let terms = bytes.map(|bytes| terms_of(&bytes)).filter(|terms| terms.len() <= share);
        let terms = terms.unwrap_or_else(|| vec![IndexTerm::ANY.0]);
        (view.key, view.version.revision, terms)
    };
    spawn_blocking(move || documents.into_iter().map(each).collect()).await
}
