//! Counts that repeat exactly: instructions under callgrind, and allocations.
//!
//! Each row runs in a child of its own under `valgrind --tool=callgrind`, which counts only while the
//! function that takes the steps runs: starting the process and filling queues are not in the figure.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use sluice_alloc_count::Mode;

use crate::measure::{COUNTED_FUNCTION, round};
use crate::rows::{ROWS, Row, find};
use crate::stats::per;

/// Under callgrind a program is some 50 times slower: rounds are shorter by this.
const DIVISOR: u64 = 25;

/// Runs one row for a given number of steps and prints what it took from the allocator: what runs under
/// callgrind.
///
/// # Errors
/// A name that is none of a row, or steps that do not move what they should.
pub fn run_row(name: &str, steps: u64) -> Result<Value, String> {
    let row = find(name)?;
    let (_, counted) = round(&row, steps, Mode::Count)?;
    Ok(json!({ "allocs": counted.allocations, "bytes": counted.bytes }))
}

/// Counts every row, or those named. `child` gives the command that takes so many steps of a row by
/// [`run_row`], in this program.
///
/// # Errors
/// A name that is none of a row, valgrind that is missing, or a row that fails under it.
pub fn run(names: &[String], child: impl Fn(&str, u64) -> Command + Sync) -> Result<Value, String> {
    let rows: Vec<Row> = match names {
        [] => ROWS.to_vec(),
        _ => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    // One child for each processor: what is counted does not depend on what else runs.
    let lanes = thread::available_parallelism().map_or(1, NonZero::get);
    let (next, counted) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let count_rest = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            eprintln!("counting {}", row.name);
            let figures = count(row, &child)?;
            counted.lock().unwrap_or_else(PoisonError::into_inner).insert(row.name, figures);
        }
        Ok::<(), String>(())
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(count_rest)).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| "a count panicked".to_owned())?)
    })?;
    Ok(json!(*counted.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn count(row: &Row, child: impl Fn(&str, u64) -> Command) -> Result<Value, String> {
    let steps = row.steps(DIVISOR);
    let child = child(row.name, steps);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{COUNTED_FUNCTION}*"))
        .arg(child.get_program())
        .args(child.get_args())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            format!("cannot run valgrind: {error}; install it (Debian: apt-get install valgrind)")
        })?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("row {} failed under callgrind with {}:\n{said}", row.name, output.status));
    }
    let instructions = collected(&said).ok_or_else(|| format!("callgrind told no count:\n{said}"))?;
    if instructions == 0 {
        return Err(format!(
            "callgrind did not find {COUNTED_FUNCTION}: is this program stripped of its symbols?"
        ));
    }
    let printed: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("row {}: {error}", row.name))?;
    let messages = steps * row.messages;
    let number = |key: &str| {
        let total =
            printed[key].as_u64().ok_or_else(|| format!("row {}: no {key:?} in {printed}", row.name))?;
        Ok::<f64, String>(thousandths(per(total as f64, messages)))
    };
    Ok(json!({
        "instructions": per(instructions as f64, messages).round(),
        "allocs": number("allocs")?,
        "bytes": number("bytes")?,
    }))
}

fn thousandths(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// The figure of `==123== Collected : 456`.
fn collected(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123456\n"), Some(123_456));
        assert_eq!(collected("==7== Command: x\n"), None);
    }
}
