//! Output of results: tables for people, JSON for machines.

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;

use super::format::{one_line, printable};
use super::{CliError, Result};

/// The form of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    /// JSON instead of text.
    pub(crate) json: bool,
}

impl Out {
    pub(crate) fn new(json: bool) -> Out {
        Out { json }
    }

    /// Writes text to stdout, without control characters: the sender of a message cannot control the
    /// terminal.
    pub(crate) fn text(self, text: &str) -> Result<()> {
        self.bytes(printable(text).as_bytes())
    }

    /// Writes bytes to stdout unchanged.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|e| CliError::output(&e))
    }

    /// Writes what somebody else has sent to stdout: unchanged, but to a terminal as text without control
    /// characters.
    pub(crate) fn foreign(self, bytes: &[u8]) -> Result<()> {
        match std::io::stdout().is_terminal() {
            true => self.text(&String::from_utf8_lossy(bytes)),
            false => self.bytes(bytes),
        }
    }

    /// Writes a line to stdout.
    pub(crate) fn line(self, line: &str) -> Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// Writes one JSON object on a line to stdout.
    pub(crate) fn object(self, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(value).map_err(|e| CliError::failed(e.to_string()))?;
        text.push(b'\n');
        self.bytes(&text)
    }

    /// Writes `value` as JSON, or the text that `human` makes of it.
    pub(crate) fn show<T: Serialize>(self, value: &T, human: impl FnOnce(&T) -> String) -> Result<()> {
        if self.json { self.object(value) } else { self.text(&human(value)) }
    }

    /// Writes one JSON object per line, or the text that `human` makes of all values.
    pub(crate) fn list<T: Serialize>(self, values: &[T], human: impl FnOnce(&[T]) -> String) -> Result<()> {
        if !self.json {
            return self.text(&human(values));
        }
        values.iter().try_for_each(|value| self.object(value))
    }

    /// Writes a remark to stderr; with JSON it is left out.
    pub(crate) fn note(self, note: &str) {
        if !self.json {
            // Without stderr there is nowhere left to report this.
            let _ = writeln!(std::io::stderr(), "{}", printable(note));
        }
    }
}

/// A table of aligned columns, each cell on one line.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with headings; a heading that begins with `>` is aligned to the right.
    pub(crate) fn new(headings: &[&str]) -> Table {
        let right = headings.iter().map(|h| h.starts_with('>')).collect();
        let first = headings.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        Table { rows: vec![first], right }
    }

    /// A table of two columns without headings.
    pub(crate) fn fields() -> Table {
        Table { rows: Vec::new(), right: vec![false, false] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// Adds a row to [`Table::fields`].
    pub(crate) fn field(&mut self, name: &str, value: impl Into<String>) {
        self.row([name.to_owned(), value.into()]);
    }

    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            self.rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                if !line.is_empty() || cell.is_empty() && *width > 0 {
                    line.push_str("  ");
                }
                let gap = " ".repeat(width - cell.chars().count());
                line.push_str(&if *right { format!("{gap}{cell}") } else { format!("{cell}{gap}") });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["QUEUE", ">READY"]);
        table.row(["emails".to_owned(), "7".to_owned()]);
        table.row(["a".to_owned(), "12345678".to_owned()]);
        assert_eq!(table.render(), "QUEUE      READY\nemails         7\na       12345678\n");
        let mut table = Table::fields();
        table.field("name", "w\nstate  \u{1b}[8mhidden");
        assert_eq!(table.render(), "name  w state  \u{fffd}[8mhidden\n");
    }
}
