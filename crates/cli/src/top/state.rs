//! The state of the view, and how keys change it.

use std::cmp::Reverse;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sluice_client::Stored;

use super::sample::{QueueRow, Sample};

/// Request to the server made by a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Quit,
    Pause(String),
    Resume(String),
    Redrive(String),
    Peek(String),
}

/// The sort order of the rows: names ascending, figures descending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Name,
    Ready,
    Sent,
    Leased,
    Dead,
    Age,
}

impl Sort {
    const ALL: [Sort; 6] = [Sort::Name, Sort::Ready, Sort::Sent, Sort::Leased, Sort::Dead, Sort::Age];

    pub(super) fn name(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Ready => "ready",
            Sort::Sent => "sent/s",
            Sort::Leased => "leased",
            Sort::Dead => "dead",
            Sort::Age => "age",
        }
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }
}

/// Content of the lower part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pane {
    Queues,
    Limits,
    Consumers,
}

/// Mode of the keyboard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Look,
    /// The user types a filter.
    Filter,
    /// The view waits for a confirmation.
    Confirm(Command),
    /// The view shows the messages that are next in line.
    Peek,
}

/// Everything that the view shows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) namespace: String,
    pub(super) sample: Sample,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) pane: Pane,
    pub(super) mode: Mode,
    /// The last result or error.
    pub(super) note: String,
    pub(super) peeked: (String, Vec<Stored>),
    /// The selected queue by name, so that it stays selected when the order changes.
    chosen: Option<String>,
}

impl View {
    pub(super) fn new(namespace: String, sample: Sample) -> View {
        let mut state = View {
            namespace,
            sample: Sample::default(),
            sort: Sort::Name,
            filter: String::new(),
            pane: Pane::Queues,
            mode: Mode::Look,
            note: String::new(),
            peeked: (String::new(), Vec::new()),
            chosen: None,
        };
        state.show(sample);
        state
    }

    /// Takes over a new sample.
    pub(super) fn show(&mut self, sample: Sample) {
        self.sample = sample;
        let chosen_is_there = self.selected().is_some();
        if !chosen_is_there {
            self.chosen = self.rows().first().map(|row| row.queue.name.clone());
        }
    }

    /// Sets the text of the last line; an empty text leaves it unchanged.
    pub(super) fn set_note(&mut self, note: String) {
        if !note.is_empty() {
            self.note = note;
        }
    }

    /// Shows messages.
    pub(super) fn peeked(&mut self, queue: String, messages: Vec<Stored>) {
        self.peeked = (queue, messages);
        self.mode = Mode::Peek;
    }

    /// The rows that pass the filter, in order.
    pub(super) fn rows(&self) -> Vec<&QueueRow> {
        let mut rows: Vec<&QueueRow> =
            self.sample.queues.iter().filter(|row| row.queue.name.contains(&self.filter)).collect();
        match self.sort {
            Sort::Name => rows.sort_by(|a, b| a.queue.name.cmp(&b.queue.name)),
            Sort::Ready => rows.sort_by_key(|row| Reverse(row.queue.counts.ready)),
            Sort::Sent => rows.sort_by(|a, b| b.sent_per_s.total_cmp(&a.sent_per_s)),
            Sort::Leased => rows.sort_by_key(|row| Reverse(row.queue.counts.leased)),
            Sort::Dead => rows.sort_by_key(|row| Reverse(row.queue.counts.dead)),
            Sort::Age => rows.sort_by_key(|row| Reverse(row.queue.oldest_ready_age_ms)),
        }
        rows
    }

    /// The index of the selected queue among the rows.
    pub(super) fn selected(&self) -> Option<usize> {
        let chosen = self.chosen.as_deref()?;
        self.rows().iter().position(|row| row.queue.name == chosen)
    }

    fn choose(&mut self, by: isize) {
        let rows = self.rows();
        let at = self.selected().map_or(0, |at| at.saturating_add_signed(by));
        let name = rows.get(at.min(rows.len().saturating_sub(1))).map(|row| row.queue.name.clone());
        self.chosen = name;
    }

    /// Handles a key press; returns a command if the server has to be asked.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Command> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Command::Quit);
        }
        match std::mem::replace(&mut self.mode, Mode::Look) {
            Mode::Look => self.key_in_look(key.code),
            Mode::Filter => {
                self.key_in_filter(key.code);
                None
            }
            Mode::Confirm(command) if matches!(key.code, KeyCode::Char('y' | 'Y')) => Some(command),
            Mode::Confirm(_) => {
                self.note = "not confirmed: nothing was done".into();
                None
            }
            // Any key closes the peek.
            Mode::Peek => None,
        }
    }

    fn key_in_look(&mut self, code: KeyCode) -> Option<Command> {
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Command::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::PageUp => self.choose(-20),
            KeyCode::PageDown => self.choose(20),
            KeyCode::Home => self.choose(isize::MIN),
            KeyCode::End => self.choose(isize::MAX),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Tab => {
                self.pane = match self.pane {
                    Pane::Queues => Pane::Limits,
                    Pane::Limits => Pane::Consumers,
                    Pane::Consumers => Pane::Queues,
                };
            }
            KeyCode::Char('p') => {
                return self.on_chosen(|row| {
                    let name = row.queue.name.clone();
                    if is_paused(row) { Command::Resume(name) } else { Command::Pause(name) }
                });
            }
            KeyCode::Enter => return self.on_chosen(|row| Command::Peek(row.queue.name.clone())),
            KeyCode::Char('d') => {
                let command = self.on_chosen(|row| Command::Redrive(row.queue.name.clone()));
                self.mode = command.map_or(Mode::Look, Mode::Confirm);
            }
            _ => {}
        }
        None
    }

    fn on_chosen(&self, command: impl Fn(&QueueRow) -> Command) -> Option<Command> {
        self.selected().and_then(|at| self.rows().get(at).map(|row| command(row)))
    }

    fn key_in_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => return,
            KeyCode::Esc => {
                self.filter.clear();
                return;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.mode = Mode::Filter;
    }
}

/// True when deliveries of the queue are paused.
pub(super) fn is_paused(row: &QueueRow) -> bool {
    row.queue.settings.paused
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sample::tests::queue;
    use super::*;

    pub(in crate::top) fn state() -> View {
        let row = |name, ready, sent_per_s| QueueRow {
            queue: queue(name, ready, 0),
            sent_per_s,
            delivered_per_s: 0.0,
            acked_per_s: 0.0,
        };
        let queues = vec![row("mail", 5, 1.0), row("billing", 9, 2.0), row("mail.bulk", 0, 7.5)];
        View::new("default".into(), Sample { queues, ..Sample::default() })
    }

    fn press(state: &mut View, codes: &[KeyCode]) -> Option<Command> {
        codes.iter().map(|code| state.key((*code).into())).last().flatten()
    }

    fn names(state: &View) -> Vec<&str> {
        state.rows().iter().map(|row| row.queue.name.as_str()).collect()
    }

    #[test]
    fn rows_are_sorted_and_the_chosen_queue_stays_chosen() {
        let mut state = state();
        assert_eq!(names(&state), ["billing", "mail", "mail.bulk"]);
        press(&mut state, &[KeyCode::Down]);
        assert_eq!(state.selected(), Some(1));
        press(&mut state, &[KeyCode::Char('s')]);
        assert_eq!((names(&state), state.selected()), (vec!["billing", "mail", "mail.bulk"], Some(1)));
        press(&mut state, &[KeyCode::Char('s')]);
        assert_eq!((names(&state), state.selected()), (vec!["mail.bulk", "billing", "mail"], Some(2)));
    }

    #[test]
    fn a_filter_narrows_the_rows() {
        let mut state = state();
        press(&mut state, &[KeyCode::Char('/'), KeyCode::Char('b'), KeyCode::Char('u'), KeyCode::Enter]);
        assert_eq!(names(&state), ["mail.bulk"]);
        press(&mut state, &[KeyCode::Char('/'), KeyCode::Esc]);
        assert_eq!(names(&state).len(), 3);
    }

    #[test]
    fn keys_ask_for_what_they_say() {
        let mut state = state();
        let billing = || "billing".to_owned();
        assert_eq!(press(&mut state, &[KeyCode::Char('p')]), Some(Command::Pause(billing())));
        assert_eq!(press(&mut state, &[KeyCode::Enter]), Some(Command::Peek(billing())));
        assert_eq!(press(&mut state, &[KeyCode::Char('d')]), None, "redriving is confirmed first");
        assert_eq!(press(&mut state, &[KeyCode::Char('n')]), None);
        assert_eq!(
            press(&mut state, &[KeyCode::Char('d'), KeyCode::Char('y')]),
            Some(Command::Redrive(billing()))
        );
        assert_eq!(press(&mut state, &[KeyCode::Char('q')]), Some(Command::Quit));
    }

    #[test]
    fn nothing_to_choose_from_is_no_trouble() {
        let mut state = View::new("default".into(), Sample::default());
        for code in [KeyCode::Up, KeyCode::End, KeyCode::Char('p'), KeyCode::Enter, KeyCode::Char('d')] {
            assert_eq!(state.key(code.into()), None);
        }
    }
}
