//! Random indexes of messages, and the terms by which they find them.

use sluice_engine::command::{Command, FilledMessage, SearchFill};
use sluice_engine::query::MessageView;
use sluice_engine::search::{SearchKind, SearchKinds, SearchMessage, SearchTerm, SearchWork};
use sluice_engine::settings::QueuePatch;

use super::seen::Seen;
use super::{Generator, Lend, Op};

/// Tags and errors that messages have here, of each kind.
const VALUES: u64 = 5;

/// All terms that messages have.
pub const TERMS_FOUND: [(SearchKind, u64); 2 * VALUES as usize] = [
    (SearchKind::Tags, 0),
    (SearchKind::Tags, 1),
    (SearchKind::Tags, 2),
    (SearchKind::Tags, 3),
    (SearchKind::Tags, 4),
    (SearchKind::Errors, 0),
    (SearchKind::Errors, 1),
    (SearchKind::Errors, 2),
    (SearchKind::Errors, 3),
    (SearchKind::Errors, 4),
];

/// The value of a message of a kind, if it has one. The node reads tags and errors; these are
/// made of their lengths, which readers of the engine see.
pub fn value_of(view: &MessageView, kind: SearchKind) -> Option<u64> {
    let blob = match kind {
        SearchKind::Tags => Some(view.tags.unwrap_or(view.blob)),
        SearchKind::Errors => view.history.last().and_then(|attempt| attempt.error),
    };
    blob.map(|blob| u64::from(blob.len) % VALUES)
}

/// The term of a value.
pub fn term(kind: SearchKind, value: u64) -> SearchTerm {
    match kind {
        SearchKind::Tags => SearchTerm::of_tag(&value.to_string()),
        SearchKind::Errors => SearchTerm::of_error(1_000 + 2 * value),
    }
}

/// The telling of terms.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchOp(SearchWork);

impl Lend for SearchOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        let filled = |message: &SearchMessage| {
            let places = [(SearchKind::Tags, message.tags), (SearchKind::Errors, message.error)];
            let value = |len: u32| u64::from(len) % VALUES;
            let terms = places.into_iter().filter_map(|(kind, blob)| Some(term(kind, value(blob?.len))));
            let (sequence, source) = (message.id.sequence, message.source);
            FilledMessage { sequence, source, terms: terms.collect() }
        };
        let messages: Vec<FilledMessage> = self.0.messages.iter().map(filled).collect();
        let SearchWork { namespace, queue, began, from, until, .. } = self.0;
        f(&Command::SearchFill(SearchFill { namespace, queue, began, from, until, messages: &messages }));
    }
}

impl Generator {
    /// Draws an index, or the telling of terms, at times; only in runs that have indexes of messages.
    pub(super) fn search(&mut self, seen: &Seen<'_>) -> Option<Op> {
        let mut rng = self.searches.take()?;
        let drawn = if !rng.chance(1, 15) {
            None
        } else if rng.chance(1, 6) {
            let kinds = SearchKind::ALL.into_iter().filter(|_| rng.chance(2, 3));
            let search_index = Some(SearchKinds::of(kinds));
            let patch = QueuePatch { search_index, ..QueuePatch::default() };
            let (namespace, queue) = (self.a_namespace(seen), self.a_queue());
            Some(Op::QueueSet { namespace, queue, patch, create: true })
        } else {
            let most = *rng.pick(&[1, 3, 100]);
            let work = seen.0.search_work(rng.below(4) as u32, most).0;
            work.map(|work| Op::Search(SearchOp(work)))
        };
        self.searches = Some(rng);
        drawn
    }
}
