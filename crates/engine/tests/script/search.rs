//! Indexes of messages: `search fill` tells the terms of the messages that the engine names as the next work,
//! at most `most=` of them. `show search QUEUE` finds messages by `tag=` or `error=` in its index, those in a
//! `state=` or all, from a `cursor=` on.

use sluice_engine::error_fingerprint;
use sluice_engine::search::{SearchKind, SearchTerm};

use super::Player;
use super::line::Line;
use super::look::{page_items, state};

impl Player {
    pub(super) fn search_fill(&mut self, line: &Line<'_>) -> Vec<String> {
        let most = line.number("most").unwrap_or(100) as usize;
        let (Some(work), _) = self.driver.engine.search_work(0, most) else {
            return vec!["nothing to fill".into()];
        };
        let messages = self.driver.read_terms(&work);
        let terms: usize = messages.iter().map(|message| message.terms.len()).sum();
        self.driver.fill(self.now_us, &work, &messages);
        let mut told = vec![format!("{} message(s) read, {terms} term(s) told", work.messages.len())];
        told.extend(self.outcome());
        told
    }

    pub(super) fn show_search(&self, line: &Line<'_>, name: &str) -> Vec<String> {
        let engine = &self.driver.engine;
        let Some(queue) = self.queue(line, name) else { return vec!["no such queue".into()] };
        let (kind, term) = match (line.get("tag"), line.get("error")) {
            (Some(tag), _) => (SearchKind::Tags, SearchTerm::of_tag(tag)),
            (None, Some(error)) => (
                SearchKind::Errors,
                SearchTerm::of_error(error_fingerprint(error.replace('_', " ").as_bytes())),
            ),
            (None, None) => panic!("{line:?} has neither tag nor error"),
        };
        let state = line.get("state").map(state);
        let (terms, cursor) = ((kind, &[term][..]), line.number("cursor"));
        match engine.search_page(queue, terms, state, cursor, page_items(line)) {
            None => vec!["no index there".into()],
            Some(page) => {
                let mut lines: Vec<String> = page.items.iter().map(|view| self.short_view(view)).collect();
                lines.extend(page.next.map(|next| format!("next cursor={next}")));
                lines
            }
        }
    }
}
