//! Tables for people: columns as wide as they must be, numbers to the right.

/// Rows of cells under a head.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The text; the first column stands to the left, the others, which hold figures, to the right.
    pub(super) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                line.push_str(if column == 0 { "" } else { "  " });
                line.push_str(&if column == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A figure with three to four digits that say something, and thousands set apart.
pub(super) fn figure(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if size < 1.0 {
        format!("{value:.3}")
    } else if size < 10.0 {
        format!("{value:.2}")
    } else if size < 100.0 {
        format!("{value:.1}")
    } else {
        thousands(value.round() as i64)
    }
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_to_the_right() {
        let mut table = Table::new(&["row", "ns"]);
        table.row(vec!["send".to_owned(), figure(1234.0)]);
        table.row(vec!["e2e".to_owned(), figure(7.126)]);
        assert_eq!(table.render(), "row      ns\nsend  1,234\ne2e    7.13\n");
    }

    #[test]
    fn figures_keep_the_digits_that_matter() {
        let figures = [0.0, 0.01234, 1.5, 99.94, 100.0, 1_000_000.4, -1234.0].map(figure);
        assert_eq!(figures, ["0", "0.012", "1.50", "99.9", "100", "1,000,000", "-1,234"]);
    }
}
