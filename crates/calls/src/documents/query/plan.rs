//! The conditions and the order of a query, and the documents that match.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use sluice_engine::blob::MessageBlob;
use sluice_engine::documents::DocumentView;
use sluice_filter::{Filter, Pointer, SORT_TEXT_BYTES, SortValue};
use tokio::sync::Semaphore;

use crate::documents::Document;
use crate::documents::indexes::json_of;
use crate::fault::{Fault, Read};
use crate::room::written;

/// Parts that are looked at together on the server: what JSON is read into takes many times its length.
const PARTS_AT_A_TIME: usize = 2;
/// Bytes of a part that takes no longer than a change of the thread.
const SHORT_BYTES: usize = 4 << 10;
/// Turns of parts.
static TURNS: Semaphore = Semaphore::const_new(PARTS_AT_A_TIME);

/// The conditions and the order of a query.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) filter: Option<Filter>,
    pub(super) sort: Vec<SortBy>,
    /// True if answers have the contents.
    pub(super) has_contents: bool,
    /// Present time, in milliseconds since the Unix epoch.
    pub(super) now_ms: u64,
}

/// A value to sort by.
#[derive(Debug)]
pub(super) struct SortBy {
    pub(super) pointer: Pointer,
    pub(super) is_descending: bool,
}

/// The place of a document in the order of a query.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    values: Vec<Directed>,
    pub(super) key: String,
}

/// A value in its direction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Directed {
    Ascending(SortValue),
    Descending(Reverse<SortValue>),
}

/// A document that matches.
#[derive(Debug)]
pub(super) struct Match {
    /// Its place in the part that was looked at, from 0.
    pub(super) at: usize,
    pub(super) rank: Rank,
    pub(super) document: Document,
    /// Memory that it takes in the answer, in bytes.
    pub(super) bytes: usize,
}

impl Plan {
    /// The order as text: the pointers, those that descend behind a minus.
    pub(super) fn order(&self) -> String {
        let sign = |one: &SortBy| if one.is_descending { "-" } else { "" };
        let all = self.sort.iter().map(|one| format!("{}{}", sign(one), one.pointer));
        all.collect::<Vec<_>>().join(",")
    }

    /// The rank of a document with these values to sort by.
    pub(super) fn rank(&self, values: impl Iterator<Item = SortValue>, key: &str) -> Rank {
        let directed = |(by, value): (&SortBy, _)| match by.is_descending {
            true => Directed::Descending(Reverse(value)),
            false => Directed::Ascending(value),
        };
        Rank { values: self.sort.iter().zip(values).map(directed).collect(), key: key.to_owned() }
    }

    /// Documents of a part that match, in its order. A thread that may take long reads their JSON, unless it
    /// is short.
    pub(super) async fn matching(self: &Arc<Plan>, part: Vec<(DocumentView, Bytes)>) -> Read<Vec<Match>> {
        if part.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= SHORT_BYTES {
            return Ok(self.matches_of(part));
        }
        let turn = TURNS.acquire().await;
        let plan = Arc::clone(self);
        let work = move || {
            // Until the end, also of one whose caller has gone.
            let _turn = turn;
            plan.matches_of(part)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| Fault::new("internal", "the query was given up"))
    }

    fn matches_of(&self, part: Vec<(DocumentView, Bytes)>) -> Vec<Match> {
        let each = |(at, (view, bytes)): (usize, (DocumentView, Bytes))| self.match_of(at, &view, &bytes);
        part.into_iter().enumerate().filter_map(each).collect()
    }

    fn match_of(&self, at: usize, view: &DocumentView, bytes: &Bytes) -> Option<Match> {
        let content: Value = json_of(MessageBlob::parse(bytes)?.payload)?;
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(&content, self.now_ms)) {
            return None;
        }
        let values = self.sort.iter().map(|by| SortValue::of(by.pointer.find(&content)));
        let document = match self.has_contents {
            // Copied, since what was read together lies together.
            true => Document::with_content(view, Some(&Bytes::copy_from_slice(bytes))),
            false => Document::from(view),
        };
        let of_rank = view.key.len() + self.sort.len() * SORT_TEXT_BYTES;
        Some(Match { at, rank: self.rank(values, &view.key), bytes: written(&document) + of_rank, document })
    }
}

impl Rank {
    /// The values that it was made of.
    pub(super) fn values(&self) -> impl Iterator<Item = &SortValue> {
        self.values.iter().map(|value| match value {
            Directed::Ascending(value) | Directed::Descending(Reverse(value)) => value,
        })
    }
}
