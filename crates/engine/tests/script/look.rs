//! From lines that look at the engine to what it shows.

use sluice_engine::id::{ConsumerId, QueueId};
use sluice_engine::query::{DueSchedule, State};

use super::line::Line;
use super::{Player, print};

/// Items that a page has unless the line says `limit=`.
const PAGE_ITEMS: u64 = 100;

impl Player {
    pub(super) fn look(&mut self, line: &Line<'_>) -> Vec<String> {
        let engine = &self.driver.engine;
        match (line.verb, line.words.as_slice()) {
            ("deadline", []) => vec![match engine.next_deadline() {
                Some(due) => format!("due at {}", self.time(due)),
                None => "nothing is due".into(),
            }],
            ("show", [list]) => self.show_list(line, list),
            ("show", [kind, name]) => self.show_one(line, kind, name),
            ("due", []) => {
                let found = engine.schedules_by_time().take(page_items(line));
                let text = |due: DueSchedule<'_>| {
                    let spec = String::from_utf8_lossy(due.spec);
                    format!("schedule {} at {}: {spec}", due.number, self.time(due.instant_us))
                };
                found.map(text).collect()
            }
            ("peek", [name]) => {
                let found = self.queue(line, name).map(|id| engine.peek(id, page_items(line)));
                found.unwrap_or_default().iter().map(|view| self.short_view(view)).collect()
            }
            ("list", [name]) => self.list(line, name),
            _ => panic!("cannot look at {line:?}"),
        }
    }

    fn show_list(&self, line: &Line<'_>, list: &str) -> Vec<String> {
        let engine = &self.driver.engine;
        let (namespace, after, limit) = (self.namespace(line), line.get("after"), page_items(line));
        match list {
            "queues" => {
                let found = engine.queues(namespace, line.get("prefix").unwrap_or(""), after, limit);
                found.iter().map(|view| format!("{} {}", view.name, print::states(&view.counters))).collect()
            }
            "pushes" => {
                let (found, last) =
                    engine.pushes(line.number("after").map(|number| QueueId(number as u32)), limit);
                let more = last.map(|queue| format!("more behind queue {}", queue.0));
                found.iter().map(|view| format!("{view:?}")).chain(more).collect()
            }
            "namespaces" => engine.namespaces().iter().map(print::namespace).collect(),
            "limits" => {
                let found = engine.limits_of(namespace, after, limit);
                found.iter().map(|view| print::limit(view, |us| self.time(us))).collect()
            }
            "defaults" => {
                let found = engine.defaults_after(namespace, after, limit);
                found.iter().map(|view| view.pattern.clone()).collect()
            }
            "schedules" => {
                let found = engine.schedules(namespace, after, limit);
                found.iter().map(|view| view.name.clone()).collect()
            }
            "consumers" => {
                let after = line.number("after").map(ConsumerId);
                let found = engine.consumers(namespace, after, limit);
                found.iter().map(|view| print::consumer(view, |us| self.time(us))).collect()
            }
            "changes" => self.show_changes(line, limit),
            "files" => self.show_files(line, limit),
            "uploads" => self.show_uploads(line, limit),
            "docs" => self.show_documents(line, limit),
            "locks" => self.show_locks(line, limit),
            "prepared" | "decided" => self.show_phases(list),
            "totals" => print::counters(&engine.totals()),
            _ => panic!("cannot look at {line:?}"),
        }
    }

    fn show_one(&self, line: &Line<'_>, kind: &str, name: &str) -> Vec<String> {
        let engine = &self.driver.engine;
        match kind {
            "message" => match engine.message(self.message_id(name)) {
                Ok(view) => self.full_view(&view),
                Err(error) => vec![format!("error {}: {error}", error.code())],
            },
            "queue" => match self.queue(line, name).and_then(|id| engine.queue(id)) {
                Some(view) => self.queue_view(&view),
                None => vec!["no such queue".into()],
            },
            "limit" => self.show_limit(line, name),
            "doc" => self.show_document(line, name),
            "upload" => self.show_upload(line, name),
            "file" => self.show_file(line, name),
            "index" => self.show_index(line, name),
            "search" => self.show_search(line, name),
            "lock" => self.show_lock(line, name),
            "schedule" => match engine.schedule(self.namespace(line), name) {
                Some(view) => self.schedule_view(&view),
                None => vec!["no such schedule".into()],
            },
            "flow" => match engine.flow_view(self.message_id(name)) {
                Ok(view) => print::flow(&view),
                Err(error) => vec![format!("error {}: {error}", error.code())],
            },
            "group" => match engine.group_view(self.message_id(name)) {
                Some(view) => vec![format!(
                    "pending {}, done {}, dead {}, callback {}",
                    view.pending,
                    view.done,
                    view.dead,
                    view.callback.name()
                )],
                None => vec!["no such group".into()],
            },
            _ => panic!("cannot look at {line:?}"),
        }
    }

    /// A limit, and a page of its keys.
    fn show_limit(&self, line: &Line<'_>, name: &str) -> Vec<String> {
        let (engine, namespace) = (&self.driver.engine, self.namespace(line));
        let Some(view) = engine.limit(namespace, name) else { return vec!["no such limit".into()] };
        let waiting = line.get("waiting").is_some();
        let page = engine.limit_keys(namespace, name, waiting, line.number("cursor"), page_items(line));
        let mut lines = vec![print::limit(&view, |us| self.time(us))];
        lines.extend(page.items.iter().map(|key| print::limit_key(key, |us| self.time(us))));
        lines.extend(page.next.map(|next| format!("next cursor={next}")));
        lines
    }

    /// A page of the messages of a queue.
    fn list(&self, line: &Line<'_>, name: &str) -> Vec<String> {
        let queue = self.queue(line, name).unwrap_or(QueueId(u32::MAX));
        let state = line.get("state").map(state);
        let page = self.driver.engine.messages(queue, state, line.number("cursor"), page_items(line));
        let mut lines: Vec<_> = page.items.iter().map(|view| self.short_view(view)).collect();
        lines.extend(page.next.map(|next| format!("next cursor={next}")));
        lines
    }

    pub(super) fn queue(&self, line: &Line<'_>, name: &str) -> Option<QueueId> {
        self.driver.engine.queue_id(self.namespace(line), name)
    }
}

pub(super) fn page_items(line: &Line<'_>) -> usize {
    line.number("limit").unwrap_or(PAGE_ITEMS) as usize
}

pub(super) fn state(name: &str) -> State {
    State::ALL.into_iter().find(|state| state.name() == name).expect("a state")
}
