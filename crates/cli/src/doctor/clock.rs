//! The clock of this machine: whether the system keeps it right, and how it compares with files and servers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use super::finding::Finding;
use crate::terminal::format::length;

const CHECK: &str = "clock";
/// Difference to a server's clock, in milliseconds, from which one of both is wrong.
const APART_MS_MAX: u64 = 1_000;
/// Time by which a file may be newer than now: some file systems round.
const NEWER_MAX: Duration = Duration::from_secs(60);
/// Marker of systemd-timesyncd for a clock that was synchronised.
const TIMESYNC: &str = "/run/systemd/timesync/synchronized";
const SET_IT: &str = "run a time service, such as chrony or systemd-timesyncd";

/// State of the synchronisation, as `timedatectl` tells it; `None`: the system does not tell.
pub(super) fn synchronised() -> Option<bool> {
    if Path::new(TIMESYNC).exists() {
        return Some(true);
    }
    let shown = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    shown.status.success().then(|| read(&String::from_utf8_lossy(&shown.stdout)))?
}

fn read(shown: &str) -> Option<bool> {
    match shown.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// The finding about the synchronisation.
pub(super) fn judge_synchronised(synchronised: Option<bool>) -> Finding {
    match synchronised {
        Some(true) => Finding::ok(CHECK, "the system keeps it synchronised"),
        Some(false) => Finding::warning(
            CHECK,
            "the system does not synchronise it, so that delays, schedules and expiries follow a clock that drifts",
            SET_IT,
        ),
        None => Finding::skipped(CHECK, "the system does not tell whether it is synchronised (timedatectl)"),
    }
}

/// The newest time of change of the files in a data directory; `None`: there are none.
pub(super) fn newest(data_dir: &Path) -> Option<SystemTime> {
    let folders = [data_dir.to_owned(), data_dir.join("shard-000")];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok()).max()
}

/// The finding about files that were written later than now; `None`: there are none.
pub(super) fn judge_newest(newest: Option<SystemTime>, now: SystemTime) -> Option<Finding> {
    let ahead = newest?.duration_since(now).ok().filter(|ahead| *ahead > NEWER_MAX)?;
    let ahead = length(u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX));
    Some(Finding::problem(
        CHECK,
        format!("it is behind: a file in the data directory was written {ahead} later than now"),
        format!("set the clock right before the server starts, and {SET_IT}"),
    ))
}

/// The finding about the clock of a server, which told `server_ms` between two readings of the own clock.
pub(super) fn judge_server(before_ms: u64, server_ms: u64, after_ms: u64) -> Finding {
    let apart_ms = before_ms.saturating_sub(server_ms).max(server_ms.saturating_sub(after_ms));
    if apart_ms <= APART_MS_MAX {
        return Finding::ok(CHECK, "the server's clock and this one agree");
    }
    let place = if server_ms > after_ms { "ahead of" } else { "behind" };
    Finding::warning(
        CHECK,
        format!("the server's clock is {} {place} this one", length(apart_ms)),
        format!("set the clock right that is wrong, and {SET_IT} on both machines"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_clock_that_is_not_kept_right_is_told() {
        for (shown, level) in [
            ("yes\n", Level::Ok),
            ("no\n", Level::Warning),
            ("", Level::Skipped),
            ("n/a\u{1b}", Level::Skipped),
        ] {
            assert_eq!(judge_synchronised(read(shown)).level, level, "{shown:?}");
        }
    }

    #[test]
    fn files_from_the_future_show_a_clock_that_is_behind() {
        let now = SystemTime::now();
        assert_eq!(judge_newest(None, now), None);
        assert_eq!(judge_newest(Some(now + NEWER_MAX), now), None);
        assert_eq!(judge_newest(Some(SystemTime::UNIX_EPOCH), now), None);
        let found = judge_newest(Some(now + Duration::from_secs(7_200)), now).unwrap();
        assert!(found.level == Level::Problem && found.seen.contains("2h later"), "{found:?}");
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest(folder.path()), None);
        fs::write(folder.path().join("a"), "").unwrap();
        assert!(newest(folder.path()).is_some());
        assert_eq!(newest(&folder.path().join("nowhere")), None);
    }

    #[test]
    fn the_time_of_an_answer_is_no_difference_of_clocks() {
        for (before, server, after, level) in [
            (5_000, 5_000, 5_000, Level::Ok),
            (5_000, 9_000, 60_000, Level::Ok),
            (5_000, 4_000, 5_001, Level::Ok),
            (5_000, 3_999, 5_001, Level::Warning),
            (5_000, 6_003, 5_002, Level::Warning),
            (5_000, 0, 5_000, Level::Warning),
            (0, u64::MAX, 0, Level::Warning),
        ] {
            assert_eq!(judge_server(before, server, after).level, level, "{server}");
        }
        assert!(judge_server(0, 5_000, 0).seen.contains("5s ahead"));
        assert!(judge_server(5_000, 0, 5_000).seen.contains("5s behind"));
    }
}
