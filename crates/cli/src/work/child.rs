//! Runs one command for one message.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sluice_client::{Client, Delivered, Job, Payload, Settle, Stop, WorkResult};
use sluice_engine::limits::RESULT_BYTES_MAX;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::environment::variables;
use super::report::Report;
use super::signals::CommandSignals;
use crate::connect::{TRANSACTION, WORK_TRANSACTION};

/// Time between the signal that ends a command and SIGKILL.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// Time for reading the rest of stderr after a command has ended. A process that the command started may hold
/// stderr open; then the text that has arrived by then is the error.
const STDERR_AFTER: Duration = Duration::from_millis(500);
/// Time for reading the rest of a result after a command has ended.
const RESULT_AFTER: Duration = Duration::from_secs(5);
/// Maximum bytes of stderr in the history of a message.
const ERROR_BYTES: usize = 2_000;

/// Settings shared by all commands of a worker.
#[derive(Debug)]
pub(super) struct CommandSetup {
    pub(super) command: Vec<OsString>,
    pub(super) server: String,
    pub(super) namespace: String,
    /// Environment variables with which the command uses the worker's credentials; `None`: the variable is
    /// unset.
    pub(super) credentials: Vec<(&'static str, Option<OsString>)>,
    /// Begins and commits transactions, if commands run in some.
    pub(super) transactions: Option<Client>,
    pub(super) timeout: Option<Duration>,
    pub(super) reject_code: u8,
    /// True when stdout is the message's result, and its media type.
    pub(super) result: bool,
    pub(super) result_type: Option<String>,
    pub(super) kill: CommandSignals,
    pub(super) report: Report,
    /// Why the command could not be started. The worker then stops, so that no message loses its attempts.
    pub(super) cannot_start: Mutex<Option<String>>,
    pub(super) stop: Stop,
    /// Number of messages that their commands have settled beside their transactions.
    pub(super) settled_by_command: AtomicU64,
}

impl CommandSetup {
    /// Stops the worker for a reason that no message is to blame for; the first one is told.
    pub(super) fn give_up(&self, reason: String) {
        self.cannot_start.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.stop.stop();
    }
}

/// End of a run.
enum RunEnd {
    Exited(io::Result<ExitStatus>),
    TimedOut,
    /// The lease is lost, or the worker is being ended.
    Interrupted(Option<Signal>),
}

/// Runs the command once; `transaction`: the one that it stages operations in.
pub(super) async fn attempt(setup: &CommandSetup, job: &Job, transaction: Option<&str>) -> Settle {
    let checkpoint = Checkpoint::of(&job.message);
    let started =
        checkpoint.and_then(|file| Ok((start(setup, &job.message, file.as_ref(), transaction)?, file)));
    match started {
        Ok((child, _file)) => finish(setup, job, child).await,
        Err(error) => {
            let name = setup.command.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default();
            setup.give_up(format!("cannot run {name}: {error}"));
            Settle::Release { delay: None }
        }
    }
}

/// A file that holds the checkpoint for as long as the command runs.
struct Checkpoint(PathBuf);

impl Checkpoint {
    fn of(message: &Delivered) -> io::Result<Option<Checkpoint>> {
        let bytes = message.details.as_ref().and_then(|details| details.checkpoint.as_ref());
        let Some(bytes) = bytes else { return Ok(None) };
        // Other users may list the folder: the name must not reveal the receipt.
        let chance = RandomState::new().hash_one(&message.receipt);
        let path = std::env::temp_dir().join(format!("sluice-checkpoint-{}-{chance:016x}", message.id));
        // Never an existing file, which somebody else may have created; readable by the owner only.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let checkpoint = Checkpoint(path);
        file.write_all(bytes)?;
        Ok(Some(checkpoint))
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        // The command may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Starts the command in a process group of its own, so that Ctrl-C at the terminal reaches this worker only.
fn start(
    setup: &CommandSetup,
    message: &Delivered,
    checkpoint: Option<&Checkpoint>,
    transaction: Option<&str>,
) -> io::Result<Child> {
    let (program, args) = setup.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    if let Some(checkpoint) = checkpoint {
        command.env("SLUICE_CHECKPOINT_FILE", &checkpoint.0);
    }
    match transaction {
        Some(transaction) => command.env(TRANSACTION, transaction).env(WORK_TRANSACTION, transaction),
        None => command.env_remove(TRANSACTION).env_remove(WORK_TRANSACTION),
    };
    if setup.result {
        command.stdout(Stdio::piped());
    }
    for (name, value) in &setup.credentials {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
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

async fn finish(setup: &CommandSetup, job: &Job, mut child: Child) -> Settle {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let feeding = tokio::spawn(feed(child.stdin.take(), job.message.payload.clone()));
    let said = Arc::new(StderrTail::default());
    let reading = child.stderr.take().map(|stderr| tokio::spawn(pass_on(stderr, Arc::clone(&said))));
    let giving = child.stdout.take().map(|stdout| tokio::spawn(result(stdout)));
    let end = wait(setup, job, &mut child, group).await;
    if let RunEnd::TimedOut = end {
        end_group(&mut child, group, Signal::TERM).await;
    }
    if let RunEnd::Interrupted(signal) = end {
        end_group(&mut child, group, signal.unwrap_or(Signal::TERM)).await;
    }
    feeding.abort();
    match end {
        RunEnd::Interrupted(_) => Settle::Release { delay: None },
        RunEnd::TimedOut => {
            let limit = setup.timeout.unwrap_or_default();
            let said = said.when_read(reading).await;
            Settle::Nack { error: join(&format!("timed out after {limit:?}"), &said), delay: None }
        }
        RunEnd::Exited(Err(e)) => {
            Settle::Nack { error: format!("cannot wait for the command: {e}"), delay: None }
        }
        RunEnd::Exited(Ok(status)) => {
            let said = said.when_read(reading).await;
            let settle = judge(status, setup.reject_code, &said);
            match giving {
                Some(giving) if settle == Settle::Ack => with_result(setup, giving).await,
                _ => settle,
            }
        }
    }
}

/// Reads stdout to its end. Keeps one byte more than a result may have, which shows that the result is too
/// long.
async fn result(stdout: ChildStdout) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut stdout = stdout.take(RESULT_BYTES_MAX as u64 + 1);
    stdout.read_to_end(&mut bytes).await?;
    // Reads the rest, too, so that a closed pipe does not end the command.
    tokio::io::copy(&mut stdout.into_inner(), &mut tokio::io::sink()).await?;
    Ok(bytes)
}

async fn with_result(setup: &CommandSetup, giving: JoinHandle<io::Result<Vec<u8>>>) -> Settle {
    let nack = |error: String| Settle::Nack { error, delay: None };
    match timeout(RESULT_AFTER, giving).await {
        Ok(Ok(Ok(bytes))) if bytes.len() <= RESULT_BYTES_MAX => {
            Settle::AckWith(WorkResult { content_type: setup.result_type.clone(), bytes })
        }
        Ok(Ok(Ok(_))) => nack(format!("the result on stdout is over {RESULT_BYTES_MAX} bytes")),
        Ok(Ok(Err(error))) => nack(format!("cannot read the result from stdout: {error}")),
        Ok(Err(error)) => nack(format!("cannot read the result from stdout: {error}")),
        Err(_) => nack("the command has ended, but something that it started holds stdout open".to_owned()),
    }
}

async fn wait(setup: &CommandSetup, job: &Job, child: &mut Child, group: Option<Pid>) -> RunEnd {
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
            status = child.wait() => return RunEnd::Exited(status),
            () = &mut deadline => return RunEnd::TimedOut,
            () = job.lost.stopped() => return RunEnd::Interrupted(None),
            signal = setup.kill.killed() => return RunEnd::Interrupted(Some(signal)),
            Ok(signal) = passed.recv() => send(group, signal),
        }
    }
}

/// Signals the command with all processes that it started, and waits; after the grace time it sends SIGKILL.
async fn end_group(child: &mut Child, group: Option<Pid>, signal: Signal) {
    send(group, signal);
    if timeout(KILL_AFTER, child.wait()).await.is_err() {
        send(group, Signal::KILL);
        // SIGKILL cannot be caught, so the wait ends.
        let _ = child.wait().await;
    }
}

fn send(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The process group may be gone by now.
        let _ = kill_process_group(group, signal);
    }
}

/// Writes the payload to the command's stdin. A command that does not read it is no error.
async fn feed(stdin: Option<ChildStdin>, payload: Payload) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&payload.0).await;
        let _ = stdin.shutdown().await;
    }
}

/// Copies the command's stderr to the worker's, and keeps its end.
async fn pass_on(mut stderr: ChildStderr, said: Arc<StderrTail>) {
    let mut ours = tokio::io::stderr();
    let mut piece = [0u8; 4096];
    loop {
        match stderr.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                said.add(&piece[..count]);
                // If the worker's stderr is closed, the history still gets the end.
                let _ = ours.write_all(&piece[..count]).await;
                let _ = ours.flush().await;
            }
        }
    }
}

/// The end of a command's stderr, as far as it has been read.
#[derive(Debug, Default)]
struct StderrTail(Mutex<Vec<u8>>);

impl StderrTail {
    fn add(&self, piece: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(piece);
        let surplus = tail.len().saturating_sub(ERROR_BYTES);
        tail.drain(..surplus);
    }

    /// Returns the end of stderr when all has been read, or after the wait. Reading continues afterwards, so
    /// that a process left running is not stopped by a full pipe.
    async fn when_read(&self, reading: Option<JoinHandle<()>>) -> String {
        if let Some(reading) = reading {
            let _ = timeout(STDERR_AFTER, reading).await;
        }
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().trim_matches('\u{fffd}').to_owned()
    }
}

/// Maps the end of the command to a settlement, as in `sluice work --help`.
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
