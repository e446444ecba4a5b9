//! Signals to a worker: the first one lets running commands finish, the second one ends them.

use std::sync::Arc;

use rustix::process::Signal;
use sluice_client::Stop;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::terminal::{CliError, Out, Result};

/// Passes signals on to running commands, and tells them to end.
#[derive(Clone, Debug)]
pub(super) struct CommandSignals {
    killed: Arc<watch::Sender<Option<Signal>>>,
    passed_on: broadcast::Sender<Signal>,
}

impl CommandSignals {
    pub(super) fn new() -> CommandSignals {
        CommandSignals { killed: Arc::new(watch::Sender::new(None)), passed_on: broadcast::channel(16).0 }
    }

    /// Waits until commands are to be ended; returns the signal to send to them.
    pub(super) async fn killed(&self) -> Signal {
        let mut killed = self.killed.subscribe();
        let signal = killed.wait_for(Option::is_some).await.map(|signal| *signal);
        match signal {
            Ok(signal) => signal.unwrap_or(Signal::TERM),
            // The sender lives as long as `self`.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns the signals that are passed on unchanged.
    pub(super) fn passed_on(&self) -> broadcast::Receiver<Signal> {
        self.passed_on.subscribe()
    }
}

/// Handles signals until the task is aborted.
pub(super) fn watch(stop: Stop, kill: CommandSignals, out: Out) -> Result<JoinHandle<()>> {
    let open = |kind| signal(kind).map_err(|e| CliError::failed(format!("cannot watch for signals: {e}")));
    let mut interrupt = open(SignalKind::interrupt())?;
    let mut terminate = open(SignalKind::terminate())?;
    let mut hangup = open(SignalKind::hangup())?;
    let mut user1 = open(SignalKind::user_defined1())?;
    let mut user2 = open(SignalKind::user_defined2())?;
    Ok(tokio::spawn(async move {
        loop {
            let ending = tokio::select! {
                _ = interrupt.recv() => Signal::INT,
                _ = terminate.recv() => Signal::TERM,
                _ = hangup.recv() => Signal::HUP,
                // There may be no command that receives them.
                _ = user1.recv() => { let _ = kill.passed_on.send(Signal::USR1); continue }
                _ = user2.recv() => { let _ = kill.passed_on.send(Signal::USR2); continue }
            };
            if stop.is_stopped() {
                out.note("ending the running commands and releasing their messages");
                kill.killed.send_replace(Some(ending));
            } else {
                out.note("finishing the running commands; a second signal ends them");
                stop.stop();
            }
        }
    }))
}
