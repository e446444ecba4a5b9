//! Drawing the view.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};
use sluice_client::Consumer;

use super::sample::{QueueRow, Sample};
use super::state::{Mode, Pane, View, is_paused};
use crate::terminal::format::{length, now_ms, size, spent, time};

// The headings are those of `sluice queue list`, `consumer list` and `limit list`.
const QUEUE_COLUMNS: [&str; 12] = [
    "QUEUE", "SENT/S", "DELIV/S", "ACKED/S", "READY", "DELAYED", "BLOCKED", "LEASED", "HELD", "DEAD", "SIZE",
    "OLDEST",
];
const CONSUMER_COLUMNS: [&str; 7] = ["ID", "NAME", "STATE", "IN FLIGHT", "OF", "OLDEST", "QUEUES"];
const LIMIT_COLUMNS: [&str; 6] = ["LIMIT", "IN FLIGHT", "SPENT", "WAITING", "NEXT", "QUEUES"];

/// Draws the whole view.
pub(super) fn draw(frame: &mut Frame<'_>, state: &View) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Line::from(headline(state)).style(bold()), head);
    match (&state.mode, state.pane) {
        (Mode::Peek, _) => draw_peek(frame, state, body),
        (_, Pane::Queues) => draw_queues(frame, state, body),
        (_, Pane::Limits) => draw_limits(frame, state, body),
        (_, Pane::Consumers) => draw_consumers(frame, state, body),
    }
    frame.render_widget(Line::from(footline(state)), foot);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn headline(state: &View) -> String {
    let sum = |of: fn(&QueueRow) -> f64| state.sample.queues.iter().map(of).sum::<f64>();
    let ready: u64 = state.sample.queues.iter().map(|row| row.queue.counts.ready).sum();
    let mut text = format!(
        "{}: {} queues, {ready} ready, {} sent/s, {} acked/s, by {}",
        state.namespace,
        state.sample.queues.len(),
        rate(sum(|row| row.sent_per_s)),
        rate(sum(|row| row.acked_per_s)),
        state.sort.name(),
    );
    if !state.filter.is_empty() {
        text.push_str(&format!(", only {:?}", state.filter));
    }
    text
}

fn footline(state: &View) -> String {
    match &state.mode {
        Mode::Filter => format!("filter: {}_   Enter keeps it, Esc clears it", state.filter),
        Mode::Confirm(_) => "make all dead letters of this queue ready again? y confirms".into(),
        Mode::Peek => "any key goes back".into(),
        Mode::Look if state.note.is_empty() => {
            "q quit  p pause/resume  Enter peek  d redrive dead  s sort  / filter  Tab limits, consumers"
                .into()
        }
        Mode::Look => state.note.clone(),
    }
}

fn draw_queues(frame: &mut Frame<'_>, state: &View, area: Rect) {
    let rows = state.rows();
    let widths = [24, 9, 9, 9, 10, 9, 9, 9, 8, 8, 9, 8].map(Constraint::Max);
    let table = Table::new(rows.iter().map(|row| Row::new(queue_cells(row).map(Cell::from))), widths)
        .header(Row::new(QUEUE_COLUMNS).style(bold()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(state.selected()));
}

fn queue_cells(row: &QueueRow) -> [String; 12] {
    let counts = &row.queue.counts;
    let name = if is_paused(row) { format!("{} (paused)", row.queue.name) } else { row.queue.name.clone() };
    [
        name,
        rate(row.sent_per_s),
        rate(row.delivered_per_s),
        rate(row.acked_per_s),
        counts.ready.to_string(),
        counts.delayed.to_string(),
        counts.blocked.to_string(),
        counts.leased.to_string(),
        counts.held.to_string(),
        counts.dead.to_string(),
        size(row.queue.bytes),
        row.queue.oldest_ready_age_ms.map_or_else(|| "-".into(), length),
    ]
}

fn draw_limits(frame: &mut Frame<'_>, state: &View, area: Rect) {
    let rows = state.sample.limits.iter().map(|limit| {
        let next = limit.next_at_ms.map_or_else(|| "-".into(), time);
        let cells = [
            limit.name.clone(),
            limit.in_flight.to_string(),
            spent(limit.spent, limit.settings.rate),
            limit.waiting.to_string(),
            next,
            limit.queues.join(" "),
        ];
        Row::new(cells.map(Cell::from))
    });
    let widths = [24, 10, 21, 10, 21, 40].map(Constraint::Max);
    frame.render_widget(Table::new(rows, widths).header(Row::new(LIMIT_COLUMNS).style(bold())), area);
}

/// Consumers that hold the most messages come first.
fn draw_consumers(frame: &mut Frame<'_>, state: &View, area: Rect) {
    let mut consumers: Vec<&Consumer> = state.sample.consumers.iter().collect();
    consumers.sort_by_key(|consumer| Reverse(consumer.in_flight));
    let now_ms = now_ms();
    let rows = consumers.into_iter().map(|consumer| {
        let oldest = consumer.oldest_leased_at_ms.map(|at_ms| length(now_ms.saturating_sub(at_ms)));
        let cells = [
            consumer.id.clone(),
            consumer.name.clone(),
            consumer.state.clone(),
            consumer.in_flight.to_string(),
            consumer.credit.map_or_else(|| "-".into(), |credit| credit.to_string()),
            oldest.unwrap_or_else(|| "-".into()),
            consumer.queues.as_ref().map_or_else(String::new, |queues| queues.join(" ")),
        ];
        Row::new(cells.map(Cell::from))
    });
    let widths = [8, 24, 9, 10, 8, 8, 40].map(Constraint::Max);
    frame.render_widget(Table::new(rows, widths).header(Row::new(CONSUMER_COLUMNS).style(bold())), area);
}

fn draw_peek(frame: &mut Frame<'_>, state: &View, area: Rect) {
    let (queue, messages) = &state.peeked;
    let lines: Vec<Line<'_>> = messages
        .iter()
        .map(|message| {
            let payload = match (&message.payload, &message.payload_base64) {
                (Some(text), _) => text.lines().next().unwrap_or_default().to_owned(),
                (None, Some(octets)) => format!("base64 {octets}"),
                (None, None) => "(cannot be read)".into(),
            };
            Line::from(format!("{}  attempts {}  {payload}", message.id, message.attempts))
        })
        .collect();
    let title =
        if lines.is_empty() { format!("{queue}: nothing is ready") } else { format!("next in {queue}") };
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

/// The sample as plain text, for pipes.
pub(super) fn plain(sample: &Sample) -> String {
    let mut widths = QUEUE_COLUMNS.map(str::len);
    let rows: Vec<[String; 12]> = sample.queues.iter().map(queue_cells).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in std::iter::once(&QUEUE_COLUMNS.map(str::to_owned)).chain(&rows) {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn rate(per_s: f64) -> String {
    match per_s {
        rate if rate >= 1_000_000.0 => format!("{:.1}M", rate / 1_000_000.0),
        rate if rate >= 10_000.0 => format!("{:.0}k", rate / 1_000.0),
        rate if rate >= 10.0 => format!("{rate:.0}"),
        rate => format!("{rate:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::tests::state;
    use super::*;

    fn drawn(state: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn queues_are_shown_with_their_figures() {
        let screen = drawn(&state(), 130, 8);
        assert!(screen.contains("default: 3 queues, 14 ready, 10 sent/s"), "{screen}");
        for part in ["QUEUE", "LEASED    HELD", "billing", "mail.bulk", "7.5", "q quit"] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
    }

    #[test]
    fn limits_are_shown_with_what_is_spent_of_them() {
        let limit = |name: &str, settings, spent: Option<u64>| {
            serde_json::from_value(serde_json::json!({"name": name, "namespace": "default",
                "settings": settings, "queues": ["mail"], "in_flight": 3, "waiting": 8, "spent": spent}))
            .unwrap()
        };
        let day = serde_json::json!({"rate": {"count": 1_000_000_000, "period_ms": 86_400_000}});
        let mut state = state();
        state.sample.limits =
            vec![limit("tokens", day, Some(1_000_000_007)), limit("slots", serde_json::json!({}), None)];
        state.pane = Pane::Limits;
        let screen = drawn(&state, 140, 6);
        let rows: Vec<String> =
            screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for row in [
            "LIMIT IN FLIGHT SPENT WAITING NEXT QUEUES",
            "tokens 3 1000000007/1000000000 8 - mail",
            "slots 3 - 8 - mail",
        ] {
            assert!(rows.iter().any(|shown| shown.contains(row)), "{row}: {screen}");
        }
    }

    #[test]
    fn consumers_are_shown_with_what_they_hold_the_busiest_first() {
        let consumer = |name: &str, in_flight: u32| {
            serde_json::from_value(serde_json::json!({"id": "1", "name": name, "state": "attached",
                "queues": ["mail", "bulk"], "credit": 50, "in_flight": in_flight, "since_at_ms": 1}))
            .unwrap()
        };
        let mut state = state();
        state.sample.consumers = vec![consumer("idle", 0), consumer("busy", 7)];
        state.pane = Pane::Consumers;
        let screen = drawn(&state, 130, 6);
        let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
        assert!(at(" OF ") < at("busy") && at("busy") < at("idle") && at("mail bulk") > 0, "{screen}");
    }

    #[test]
    fn the_smallest_terminal_is_drawn_too() {
        for (width, height) in [(1, 1), (10, 3), (300, 100)] {
            drawn(&state(), width, height);
        }
    }

    #[test]
    fn one_look_is_plain_text() {
        let text = plain(&state().sample);
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().all(|line| !line.ends_with(' ')));
    }
}
