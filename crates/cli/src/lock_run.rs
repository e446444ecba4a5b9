//! `sluice lock run`: runs a command while locks are held.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sluice_client::{HeldLock, LockMode, LockRequest};
use sluice_engine::limits::LOCK_HOLDERS_MAX;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::connect::{Connection, ServerFlags};
use crate::terminal::format::quoted;
use crate::terminal::values::{duration, number};
use crate::terminal::{CliError, Out, Result};
use crate::work::own_name;

/// Longest time between the signal that ends a command whose lock is lost and SIGKILL.
const KILL_AFTER_MAX: Duration = Duration::from_secs(5);
/// Added to the number of the signal that has ended a command, as shells do.
const SIGNALLED: u8 = 128;

#[derive(Debug, Args)]
#[command(after_help = "\
The command gets these variables in its environment:
  SLUICE_LOCK_TOKEN     proof of the grant
  SLUICE_FENCING_TOKEN  number to give to other systems with each write: later
                        grants have larger ones
  SLUICE_SERVER, SLUICE_NAMESPACE, so that it can call sluice itself

Its exit code is that of `sluice lock run`; killed by a signal, 128 and its \
number. The lock is renewed until the command ends. When it is lost all the \
same, the command gets SIGTERM, then SIGKILL before the lock can be another's \
(after a tenth of --ttl, 5 s at most), and the exit code is 4, as it is when the \
lock was not free in time.

Examples:
  sluice lock run reports/nightly --wait 0 -- ./report
  sluice lock run accounts/1 accounts/2 -- ./transfer 100
  sluice lock run licences --holders 5 -- ./render
  sluice lock run setup --shared --if-absent -- ./set-up")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    locks: LocksArgs,
    /// Command with its arguments; it is not passed to a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Longest wait while others hold a lock [default: 24h].
    #[arg(long, short, value_name = "DURATION", value_parser = duration, conflicts_with = "if_absent")]
    wait: Option<Duration>,
    #[command(flatten)]
    server: ServerFlags,
}

/// The locks to acquire.
#[derive(Debug, Args)]
pub(crate) struct LocksArgs {
    /// Keys of the locks, which are acquired together or not at all.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Name of the holder, for those who look [default: machine and process].
    #[arg(long)]
    owner: Option<String>,
    /// Share the locks with others that share them.
    #[arg(long, conflicts_with = "holders")]
    shared: bool,
    /// Maximum number of holders, this one among them.
    #[arg(long, value_name = "N", value_parser = number(1u32..=u32::from(LOCK_HOLDERS_MAX)))]
    holders: Option<u32>,
    /// Take them only if nobody has one of them or waits for it, whatever the mode: without waiting.
    #[arg(long)]
    if_absent: bool,
    /// Time after which a lock ends unless it is renewed.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    ttl: Duration,
}

impl LocksArgs {
    /// The request, waiting for `wait` at most.
    pub(crate) fn request<'a>(&'a self, owner: &'a str, wait: Duration) -> LockRequest<'a> {
        let mode = match (self.shared, self.holders) {
            (true, _) => LockMode::Shared,
            (false, Some(holders)) => LockMode::Counting(holders),
            (false, None) => LockMode::Exclusive,
        };
        let keys = self.keys.iter().map(String::as_str).collect();
        let wait = if self.if_absent { Duration::ZERO } else { wait };
        LockRequest {
            keys,
            owner,
            mode,
            ttl: self.ttl,
            wait,
            if_absent: self.if_absent,
            ..LockRequest::new("")
        }
    }

    /// Name of the holder.
    pub(crate) fn owner(&self) -> String {
        self.owner.clone().unwrap_or_else(own_name)
    }
}

/// A command that runs.
struct Running {
    child: Child,
    id: Option<Pid>,
    /// True: it has a process group of its own, which gets its signals.
    is_group: bool,
}

pub(crate) async fn run(args: RunArgs, out: Out) -> Result<u8> {
    let connection = args.server.connect()?;
    let mut signals = signals()?;
    let owner = args.locks.owner();
    let request = args.locks.request(&owner, args.wait.unwrap_or(LockRequest::WAIT_MAX));
    let held = tokio::select! {
        held = connection.client.lock(&request) => held.map_err(|e| connection.error(&e))?,
        Some(signal) = signals.recv() => return Ok(code_of_signal(signal)),
    };
    let mut running = match start(&args.command, &connection, &held) {
        Ok(running) => running,
        Err(error) => {
            // Otherwise it would be held until its time is over; the error says more than that of a release.
            let _ = held.release().await;
            return Err(error);
        }
    };
    let end = tokio::select! {
        end = running.wait(&mut signals) => Some(end),
        () = held.lost() => None,
    };
    match end {
        Some(status) => {
            let status = status.map_err(|e| CliError::failed(format!("cannot wait for the command: {e}")))?;
            match (held.release().await, code(status)) {
                (Err(error), 0) if error.code() == Some("lease_lost") => {
                    Err(lost("the lock was lost before the command had ended: it was broken"))
                }
                (Err(error), code) => {
                    let why = connection.error(&error);
                    out.note(&format!("the lock could not be released: {}", why.message()));
                    Ok(code)
                }
                (Ok(()), code) => Ok(code),
            }
        }
        None => {
            // Told when a tenth of the time is left, which the command has to end by itself.
            running.end(KILL_AFTER_MAX.min(args.locks.ttl / 10)).await;
            let why = "it was broken, or could not be renewed in time";
            Err(lost(&format!("the lock was lost, and the command was ended: {why}")))
        }
    }
}

fn lost(told: &str) -> CliError {
    CliError::server("lease_lost", told, &serde_json::Value::Null)
}

fn start(command: &[OsString], connection: &Connection, held: &HeldLock) -> Result<Running> {
    let (program, args) =
        command.split_first().ok_or_else(|| CliError::usage("a command is required behind --"))?;
    // At a terminal it stays in the foreground, where it may read.
    let is_group = !std::io::stdin().is_terminal();
    let mut starting = Command::new(program);
    if is_group {
        starting.process_group(0);
    }
    for (name, value) in connection.variables() {
        match value {
            Some(value) => starting.env(name, value),
            None => starting.env_remove(name),
        };
    }
    let child = starting
        .args(args)
        .env("SLUICE_LOCK_TOKEN", &held.grant().token)
        .env("SLUICE_FENCING_TOKEN", &held.grant().fencing_token)
        .env("SLUICE_SERVER", connection.urls())
        .env("SLUICE_NAMESPACE", &connection.namespace)
        .kill_on_drop(true)
        .spawn();
    let child = child
        .map_err(|e| CliError::usage(format!("cannot start {}: {e}", quoted(&program.to_string_lossy()))))?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok(Running { child, id, is_group })
}

impl Running {
    /// Waits for the end of the command, and passes signals on to it.
    async fn wait(&mut self, signals: &mut mpsc::UnboundedReceiver<Signal>) -> std::io::Result<ExitStatus> {
        loop {
            tokio::select! {
                status = self.child.wait() => return status,
                // The terminal has sent Ctrl-C to both.
                Some(signal) = signals.recv() => if self.is_group || signal != Signal::INT {
                    self.send(signal);
                },
            }
        }
    }

    /// Ends the command, if need be by SIGKILL after a while.
    async fn end(&mut self, kill_after: Duration) {
        self.send(Signal::TERM);
        if timeout(kill_after, self.child.wait()).await.is_err() {
            self.send(Signal::KILL);
            // SIGKILL cannot be caught, so the wait ends.
            let _ = self.child.wait().await;
        }
    }

    fn send(&self, signal: Signal) {
        let Some(id) = self.id else { return };
        // It may be gone by now.
        let _ = if self.is_group { kill_process_group(id, signal) } else { kill_process(id, signal) };
    }
}

/// Signals that come to this process.
fn signals() -> Result<mpsc::UnboundedReceiver<Signal>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for (kind, passed) in [
        (SignalKind::interrupt(), Signal::INT),
        (SignalKind::terminate(), Signal::TERM),
        (SignalKind::hangup(), Signal::HUP),
        (SignalKind::quit(), Signal::QUIT),
        (SignalKind::user_defined1(), Signal::USR1),
        (SignalKind::user_defined2(), Signal::USR2),
    ] {
        let opened = signal(kind);
        let mut opened = opened.map_err(|e| CliError::failed(format!("cannot watch for signals: {e}")))?;
        let sender = sender.clone();
        tokio::spawn(async move { while opened.recv().await.is_some() && sender.send(passed).is_ok() {} });
    }
    Ok(receiver)
}

fn code(status: ExitStatus) -> u8 {
    let of_signal = || status.signal().map_or(1, |signal| u8::try_from(signal).unwrap_or(0) + SIGNALLED);
    status.code().map_or_else(of_signal, |code| u8::try_from(code).unwrap_or(1))
}

fn code_of_signal(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or(0) + SIGNALLED
}
