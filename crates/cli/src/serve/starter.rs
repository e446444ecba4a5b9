//! The process that has started a server for tests. When it is gone nobody needs the server any more, nor
//! what it has in memory: it ends at once, so that tests that are killed leave no servers behind.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::parent_id;
use std::thread;
use std::time::Duration;

use crate::terminal::{CliError, Result};

/// Time between two looks at the parent process, and at a pipe that gives no wait.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Ends this process when its parent has ended, or the other side of its stdin, if that is a pipe, is closed.
/// A stdin that is a terminal, a file or closed says nothing.
pub(super) fn end_with_it() -> Result<()> {
    let parent = parent_id();
    spawn("parent", move || {
        while parent_id() == parent {
            thread::sleep(LOOK_EVERY);
        }
        end("the process that has started it has ended");
    })?;
    let Some(mut pipe) = piped_stdin() else { return Ok(()) };
    spawn("stdin", move || {
        read_to_end(&mut pipe);
        end("its stdin was closed");
    })
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(|e| CliError::failed(format!("cannot start threads: {e}")))
}

fn end(why: &str) -> ! {
    tracing::info!("the server for tests ends: {why}");
    std::process::exit(0)
}

/// Stdin, if it is a pipe or a socket.
fn piped_stdin() -> Option<File> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let kind = stdin.metadata().ok()?.file_type();
    (kind.is_fifo() || kind.is_socket()).then_some(stdin)
}

/// Reads until the other side is closed, or fails.
fn read_to_end(pipe: &mut impl Read) {
    let mut unused = [0; 512];
    loop {
        match pipe.read(&mut unused) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK_EVERY),
            Err(_) => return,
        }
    }
}
