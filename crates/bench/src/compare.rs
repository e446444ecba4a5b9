//! `sluice bench compare OLD NEW`: what changed between two files of figures, and whether too much did.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Outcome;
use super::table::{Table, figure};

/// Changes smaller than this are not held against a row, however large their percentage: a row that allocates
/// 0.01 times a message may come to 0.02 by one table that grew earlier.
const SLACK: [(&str, f64); 3] = [("instructions", 10.0), ("allocs", 0.05), ("bytes", 16.0)];

/// Compares two files that `sluice bench ... --json` or `sluice bench engine --counts` wrote.
#[derive(clap::Args, Debug)]
pub struct CompareArgs {
    /// Results to compare with: a file of `sluice bench ... --json` or `sluice bench engine --counts`.
    old: PathBuf,
    /// New results, in the same form.
    new: PathBuf,
    /// Fail (exit code 1) when a figure is worse by more than this percentage.
    #[arg(long, value_name = "PERCENT")]
    fail_over: Option<f64>,
    /// Figures that can fail: `counts` (instructions, allocations, bytes), which repeat exactly, or `all`,
    /// with times.
    #[arg(long, value_enum, default_value = "counts")]
    fail_on: FailOn,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum FailOn {
    Counts,
    All,
}

/// One figure in both files.
#[derive(Clone, PartialEq, Debug)]
struct Change {
    name: String,
    old: Option<f64>,
    new: Option<f64>,
    /// Positive: grew.
    percent: Option<f64>,
    too_much: bool,
}

pub(super) fn run(args: &CompareArgs) -> Result<Outcome, String> {
    let changes = compare(args)?;
    let of_machines: Vec<Value> = changes.iter().map(to_json).collect();
    Ok(Outcome {
        text: to_text(&changes, args.fail_over.unwrap_or_default()),
        json: json!({ "changes": of_machines }),
        passed: !changes.iter().any(|change| change.too_much),
    })
}

fn compare(args: &CompareArgs) -> Result<Vec<Change>, String> {
    if args.fail_over.is_some_and(|percent| percent.is_nan() || percent < 0.0) {
        return Err("--fail-over: expected a percentage of 0 or more, as in --fail-over 15".to_owned());
    }
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    Ok(changes(&old, &new, args.fail_over, args.fail_on))
}

fn read(path: &Path) -> Result<BTreeMap<String, f64>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        format!("{} is not JSON as `sluice bench ... --json` prints it: {error}", path.display())
    })?;
    let mut figures = BTreeMap::new();
    collect("", &value, &mut figures);
    if figures.is_empty() {
        return Err(format!(
            "{} holds no figures: expected what `sluice bench ... --json` prints",
            path.display()
        ));
    }
    Ok(figures)
}

/// Every number, under the names that lead to it. What the machine is, is no figure.
fn collect(name: &str, value: &Value, figures: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => {
            figures.insert(name.to_owned(), number.as_f64().unwrap_or_default());
        }
        Value::Object(fields) => {
            for (field, value) in fields.iter().filter(|(field, _)| *field != "about" && *field != "checks") {
                let inner = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                collect(&inner, value, figures);
            }
        }
        _ => {}
    }
}

fn changes(
    old: &BTreeMap<String, f64>,
    new: &BTreeMap<String, f64>,
    fail_over: Option<f64>,
    fail_on: FailOn,
) -> Vec<Change> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let (old, new) = (old.get(name).copied(), new.get(name).copied());
        let percent = percent(old, new);
        let judged = slack(name).is_some() || fail_on == FailOn::All;
        let too_much = fail_over.is_some_and(|limit| judged && is_worse(name, old, new, limit));
        Change { name: name.clone(), old, new, percent, too_much }
    };
    names.into_iter().map(change).collect()
}

fn percent(old: Option<f64>, new: Option<f64>) -> Option<f64> {
    match (old?, new?) {
        (0.0, 0.0) => Some(0.0),
        (0.0, _) => None,
        (old, new) => Some((new - old) / old.abs() * 100.0),
    }
}

/// A figure that is gone is worse, else a row could be dropped unseen; one that is new has nothing to be held
/// against.
fn is_worse(name: &str, old: Option<f64>, new: Option<f64>, limit_percent: f64) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_some() };
    let growth = if more_is_better(name) { old - new } else { new - old };
    growth > old.abs() * limit_percent / 100.0 && growth > slack(name).unwrap_or(0.0)
}

/// The slack of a count; `None` for figures that do not repeat exactly.
fn slack(name: &str) -> Option<f64> {
    let last = name.rsplit('.').next()?;
    SLACK
        .iter()
        .find(|(kind, _)| last == *kind || last.ends_with(&format!("_{kind}")))
        .map(|(_, slack)| *slack)
}

fn more_is_better(name: &str) -> bool {
    name.ends_with("per_s")
}

fn reason(change: &Change, limit_percent: f64) -> String {
    match (change.percent, change.new) {
        (Some(percent), _) => format!("worse by {:.1} %, allowed are {limit_percent} %", percent.abs()),
        (None, Some(_)) => "was 0 and is no longer".to_owned(),
        (None, None) => "is missing in the new file".to_owned(),
    }
}

fn to_json(change: &Change) -> Value {
    json!({
        "name": change.name, "old": change.old, "new": change.new, "percent": change.percent,
        "too_much": change.too_much,
    })
}

fn to_text(changes: &[Change], limit_percent: f64) -> String {
    let mut text = to_table(changes).render();
    for change in changes.iter().filter(|change| change.too_much) {
        text.push_str(&format!("FAILED: {}: {}\n", change.name, reason(change, limit_percent)));
    }
    text
}

fn to_table(changes: &[Change]) -> Table {
    let mut table = Table::new(&["figure", "old", "new", "change"]);
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
    for change in changes {
        let percent = change.percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1} %"));
        table.row(vec![change.name.clone(), cell(change.old), cell(change.new), percent]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(value: Value) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        collect("", &value, &mut figures);
        figures
    }

    fn too_much(old: Value, new: Value, fail_on: FailOn) -> Vec<String> {
        let changes = changes(&figures(old), &figures(new), Some(15.0), fail_on);
        changes.into_iter().filter(|change| change.too_much).map(|change| change.name).collect()
    }

    #[test]
    fn every_number_has_a_name() {
        let value = json!({ "about": { "cores": 2 }, "engine.send_ns": 5, "rows": { "send": { "ns": 7, "x": "y" } } });
        assert_eq!(
            figures(value),
            BTreeMap::from([("engine.send_ns".to_owned(), 5.0), ("rows.send.ns".to_owned(), 7.0)])
        );
    }

    #[test]
    fn counts_that_grow_fail_and_times_do_not() {
        let old = json!({ "send": { "instructions": 1000, "allocs": 1, "bytes": 100, "ns": 100 } });
        let new = json!({ "send": { "instructions": 1151, "allocs": 1.2, "bytes": 120, "ns": 900 } });
        assert_eq!(
            too_much(old.clone(), new, FailOn::Counts),
            ["send.allocs", "send.bytes", "send.instructions"]
        );
        let within = json!({ "send": { "instructions": 1149, "allocs": 1.1, "bytes": 114, "ns": 900 } });
        assert!(too_much(old.clone(), within.clone(), FailOn::Counts).is_empty());
        assert_eq!(too_much(old, within, FailOn::All), ["send.ns"]);
    }

    #[test]
    fn nearly_nothing_may_double() {
        let (old, new) =
            (json!({ "a.allocs": 0.01, "b.allocs": 0 }), json!({ "a.allocs": 0.02, "b.allocs": 0.04 }));
        assert!(too_much(old, new, FailOn::Counts).is_empty());
        assert_eq!(
            too_much(json!({ "b.allocs": 0 }), json!({ "b.allocs": 1 }), FailOn::Counts),
            ["b.allocs"]
        );
    }

    #[test]
    fn a_missing_row_fails_and_a_new_one_does_not() {
        let (one, two) = (json!({ "a.allocs": 1 }), json!({ "a.allocs": 1, "b.allocs": 1 }));
        assert_eq!(too_much(two.clone(), one.clone(), FailOn::Counts), ["b.allocs"]);
        assert!(too_much(one, two, FailOn::Counts).is_empty());
    }

    #[test]
    fn rates_are_worse_when_they_fall() {
        let (slow, fast) = (json!({ "queue.send_per_s": 100 }), json!({ "queue.send_per_s": 200 }));
        assert_eq!(too_much(fast.clone(), slow.clone(), FailOn::All), ["queue.send_per_s"]);
        assert!(too_much(slow, fast, FailOn::All).is_empty());
    }
}
