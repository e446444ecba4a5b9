//! This program as a process: starting it once more, and what a process has used, as Linux tells in `/proc`.

use std::fs;
use std::process::Command;
use std::time::Duration;

/// The program that runs, to be started once more.
///
/// # Errors
/// Its file cannot be found.
pub(super) fn this_program() -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(Command::new(program))
}

/// Figures of one process.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Usage {
    /// Processor time of all its threads, in user and kernel mode; a hundredth of a second fine.
    pub(super) cpu: Duration,
    /// Memory that it has at the moment, in bytes.
    pub(super) rss_bytes: u64,
    /// The most memory that it had since it started, or since [`reset_peak`], in bytes.
    pub(super) peak_rss_bytes: u64,
}

/// Looks at a process.
pub(super) fn usage(pid: u32) -> Result<Usage, String> {
    let stat = read(pid, "stat")?;
    let status = read(pid, "status")?;
    let wrong =
        |file: &str| format!("/proc/{pid}/{file} is not as Linux writes it: this benchmark needs Linux");
    let ticks = cpu_ticks(&stat).ok_or_else(|| wrong("stat"))?;
    Ok(Usage {
        cpu: Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64),
        rss_bytes: kib(&status, "VmRSS:").ok_or_else(|| wrong("status"))? << 10,
        peak_rss_bytes: kib(&status, "VmHWM:").ok_or_else(|| wrong("status"))? << 10,
    })
}

/// Lets the peak start anew from what the process has now.
pub(super) fn reset_peak(pid: u32) -> Result<(), String> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").map_err(|error| format!("cannot write {path}: {error}"))
}

/// Bytes in MiB, in which all figures of memory and disk are told.
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn read(pid: u32, file: &str) -> Result<String, String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))
}

/// User and system time: fields 14 and 15, counted behind the name, which may hold spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

fn kib(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_shifts_nothing() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 700 300 0 0 20 0 1 0 5 6 7";
        assert_eq!(cpu_ticks(stat), Some(1_000));
    }

    #[test]
    fn this_process_has_memory() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.rss_bytes > 100_000 && usage.peak_rss_bytes >= usage.rss_bytes);
    }

    #[test]
    fn a_process_that_is_gone_is_named() {
        assert!(usage(u32::MAX).unwrap_err().contains("/proc/4294967295/stat"));
    }
}
