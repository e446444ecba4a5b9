//! Open files: many connections need as many, on both sides.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that a process needs besides its connections: the journal's, and some to spare.
const FILES_OTHER: u64 = 512;

/// Sees to it that this process, and a server that it starts, may have so many connections.
///
/// # Errors
/// That the system does not allow as many; named are the limit and what helps.
pub(super) fn allow_connections(connections: u64) -> Result<(), String> {
    let mut raised = getrlimit(Resource::Nofile);
    raised.current = raised.maximum;
    // Where this is refused, the limit is judged as it was.
    let _ = setrlimit(Resource::Nofile, raised);
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let needed = connections + FILES_OTHER;
    if limit >= needed {
        return Ok(());
    }
    Err(format!(
        "{connections} connections need {needed} open files, and this process may have {limit}: raise the hard limit \
         (ulimit -Hn, or LimitNOFILE of systemd), or take at most {} connections",
        limit.saturating_sub(FILES_OTHER)
    ))
}
