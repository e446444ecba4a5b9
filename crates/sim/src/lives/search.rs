//! Indexes of messages, as those see them who look: each finds the messages that a look at all of them would
//! find, up to where it ends.

use std::collections::BTreeSet;

use sluice_engine::command::Command;
use sluice_engine::query::QueueView;
use sluice_engine::search::SearchKind;

use super::Record;
use crate::model::{Checked, ensure};
use crate::workload::{Seen, TERMS_FOUND, term, value_of};

/// Messages of a page.
const PAGE: usize = 3;
/// More queues than there are.
const ALL: usize = 1_000;

/// Compares what indexes find with what is there, after a record that may have changed it much.
pub(super) fn are_searched(record: &Record<'_>) -> Checked {
    if !matches!(record.command, Command::SearchFill(_) | Command::Change(_) | Command::Tick) {
        return Ok(());
    }
    for namespace in record.engine.namespaces() {
        for queue in record.engine.queues(namespace.id, "", None, ALL) {
            if !queue.settings.search_index.is_empty() {
                for (kind, value) in TERMS_FOUND {
                    is_searched(record, &queue, kind, value)?;
                }
            }
        }
    }
    Ok(())
}

fn is_searched(record: &Record<'_>, queue: &QueueView, kind: SearchKind, value: u64) -> Checked {
    let (engine, terms) = (record.engine, [term(kind, value)]);
    let (mut found, mut cursor, mut end) = (BTreeSet::new(), None, 0);
    while let Some(page) = engine.search_page(queue.id, (kind, &terms), None, cursor, PAGE) {
        ensure!(page.next.is_none_or(|next| Some(next) > cursor), "a page behind {cursor:?} goes on there");
        found.extend(page.items.iter().map(|view| view.id));
        (cursor, end) = (page.next, page.until);
        if cursor.is_none() {
            end = u64::MAX;
            break;
        }
    }
    for view in Seen(engine).in_queue(queue.namespace, &queue.name) {
        let is_found = view.id.sequence > end || found.contains(&view.id);
        let has_value = value_of(&view, kind) == Some(value);
        ensure!(is_found || !has_value, "{} is not found by {kind:?} {value}, up to {end}", view.id);
    }
    Ok(())
}
