//! Results of a benchmark: figures under the names that the documentation gives, tables for people, and
//! checks.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::table::{Table, figure};

/// The findings of one benchmark.
#[derive(Clone, Debug)]
pub(super) struct Report {
    bench: &'static str,
    durability: String,
    /// Security settings of the server; `None`: there is no server.
    security: Option<String>,
    figures: Vec<(String, f64)>,
    rows: Map<String, Value>,
    tables: Vec<(String, Table)>,
    notes: Vec<String>,
    checks: Vec<Check>,
}

/// Something that has to be true of what was moved.
#[derive(Clone, Debug)]
struct Check {
    what: String,
    failure: Option<String>,
}

impl Report {
    pub(super) fn new(bench: &'static str, durability: &str) -> Report {
        Report {
            bench,
            durability: durability.to_owned(),
            security: None,
            figures: Vec::new(),
            rows: Map::new(),
            tables: Vec::new(),
            notes: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Sets the security settings of the server.
    pub(super) fn secured(self, security: impl Into<String>) -> Report {
        Report { security: Some(security.into()), ..self }
    }

    /// A figure of the benchmark; its name in the JSON is `BENCH.key`.
    pub(super) fn figure(&mut self, key: &str, value: f64) {
        self.figures.push((format!("{}.{key}", self.bench), value));
    }

    /// Figures of one row of a table, for machines.
    pub(super) fn row(&mut self, name: &str, figures: Value) {
        self.rows.insert(name.to_owned(), figures);
    }

    pub(super) fn table(&mut self, title: &str, table: Table) {
        self.tables.push((title.to_owned(), table));
    }

    /// A sentence that belongs to the figures.
    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// States what was checked; `Err` says what was found instead, and fails the benchmark.
    pub(super) fn check(&mut self, what: impl Into<String>, found: Result<(), String>) {
        self.checks.push(Check { what: what.into(), failure: found.err() });
    }

    /// States that two counts are to agree, and with it the count, without which "ok: messages lost" could be
    /// misread.
    pub(super) fn check_equal(&mut self, what: impl Display, expected: u64, found: u64) {
        if expected == found {
            self.check(format!("{what}: {found}"), Ok(()));
        } else {
            self.check(what.to_string(), Err(format!("expected {expected}, found {found}")));
        }
    }

    /// True when every check held.
    pub(super) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.failure.is_none())
    }

    /// One object: the figures by their names, and `about`, `rows` and `checks`.
    pub(super) fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("about".to_owned(), self.about());
        for (key, value) in &self.figures {
            object.insert(key.clone(), json!(rounded(*value)));
        }
        object.insert("rows".to_owned(), Value::Object(self.rows.clone()));
        object.insert("notes".to_owned(), json!(self.notes));
        let checks = self.checks.iter().map(
            |check| json!({ "what": check.what, "ok": check.failure.is_none(), "failure": check.failure }),
        );
        object.insert("checks".to_owned(), checks.collect());
        Value::Object(object)
    }

    fn about(&self) -> Value {
        json!({
            "bench": self.bench,
            "version": env!("CARGO_PKG_VERSION"),
            "cores": cores(),
            "processor": processor(),
            "durability": self.durability,
            "security": self.security,
            "optimised": !cfg!(debug_assertions),
        })
    }

    /// The same, for people.
    pub(super) fn to_text(&self) -> String {
        let security = self.security.as_ref().map_or(String::new(), |security| format!("{security}, "));
        let mut text = format!(
            "sluice {} bench {}: durability {}, {security}{} cores, {}\n",
            env!("CARGO_PKG_VERSION"),
            self.bench,
            self.durability,
            cores(),
            processor(),
        );
        if cfg!(debug_assertions) {
            text.push_str("this is a debug build: build with --release for figures that mean something\n");
        }
        for (title, table) in self.tables.iter().filter(|(_, table)| !table.is_empty()) {
            text.push_str(&format!("\n{title}\n{}", table.render()));
        }
        text.push('\n');
        let mut figures = Table::new(&["figure", "value"]);
        for (key, value) in &self.figures {
            figures.row(vec![key.clone(), figure(*value)]);
        }
        text.push_str(&figures.render());
        for note in &self.notes {
            text.push_str(&format!("\nnote: {note}"));
        }
        for check in &self.checks {
            text.push_str(&match &check.failure {
                None => format!("\nok: {}", check.what),
                Some(failure) => format!("\nFAILED: {}: {failure}", check.what),
            });
        }
        text.push('\n');
        text
    }
}

/// Cores that this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// Six digits that say something: more would only be noise in a stored file.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_under_their_names() {
        let mut report = Report::new("engine", "memory");
        report.figure("send_ns", 123.456_789_1);
        report.row("send", json!({ "ns": 1 }));
        report.check_equal("all moved", 3, 3);
        let value = report.to_json();
        assert_eq!(value["engine.send_ns"], json!(123.457));
        assert_eq!(value["rows"]["send"]["ns"], json!(1));
        assert_eq!(value["about"]["durability"], json!("memory"));
        assert!(report.passed());
    }

    #[test]
    fn a_check_of_counts_tells_the_count() {
        let mut report = Report::new("crash", "os");
        report.check_equal("messages lost", 0, 0);
        assert!(report.to_text().contains("ok: messages lost: 0"));
    }

    #[test]
    fn a_failed_check_fails_the_report_and_says_why() {
        let mut report = Report::new("queue", "os");
        report.check_equal("each acked once", 3, 2);
        assert!(!report.passed());
        assert!(report.to_text().contains("FAILED: each acked once: expected 3, found 2"));
    }

    #[test]
    fn rounding_keeps_six_digits() {
        assert_eq!([1_234_567.8, 0.012_345_678, 0.0].map(rounded), [1_234_570.0, 0.012_345_7, 0.0]);
    }
}
