//! One server of a cluster that runs on one machine: a process, whose log goes to stderr with its name.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::cert::Files;
use crate::terminal::{CliError, Out, Result};

/// The files of a node.
#[derive(Debug)]
pub(super) struct NodeFiles {
    /// The data directory.
    pub(super) data: PathBuf,
    /// The certificate and key.
    pub(super) certificate: Files,
    /// The certificate of the CA, of nodes and of clients.
    pub(super) ca: PathBuf,
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) number: u16,
    pub(super) pid: u32,
    /// The URL for clients, once it is ready.
    pub(super) url: String,
    child: Child,
    is_over: bool,
}

impl Server {
    /// Starts the server of a node with its arguments.
    pub(super) fn start(number: u16, arguments: &[String]) -> Result<Server> {
        let mut server = Server::spawn(arguments, number, Stdio::piped())?;
        if let Some(log) = server.child.stderr.take() {
            tokio::spawn(pass_on(number, log));
        }
        Ok(server)
    }

    /// Waits until the server is ready.
    pub(super) async fn ready(&mut self) -> Result<()> {
        let ended = || CliError::failed(format!("node {} did not start", self.number));
        let stdout = self.child.stdout.as_mut().ok_or_else(ended)?;
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line).await;
        let banner: Option<serde_json::Value> = read.ok().and_then(|_| serde_json::from_str(&line).ok());
        let url = banner.as_ref().and_then(|banner| banner["url"].as_str());
        self.url = url.ok_or_else(ended)?.to_owned();
        Ok(())
    }

    /// Tells the server to stop.
    pub(super) fn terminate(&mut self) {
        if let (false, Some(pid)) = (self.is_over, Pid::from_raw(self.pid.cast_signed())) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until the server has ended, and says so.
    pub(super) async fn ended(&mut self, out: Out) {
        if self.is_over {
            return;
        }
        if let Ok(status) = self.child.wait().await {
            out.note(&format!("node {} has ended: {status}", self.number));
        }
        self.is_over = true;
    }

    fn spawn(arguments: &[String], number: u16, log: Stdio) -> Result<Server> {
        let program = std::env::current_exe();
        let program = program.map_err(|e| CliError::failed(format!("cannot find this program: {e}")))?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--json");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // A group of its own: Ctrl-C is for the parent, which ends the servers in order.
        let spawned = command.process_group(0).spawn();
        let child = spawned.map_err(|e| CliError::failed(format!("cannot start node {number}: {e}")))?;
        let pid = child.id().unwrap_or_default();
        Ok(Server { number, pid, url: String::new(), child, is_over: false })
    }
}

/// Makes a data directory: a server begins it and stops.
pub(super) async fn begin_data(data: &Path) -> Result<()> {
    let mut server = Server::spawn(&serve(data, 0), 1, Stdio::inherit())?;
    server.ready().await?;
    server.terminate();
    let _ = server.child.wait().await;
    Ok(())
}

/// Arguments of this program for the server of a node at a port of the loopback interface. `members`: the
/// value of `cluster_members`.
pub(super) fn arguments(files: &NodeFiles, port: u16, members: &str) -> Vec<String> {
    let mut arguments = serve(&files.data, port);
    arguments.extend([
        format!("--tls-cert={}", files.certificate.cert.display()),
        format!("--tls-key={}", files.certificate.key.display()),
        format!("--tls-client-ca={}", files.ca.display()),
        format!("--cluster-members={members}"),
    ]);
    arguments
}

/// Arguments of a server that is alone.
fn serve(data: &Path, port: u16) -> Vec<String> {
    let (listen, data) = (format!("--listen=127.0.0.1:{port}"), format!("--data-dir={}", data.display()));
    vec!["serve".to_owned(), listen, data]
}

/// Writes the log of a node to stderr, with its number before each line.
async fn pass_on(number: u16, log: impl AsyncRead + Unpin) {
    let mut lines = BufReader::new(log).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        eprintln!("node {number} | {line}");
    }
}
