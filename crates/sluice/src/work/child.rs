//! One command for one message.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sluice_client::{Delivered, Job, Payload, Settle, Stop};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::environment::variables;
use super::report::Report;
use super::signals::Kill;

/// How long a command may take to end after a signal, before SIGKILL.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// How long the rest of stderr may take after a command has ended; what it left running may hold it open, and then what
/// has come by then counts.
const STDERR_AFTER: Duration = Duration::from_millis(500);
/// Bytes of stderr that go into the history of a message.
const ERROR_BYTES: usize = 2_000;

/// What all commands of a worker share.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) command: Vec<OsString>,
    pub(super) server: String,
    pub(super) namespace: String,
    pub(super) timeout: Option<Duration>,
    pub(super) reject_code: u8,
    pub(super) kill: Kill,
    pub(super) report: Report,
    /// Why the command could not be started at all; then the worker stops, so that no message loses its attempts.
    pub(super) cannot_start: Mutex<Option<String>>,
    pub(super) stop: Stop,
}

/// How a run ended.
enum End {
    Exited(io::Result<ExitStatus>),
    TimedOut,
    /// The lease is lost, or the worker is being ended.
    Interrupted(Option<Signal>),
}

/// Runs the command and says how its message is to be settled.
pub(super) async fn run(setup: Arc<Setup>, job: Job) -> Settle {
    let started = Instant::now();
    let settle = match start(&setup, &job.message) {
        Ok(child) => finish(&setup, &job, child).await,
        Err(error) => {
            let name = setup.command.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default();
            let mut reason = setup.cannot_start.lock().unwrap_or_else(PoisonError::into_inner);
            reason.get_or_insert(format!("cannot run {name}: {error}"));
            setup.stop.stop();
            Settle::Release { delay: None }
        }
    };
    setup.report.message(&job.message, &settle, started.elapsed());
    settle
}

/// The command gets a process group of its own, so that Ctrl-C at the terminal reaches this worker only.
fn start(setup: &Setup, message: &Delivered) -> io::Result<Child> {
    let (program, args) = setup.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program)
        .args(args)
        .envs(variables(message))
        .env("SLUICE_SERVER", &setup.server)
        .env("SLUICE_NAMESPACE", &setup.namespace)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn finish(setup: &Setup, job: &Job, mut child: Child) -> Settle {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let feeding = tokio::spawn(feed(child.stdin.take(), job.message.payload.clone()));
    let said = Arc::new(LastWords::default());
    let reading = child.stderr.take().map(|stderr| tokio::spawn(pass_on(stderr, Arc::clone(&said))));
    let end = wait(setup, job, &mut child, group).await;
    if let End::TimedOut = end {
        end_group(&mut child, group, Signal::TERM).await;
    }
    if let End::Interrupted(signal) = end {
        end_group(&mut child, group, signal.unwrap_or(Signal::TERM)).await;
    }
    feeding.abort();
    match end {
        End::Interrupted(_) => Settle::Release { delay: None },
        End::TimedOut => {
            let limit = setup.timeout.unwrap_or_default();
            let said = said.when_read(reading).await;
            Settle::Nack { error: join(&format!("timed out after {limit:?}"), &said), delay: None }
        }
        End::Exited(Err(e)) => {
            Settle::Nack { error: format!("cannot wait for the command: {e}"), delay: None }
        }
        End::Exited(Ok(status)) => {
            let said = said.when_read(reading).await;
            judge(status, setup.reject_code, &said)
        }
    }
}

async fn wait(setup: &Setup, job: &Job, child: &mut Child, group: Option<Pid>) -> End {
    let mut passed = setup.kill.passed_on();
    let deadline = async {
        match setup.timeout {
            Some(limit) => sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            status = child.wait() => return End::Exited(status),
            () = &mut deadline => return End::TimedOut,
            () = job.lost.stopped() => return End::Interrupted(None),
            signal = setup.kill.killed() => return End::Interrupted(Some(signal)),
            Ok(signal) = passed.recv() => send(group, signal),
        }
    }
}

/// Signals the command with all that it started, and waits; what does not end is killed.
async fn end_group(child: &mut Child, group: Option<Pid>, signal: Signal) {
    send(group, signal);
    if timeout(KILL_AFTER, child.wait()).await.is_err() {
        send(group, Signal::KILL);
        // SIGKILL cannot be refused, so this ends.
        let _ = child.wait().await;
    }
}

fn send(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The group may be gone by now.
        let _ = kill_process_group(group, signal);
    }
}

/// Writes the payload; a command need not read it.
async fn feed(stdin: Option<ChildStdin>, payload: Payload) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&payload.0).await;
        let _ = stdin.shutdown().await;
    }
}

/// Passes stderr on to ours and keeps its end.
async fn pass_on(mut stderr: ChildStderr, said: Arc<LastWords>) {
    let mut ours = tokio::io::stderr();
    let mut piece = [0u8; 4096];
    loop {
        match stderr.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                said.add(&piece[..count]);
                // If nobody reads our stderr, the history still gets the end.
                let _ = ours.write_all(&piece[..count]).await;
                let _ = ours.flush().await;
            }
        }
    }
}

/// The end of a command's stderr, as far as it has come.
#[derive(Debug, Default)]
struct LastWords(Mutex<Vec<u8>>);

impl LastWords {
    fn add(&self, piece: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(piece);
        let surplus = tail.len().saturating_sub(ERROR_BYTES);
        tail.drain(..surplus);
    }

    /// What was said when all has been read, or for as long as is waited for it. Reading goes on after that, so that
    /// what is left running is not stopped by a full pipe.
    async fn when_read(&self, reading: Option<JoinHandle<()>>) -> String {
        if let Some(reading) = reading {
            let _ = timeout(STDERR_AFTER, reading).await;
        }
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().trim_matches('\u{fffd}').to_owned()
    }
}

/// The table of `sluice work --help`.
fn judge(status: ExitStatus, reject_code: u8, said: &str) -> Settle {
    match (status.code(), status.signal()) {
        (Some(0), _) => Settle::Ack,
        (Some(code), _) if code == i32::from(reject_code) => {
            Settle::Reject { error: join(&format!("exit code {code}"), said) }
        }
        (Some(code), _) => Settle::Nack { error: join(&format!("exit code {code}"), said), delay: None },
        (None, signal) => {
            let signal = signal.map_or_else(|| "an unknown signal".to_owned(), |s| format!("signal {s}"));
            Settle::Nack { error: join(&format!("killed by {signal}"), said), delay: None }
        }
    }
}

fn join(what: &str, said: &str) -> String {
    if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_decides() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(judge(exit(0), 65, "x"), Settle::Ack);
        assert_eq!(judge(exit(65), 65, "bad"), Settle::Reject { error: "exit code 65: bad".into() });
        assert_eq!(judge(exit(3), 65, ""), Settle::Nack { error: "exit code 3".into(), delay: None });
        let killed = ExitStatus::from_raw(9);
        assert_eq!(judge(killed, 65, ""), Settle::Nack { error: "killed by signal 9".into(), delay: None });
    }
}
