//! Indexes of messages: whatever happens between the reading of terms and their telling, an index finds each
//! message that has a term, as far as it goes.

use std::collections::BTreeSet;

use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{FilledMessage, SearchFill};
use sluice_engine::id::NamespaceId;
use sluice_engine::query::{MessageView, QueueView, State};
use sluice_engine::search::{SearchKind, SearchKinds, SearchTerm, SearchWork};
use sluice_engine::settings::QueuePatch;
use sluice_engine::{Command, error_fingerprint};

use super::Run;
use crate::common::Driver;

/// Terms that were read, and are not told yet.
#[derive(Default)]
pub(super) struct Search(Vec<(SearchWork, Vec<FilledMessage>)>);

/// What some messages have, of each kind.
const LOOKED_FOR: [(SearchKind, &str); 3] =
    [(SearchKind::Tags, "red"), (SearchKind::Tags, "blue"), (SearchKind::Errors, "it failed")];

impl Run {
    pub(super) fn search_kinds(&mut self) -> SearchKinds {
        SearchKinds::of(SearchKind::ALL.into_iter().filter(|_| self.numbers.one_in(2)))
    }

    /// Reads terms, and tells them at once, later, or twice.
    pub(super) fn search(&mut self) {
        if self.searches && self.numbers.one_in(8) {
            let search_index = Some(self.search_kinds());
            let patch = QueuePatch { search_index, ..QueuePatch::default() };
            let (namespace, queue) = (NamespaceId::DEFAULT, self.queue());
            self.apply(&Command::QueueSet { namespace, queue, patch, create: true });
        }
        let (from, most) = (self.numbers.below(4) as u32, self.numbers.pick(&[1, 2, 5, 100]));
        if let (Some(work), _) = self.driver.engine.search_work(from, most) {
            let messages = self.driver.read_terms(&work);
            self.search.0.push((work, messages));
        }
        if self.search.0.is_empty() || self.numbers.one_in(3) {
            return;
        }
        let at = self.numbers.below(self.search.0.len() as u64) as usize;
        let (work, messages) = match self.numbers.one_in(4) {
            true => self.search.0[at].clone(),
            false => self.search.0.swap_remove(at),
        };
        let SearchWork { namespace, queue, began, from, until, .. } = work;
        let messages = &messages;
        self.apply(&Command::SearchFill(SearchFill { namespace, queue, began, from, until, messages }));
    }
}

/// Each message that has a term is found by it, or is behind the end of the index.
pub(super) fn check(driver: &Driver) {
    let engine = &driver.engine;
    for queue in engine.namespaces().iter().flat_map(|namespace| engine.queues(namespace.id, "", None, 1_000))
    {
        if queue.settings.search_index.is_empty() {
            continue;
        }
        for (kind, text) in LOOKED_FOR {
            for state in [None, Some(State::Ready), Some(State::Dead)] {
                check_found(driver, &queue, (kind, text), state);
            }
        }
    }
}

fn check_found(driver: &Driver, queue: &QueueView, (kind, text): (SearchKind, &str), state: Option<State>) {
    let engine = &driver.engine;
    let term = match kind {
        SearchKind::Tags => SearchTerm::of_tag(text),
        SearchKind::Errors => SearchTerm::of_error(error_fingerprint(text.as_bytes())),
    };
    let (mut found, mut cursor, mut end) = (BTreeSet::new(), None, 0);
    while let Some(page) = engine.search_page(queue.id, (kind, &[term]), state, cursor, 2) {
        assert!(page.next.is_none_or(|next| Some(next) > cursor), "pages go on");
        found.extend(page.items.iter().map(|view| view.id));
        assert!(page.items.iter().all(|view| view.queue == queue.id && view.id.sequence <= page.until));
        assert!(page.items.iter().all(|view| state.is_none_or(|state| view.state == state)));
        (cursor, end) = (page.next, page.until);
        if cursor.is_none() {
            end = u64::MAX;
            break;
        }
    }
    let mut at = None;
    loop {
        let page = engine.messages(queue.id, state, at, 100);
        for view in &page.items {
            let is_found = found.contains(&view.id) || view.id.sequence > end;
            assert!(is_found || !has(driver, view, kind, text), "{} is not found by {text}", view.id);
        }
        at = page.next;
        if at.is_none() {
            return;
        }
    }
}

/// True if a message has a tag, or had an error last.
fn has(driver: &Driver, view: &MessageView, kind: SearchKind, text: &str) -> bool {
    match kind {
        SearchKind::Tags => {
            let bytes = driver.blobs.get(&view.tags.unwrap_or(view.blob)).cloned().unwrap_or_default();
            MessageBlob::parse(&bytes).is_some_and(|blob| blob.tags().any(|tag| tag == text))
        }
        SearchKind::Errors => {
            let history = driver.engine.message(view.id).unwrap().history;
            let error = history.last().and_then(|attempt| attempt.error);
            error.is_some_and(|error| driver.blobs[&error] == text.as_bytes())
        }
    }
}
