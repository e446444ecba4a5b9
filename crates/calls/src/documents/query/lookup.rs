//! The choice of an index for a query.

use sluice_engine::indexes::IndexView;
use sluice_filter::{IndexRanges, Pointer};
use sluice_node::IndexedDocuments;

use super::plan::Plan;
use crate::error::CallError;
use crate::permit::Permit;

/// Indexes that are asked for one query: one that finds too many is followed by the next best.
const TRIES: usize = 2;

/// Documents that an index has found, all that match among them.
pub(super) struct Lookup {
    /// Name of the index.
    pub(super) index: String,
    pub(super) documents: IndexedDocuments,
}

/// Asks the index that serves the filter best for documents whose keys begin with `prefix` and are behind
/// `after`; `None`: no index serves it.
pub(super) async fn look_up(
    permit: &Permit<'_>,
    plan: &Plan,
    prefix: &str,
    after: Option<&str>,
) -> Result<Option<Lookup>, CallError> {
    let (node, namespace) = (permit.node(), permit.namespace_id()?);
    let Some(filter) = &plan.filter else { return Ok(None) };
    let indexes = node.known_indexes(namespace).await?;
    let ranges = |index: &IndexView| filter.ranges(&Pointer::parse(&index.pointer)?, plan.now_ms);
    let of_index = |index| Some((index, ranges(index)?));
    let mut serving: Vec<(&IndexView, IndexRanges)> =
        indexes.iter().filter(|index| index.is_built).filter_map(of_index).collect();
    serving.sort_by_key(|(_, ranges)| (ranges.rank, ranges.ranges.len()));
    for (index, ranges) in serving.into_iter().take(TRIES) {
        let ranges = ranges.ranges.into_iter().map(|range| range.start().0..=range.end().0).collect();
        let found = node.indexed_documents(namespace, index.number, ranges, prefix, after).await?;
        if let Some(documents) = found {
            return Ok(Some(Lookup { index: index.name.clone(), documents }));
        }
    }
    Ok(None)
}
