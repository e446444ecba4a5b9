//! Limits of the system: open files, memory, processors, connections that wait.
//!
//! Huge pages are no concern: the server turns them off for itself (`serve/pages.rs`).

use std::fs;
use std::path::PathBuf;

use super::finding::Finding;
use crate::config::Config;
use crate::serve::open_files;
use crate::terminal::format::size;

/// Memory of a server beside the buffers that are set: the program, threads, and a small index.
const BASE_BYTES: u64 = 128 << 20;
/// Connections that may wait to be accepted, below which a warning is given.
const BACKLOG_MIN: u64 = 1_024;

/// Limits of this process and its machine; `None`: the system does not tell, or there is none.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Limits {
    /// Open files that a process may have at most.
    pub(super) files: Option<u64>,
    /// Memory of the machine, in bytes.
    pub(super) memory: Option<u64>,
    /// Memory of this process's control group, in bytes.
    pub(super) group_memory: Option<u64>,
    /// Processors that this process may use.
    pub(super) processors: Option<u64>,
    /// Connections that may wait to be accepted (`net.core.somaxconn`).
    pub(super) backlog: Option<u64>,
}

impl Limits {
    /// The limits of this process.
    pub(super) fn of_process() -> Limits {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let groups = text("/proc/self/cgroup");
        let of_groups = memory_files(&groups)
            .into_iter()
            .filter_map(|path| fs::read_to_string(path).ok().and_then(|text| bytes_of_group(&text)));
        Limits {
            files: open_files::hard_limit(),
            memory: memory_total(&text("/proc/meminfo")),
            group_memory: of_groups.min(),
            processors: std::thread::available_parallelism().ok().map(|it| it.get() as u64),
            backlog: text("/proc/sys/net/core/somaxconn").trim().parse().ok(),
        }
    }
}

/// Bytes of the line `MemTotal` (proc(5), `/proc/meminfo`).
fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// The files with the limit of memory of the groups of a process (cgroups(7)) and of those above them.
fn memory_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = PathBuf::from(group);
        if group.components().any(|part| part == std::path::Component::ParentDir) {
            continue;
        }
        // In a container the own group is the root of what is mounted.
        files.extend(
            group
                .ancestors()
                .map(|above| PathBuf::from(root).join(above.strip_prefix("/").unwrap_or(above)).join(name)),
        );
    }
    files
}

/// Bytes in a file of a group; `max`, and the largest page-aligned number of version 1, are no limit.
fn bytes_of_group(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().filter(|bytes| *bytes < i64::MAX as u64 - (1 << 20))
}

/// The findings about these limits under a configuration.
pub(super) fn judge(limits: &Limits, config: &Config) -> Vec<Finding> {
    let checks = [files(limits, config), memory(limits, config), processors(limits, config), backlog(limits)];
    checks.into_iter().collect()
}

fn files(limits: &Limits, config: &Config) -> Finding {
    const CHECK: &str = "open_files";
    let Some(limit) = limits.files else { return Finding::ok(CHECK, "no limit") };
    let wanted = config.http_connections.as_usize();
    let allowed = open_files::connections_beside_journals(wanted, limit, config.shards.as_u32());
    if allowed < wanted {
        return Finding::warning(
            CHECK,
            format!(
                "{limit}, which leave room for {allowed} connections instead of `http.connections`, {wanted}"
            ),
            "raise the limit: LimitNOFILE= of systemd, --ulimit nofile= of Docker, or /etc/security/limits.conf",
        );
    }
    Finding::ok(CHECK, format!("{limit}: enough for {wanted} connections"))
}

/// Bytes that buffers of a server with these settings may take.
fn buffers(config: &Config) -> u64 {
    let shards = u64::from(config.shards.as_u32());
    let parts = [
        BASE_BYTES,
        config.cache.0,
        config.mailbox_bytes.0.saturating_mul(shards),
        config.http_bodies.0,
        config.http_answers.0,
    ];
    parts.into_iter().fold(0, u64::saturating_add)
}

fn memory(limits: &Limits, config: &Config) -> Finding {
    const CHECK: &str = "memory";
    let of_group = limits.group_memory.map(|bytes| (bytes, "of the control group"));
    let of_machine = limits.memory.map(|bytes| (bytes, "of the machine"));
    let Some((bytes, whose)) = of_group.into_iter().chain(of_machine).min_by_key(|(bytes, _)| *bytes) else {
        return Finding::skipped(CHECK, "the system does not tell how much there is");
    };
    let needed = buffers(config);
    let seen = format!("{} {whose}, and buffers of these settings take up to {}", size(bytes), size(needed));
    let to_do = "give the server more, or lower `cache`, `mailbox_bytes`, `http.bodies` or `http.answers`: the system \
        ends a process that takes too much";
    if BASE_BYTES.saturating_add(config.cache.0) > bytes {
        return Finding::problem(CHECK, seen, to_do);
    }
    if needed > bytes / 4 * 3 {
        return Finding::warning(CHECK, seen, to_do);
    }
    Finding::ok(CHECK, seen)
}

fn processors(limits: &Limits, config: &Config) -> Finding {
    const CHECK: &str = "processors";
    let shards = u64::from(config.shards.as_u32());
    match limits.processors {
        None => Finding::skipped(CHECK, "the system does not tell how many there are"),
        Some(count) if shards > count => Finding::warning(
            CHECK,
            format!("{count}, for {shards} shards, each of which has a thread"),
            "give the server as many processors as shards, or more",
        ),
        Some(count) => Finding::ok(CHECK, format!("{count}, with `shards = {shards}`")),
    }
}

fn backlog(limits: &Limits) -> Finding {
    const CHECK: &str = "backlog";
    match limits.backlog {
        None => Finding::skipped(CHECK, "the system does not tell net.core.somaxconn"),
        Some(backlog) if backlog < BACKLOG_MIN => Finding::warning(
            CHECK,
            format!(
                "net.core.somaxconn is {backlog}: of thousands of workers that connect at once some wait for long"
            ),
            "sysctl -w net.core.somaxconn=4096",
        ),
        Some(backlog) => Finding::ok(CHECK, format!("net.core.somaxconn is {backlog}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use crate::config::{Sources, load};

    fn config(settings: &[(&'static str, &str)]) -> Config {
        let mut sources = Sources::default();
        sources.flags.given.extend(settings.iter().map(|(key, value)| (*key, (*value).to_owned())));
        load(&sources).unwrap().config
    }

    #[test]
    fn figures_of_linux_are_read() {
        assert_eq!(memory_total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        for odd in ["", "MemTotal: many kB", "MemTotal: 16384", "MemTotal: 18446744073709551615 kB"] {
            assert_eq!(memory_total(odd), None, "{odd}");
        }
        let shown = |groups: &str| -> Vec<String> {
            memory_files(groups).iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(
            shown("0::/system.slice/sluice.service\n"),
            [
                "/sys/fs/cgroup/system.slice/sluice.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            shown("5:cpu,memory:/a\n4:cpu:/a\nodd\n"),
            ["/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
        assert!(shown("0::/../../etc\n").is_empty());
        assert_eq!(bytes_of_group("1048576\n"), Some(1 << 20));
        for none in ["max\n", "9223372036854771712\n", "", "-1"] {
            assert_eq!(bytes_of_group(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_too_small_is_told() {
        let (config, unknown) = (config(&[]), Limits::default());
        let level = |limits: Limits| judge(&limits, &config).iter().map(|it| it.level).max().unwrap();
        assert_eq!(level(unknown), Level::Skipped);
        for (limits, expected) in [
            (Limits { files: Some(524_288), ..unknown }, Level::Skipped),
            (Limits { files: Some(1_024), ..unknown }, Level::Warning),
            (Limits { files: Some(0), ..unknown }, Level::Warning),
            (Limits { memory: Some(64 << 30), ..unknown }, Level::Skipped),
            (Limits { memory: Some(64 << 30), group_memory: Some(64 << 20), ..unknown }, Level::Problem),
            (Limits { memory: Some(buffers(&config)), ..unknown }, Level::Warning),
            (Limits { processors: Some(0), ..unknown }, Level::Warning),
            (Limits { backlog: Some(128), ..unknown }, Level::Warning),
        ] {
            assert_eq!(level(limits), expected, "{limits:?}");
        }
        let all = Limits {
            files: Some(524_288),
            memory: Some(64 << 30),
            group_memory: None,
            processors: Some(8),
            backlog: Some(4_096),
        };
        assert_eq!(level(all), Level::Ok);
        judge(&Limits::of_process(), &config);
    }

    #[test]
    fn many_shards_need_processors() {
        let many = config(&[("shards", "64")]);
        let limits = Limits { processors: Some(2), ..Limits::default() };
        assert_eq!(processors(&limits, &many).level, Level::Warning);
    }
}
