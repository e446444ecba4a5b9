//! Open files: each connection is one, and so is each segment that is read or written.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files reserved for the journal of each shard, which keeps no more of them open at a time.
const FILES_PER_SHARD: u64 = 144;
/// Files reserved for the rest: refused connections, backups, the configuration.
const FILES_OTHER: u64 = 96;
/// Assumed number of open files at the start if the system does not say.
const OPEN_AT_START: u64 = 64;

/// Raises the soft limit of open files to the hard limit; the usual soft limit of 1,024 is for programs that
/// use `select`.
pub(super) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_none() || limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

/// Returns the limit of connections, lowered if the limit of open files does not allow `wanted` beside the
/// journals: a refused connection does less harm than a segment that cannot be opened.
pub(super) fn connections_max(wanted: usize, shards: u32) -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return wanted };
    let allowed = within(wanted, limit, open_files(), shards);
    if allowed < wanted {
        tracing::warn!(
            "http.connections is {wanted}, but the limit of open files, {limit}, leaves room for {allowed} connections: \
            no more are accepted. Raise the limit (ulimit -n, or LimitNOFILE of systemd)"
        );
    }
    allowed
}

/// The hard limit of open files of this process; `None`: there is none.
pub(crate) fn hard_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Number of connections, of those `wanted`, that a server may have at its start under a limit of open files.
pub(crate) fn connections_beside_journals(wanted: usize, limit: u64, shards: u32) -> usize {
    within(wanted, limit, OPEN_AT_START, shards)
}

fn within(wanted: usize, limit: u64, open: u64, shards: u32) -> usize {
    // At most half of a small limit, or nobody could connect and drain the queues.
    let journals = (u64::from(shards) * FILES_PER_SHARD).min(limit / 2);
    let left = limit.saturating_sub(open + journals + FILES_OTHER);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1)
}

fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(OPEN_AT_START, |files| files.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_the_journals_their_files() {
        assert_eq!(within(4_096, 524_288, 30, 1), 4_096);
        assert_eq!(within(4_096, 4_096, 44, 1), 4_096 - 44 - 144 - 96);
        assert_eq!(within(4_096, 1_024, 44, 6), 1_024 - 44 - 512 - 96);
        assert_eq!(within(100, 1_024, 44, 1), 100);
        assert_eq!(within(4_096, 64, 44, 1), 1);
    }
}
