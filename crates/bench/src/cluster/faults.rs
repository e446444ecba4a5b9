//! Faults of the node that leads, and the order to it to hand its leadership over.

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::load::connection;
use crate::nodes::Nodes;

/// Time within which strace must hold all threads of a server.
const ATTACH_WITHIN: Duration = Duration::from_secs(10);
/// System call that hangs, and for how long: longer than a try takes.
const HANG: &str = "inject=fdatasync:delay_enter=60s";

/// A fault of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// `kill -9`.
    Kill,
    /// SIGSTOP: the process stands still, and its connections stay open.
    Freeze,
    /// A disk of which no sync comes back.
    Disk,
    /// None: it is ordered to hand the leadership to another node.
    Planned,
}

impl Fault {
    /// Name in figures.
    pub(super) fn key(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Freeze => "freeze",
            Fault::Disk => "disk",
            Fault::Planned => "planned",
        }
    }

    /// Time for which the writes go on after the fault, at least: a leader whose disk hangs notices it after
    /// a second.
    pub(super) fn lasts(self) -> Duration {
        match self {
            Fault::Kill | Fault::Freeze => Duration::from_millis(1_500),
            Fault::Disk => Duration::from_secs(4),
            Fault::Planned => Duration::from_millis(500),
        }
    }

    /// Strikes a node. Returns what ends the fault.
    pub(super) async fn strike(self, nodes: &mut Nodes, node: usize) -> Result<Struck, String> {
        match self {
            Fault::Kill => nodes.kill(node).map(|()| Struck::Killed),
            Fault::Freeze => {
                let pid = nodes.pid(node)?;
                signal(pid, Signal::STOP)?;
                Ok(Struck::Frozen(pid))
            }
            Fault::Disk => {
                let pid = nodes.pid(node)?;
                let attached = tokio::task::spawn_blocking(move || Tracer::attach(pid)).await;
                attached.map_err(|error| format!("strace: {error}"))?.map(Struck::Traced)
            }
            Fault::Planned => {
                let (client, next) = (connection(nodes.endpoint(node))?, nodes.number_after(node));
                // Whoever measures does not wait for the answer, and sees whether another node leads.
                tokio::spawn(async move { client.cluster_transfer(next, &[]).await });
                Ok(Struck::Told)
            }
        }
    }
}

/// A node after a fault has struck it.
#[derive(Debug)]
pub(super) enum Struck {
    Killed,
    Frozen(u32),
    Traced(Tracer),
    Told,
}

impl Struck {
    /// Ends the fault. Blocks.
    pub(super) fn heal(self, nodes: &mut Nodes) -> Result<(), String> {
        match self {
            Struck::Killed => nodes.start_missing(),
            Struck::Frozen(pid) => signal(pid, Signal::CONT),
            Struck::Traced(tracer) => tracer.end(),
            Struck::Told => Ok(()),
        }
    }
}

/// True when there is an strace to let system calls hang.
pub(super) fn has_strace() -> bool {
    Command::new("strace").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn signal(pid: u32, signal: Signal) -> Result<(), String> {
    let process = Pid::from_raw(pid.cast_signed()).ok_or("no process")?;
    kill_process(process, signal).map_err(|error| format!("cannot signal process {pid}: {error}"))
}

/// strace, as long as it holds a process; killed when it is dropped.
#[derive(Debug)]
pub(super) struct Tracer {
    strace: Child,
}

impl Tracer {
    /// Lets every fdatasync of a process hang, from when this returns. Blocks.
    fn attach(pid: u32) -> Result<Tracer, String> {
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", HANG, "-p"])
            .arg(pid.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start strace: {error}"))?;
        let tracer = Tracer { strace };
        let began = Instant::now();
        while began.elapsed() < ATTACH_WITHIN {
            if is_traced(pid).map_err(|error| format!("cannot look at the threads of {pid}: {error}"))? {
                return Ok(tracer);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("strace does not attach to process {pid} within {ATTACH_WITHIN:?}"))
    }

    /// Lets the process go on as it would without.
    fn end(mut self) -> Result<(), String> {
        signal(self.strace.id(), Signal::INT)?;
        self.strace.wait().map(drop).map_err(|error| format!("cannot wait for strace: {error}"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// True when each thread of a process is traced.
fn is_traced(pid: u32) -> io::Result<bool> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that is gone meanwhile needs no tracer.
        let status = std::fs::read_to_string(task?.path().join("status")).unwrap_or_default();
        if status.lines().any(|line| line == "TracerPid:\t0") {
            return Ok(false);
        }
    }
    Ok(true)
}
