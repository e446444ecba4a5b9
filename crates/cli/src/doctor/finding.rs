//! A finding of a check, and a report of all findings.

use serde::Serialize;

use crate::terminal::format::counted;
use crate::terminal::output::Table;

/// Exit code when the worst finding is a warning.
const WARNED: u8 = 1;
/// Exit code when the worst finding is a problem.
const FOUND: u8 = sluice_calls::codes::exit::SERVER;

/// The weight of a finding, from the lightest to the heaviest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Nothing is wrong.
    Ok,
    /// The check does not apply, or cannot be made here.
    Skipped,
    /// The server works, and something should be done.
    Warning,
    /// The server does not start or work as it is, or data are at risk.
    Problem,
}

/// The result of one check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Finding {
    /// Name of the check: words with `_` between them.
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    /// State that was found, as a sentence without a full stop.
    pub(crate) seen: String,
    /// Advice, as a sentence without a full stop; `None`: there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to_do: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, seen: impl Into<String>) -> Finding {
        Finding { check, level: Level::Ok, seen: seen.into(), to_do: None }
    }

    pub(crate) fn skipped(check: &'static str, seen: impl Into<String>) -> Finding {
        Finding { check, level: Level::Skipped, seen: seen.into(), to_do: None }
    }

    pub(crate) fn warning(check: &'static str, seen: impl Into<String>, to_do: impl Into<String>) -> Finding {
        Finding { check, level: Level::Warning, seen: seen.into(), to_do: Some(to_do.into()) }
    }

    pub(crate) fn problem(check: &'static str, seen: impl Into<String>, to_do: impl Into<String>) -> Finding {
        Finding { check, level: Level::Problem, seen: seen.into(), to_do: Some(to_do.into()) }
    }

    /// A finding from a message that says what is wrong and, behind its last colon, what to do, as errors of
    /// the server and the problems of a cluster do.
    pub(crate) fn told(check: &'static str, level: Level, message: &str) -> Finding {
        let (seen, to_do) = match message.rsplit_once(": ") {
            Some((seen, to_do)) => (seen, Some(to_do.to_owned())),
            None => (message, None),
        };
        Finding { check, level, seen: seen.to_owned(), to_do }
    }
}

/// The findings of all checks, in the order in which they were made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Level of the worst finding.
    pub(crate) worst: Level,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn of(findings: Vec<Finding>) -> Report {
        let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
        // A check that was left out is nothing that was found.
        let worst = if worst == Level::Skipped { Level::Ok } else { worst };
        Report { worst, findings }
    }

    /// Exit code by the worst finding.
    pub(crate) fn exit(&self) -> u8 {
        match self.worst {
            Level::Ok | Level::Skipped => 0,
            Level::Warning => WARNED,
            Level::Problem => FOUND,
        }
    }

    /// The findings as a table, each advice below its finding, and a line that counts them.
    pub(crate) fn to_text(&self) -> String {
        let mut table = Table::new(&["", "", ""]);
        for Finding { check, level, seen, to_do } in &self.findings {
            let mark = match level {
                Level::Ok => "ok",
                Level::Skipped => "-",
                Level::Warning => "WARNING",
                Level::Problem => "PROBLEM",
            };
            table.row([mark.to_owned(), check.replace('_', " "), seen.clone()]);
            if let Some(to_do) = to_do {
                table.row([String::new(), String::new(), to_do.clone()]);
            }
        }
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count() as u64;
        let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
        let summary = match self.worst {
            Level::Ok | Level::Skipped => "nothing is wrong".to_owned(),
            _ => format!("{}, {}", counted(problems, "problem"), counted(warnings, "warning")),
        };
        // The headings are an empty row.
        format!("{}\n{summary}\n", table.render().trim_start_matches('\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let ok = Finding::ok("clock", "as it should be");
        let skipped = Finding::skipped("server", "none was asked");
        let warning = Finding::warning("disk_speed", "slow", "take another");
        let problem = Finding::problem("port", "taken", "take another");
        for (findings, exit) in [
            (vec![], 0),
            (vec![ok.clone(), skipped], 0),
            (vec![warning.clone(), ok.clone()], 1),
            (vec![ok, problem, warning], 8),
        ] {
            assert_eq!(Report::of(findings).exit(), exit);
        }
    }

    #[test]
    fn advice_stands_below_its_finding() {
        let found = vec![
            Finding::ok("clock", "as it should be"),
            Finding::warning("disk_speed", "slow\u{1b}[2J\nand odd", "take another"),
        ];
        let text = Report::of(found).to_text();
        assert_eq!(
            text,
            "ok       clock       as it should be\n\
             WARNING  disk speed  slow\u{fffd}[2J and odd\n                       take another\n\n\
             0 problems, 1 warning\n"
        );
    }

    #[test]
    fn a_message_is_parted_at_its_last_colon() {
        let told = Finding::told("cluster", Level::Warning, "node 2 at a:7070 is silent: start it");
        assert_eq!(
            (told.seen.as_str(), told.to_do.as_deref()),
            ("node 2 at a:7070 is silent", Some("start it"))
        );
        assert_eq!(Finding::told("cluster", Level::Problem, "all is lost").to_do, None);
    }
}
