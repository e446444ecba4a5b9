//! A server in a temporary directory, and commands that talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A command without anything of this process's environment that could matter to it.
pub(crate) fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("SLUICE_")) {
        command.env_remove(name);
    }
    command.args(args).current_dir(home).env("XDG_CONFIG_HOME", home.join("config")).stdin(Stdio::null());
    command
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    pub(crate) fn of(output: Output) -> Done {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What it wrote, if it succeeded.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// What it complained of, if it failed so.
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}

/// Runs a command without a server.
pub(crate) fn alone(args: &[&str]) -> Done {
    let home = tempfile::tempdir().unwrap();
    Done::of(command(home.path(), args).output().unwrap())
}

/// A running server. It is killed when this is dropped.
pub(crate) struct Server {
    pub(crate) home: TempDir,
    pub(crate) url: String,
    /// What it said when it was ready.
    pub(crate) ready: Value,
    child: Child,
    args: Vec<String>,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(&[])
    }

    /// With more flags.
    pub(crate) fn with(args: &[&str]) -> Server {
        Server::at(tempfile::tempdir().unwrap(), args)
    }

    /// One that comes back at the same address when it is restarted.
    pub(crate) fn at_one_address() -> Server {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Server::with(&["--listen", &free.to_string()])
    }

    fn at(home: TempDir, args: &[&str]) -> Server {
        let mut command = command(home.path(), &["serve", "--json", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let url = ready["url"].as_str().unwrap().to_owned();
        let args = args.iter().map(|a| (*a).to_owned()).collect();
        Server { home, url, ready, child, args, _stdout: stdout }
    }

    /// With more flags from its next start on.
    pub(crate) fn then_with(mut self, args: &[&str]) -> Server {
        self.args.extend(args.iter().map(|a| (*a).to_owned()));
        self
    }

    /// Kills it at once, and starts it again on the same data.
    pub(crate) fn kill_and_restart(self) -> Server {
        self.kill_and_restart_after(Duration::ZERO)
    }

    /// The same, with a pause between.
    pub(crate) fn kill_and_restart_after(mut self, pause: Duration) -> Server {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::thread::sleep(pause);
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().unwrap());
        let args = self.args.clone();
        Server::at(home, &args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal_to(&self.child, signal);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// A connection without TLS.
    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(self.url.trim_start_matches("http://"))
    }

    /// Waits until its metrics have this line.
    pub(crate) fn until_metrics_say(&self, line: &str) {
        until(line, || {
            let mut stream = self.connect().unwrap();
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .unwrap();
            let mut metrics = String::new();
            stream.read_to_string(&mut metrics).unwrap();
            metrics.lines().any(|found| found == line)
        });
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    /// A command that talks to it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(self.home.path(), args);
        command.env("SLUICE_SERVER", &self.url);
        // What `--tls auto` has made.
        for (variable, name) in [("SLUICE_CA", "ca"), ("SLUICE_CERT", "cert"), ("SLUICE_CERT_KEY", "key")] {
            if let Some(path) = self.ready["credentials"][name].as_str() {
                command.env(variable, path);
            }
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        Done::of(self.command(args).output().unwrap())
    }

    pub(crate) fn ok(&self, args: &[&str]) -> String {
        self.run(args).ok()
    }

    /// Runs a command with this on its stdin.
    pub(crate) fn feed(&self, args: &[&str], input: &[u8]) -> Done {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // A command that fails early does not read it.
        let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        Done::of(output)
    }

    /// The JSON lines that a command writes.
    pub(crate) fn json(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ok(&[args, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The one JSON object that a command writes.
    pub(crate) fn one(&self, args: &[&str]) -> Value {
        let mut all = self.json(args);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Messages of a queue in one state.
    pub(crate) fn count(&self, queue: &str, state: &str) -> u64 {
        self.one(&["queue", "show", queue])["counts"][state].as_u64().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn signal_to(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for a process, and fails the test if it takes too long.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the process to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Reads what a process says on its stderr until this has come; the rest is for whoever has the process.
pub(crate) fn until_said(child: &mut Child, end: &str) -> String {
    let stderr = child.stderr.as_mut().unwrap();
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(end.as_bytes()) {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
        said.push(byte[0]);
    }
    String::from_utf8(said).unwrap()
}

/// Waits until this is true.
pub(crate) fn until(what: &str, mut check: impl FnMut() -> bool) {
    let started = Instant::now();
    while !check() {
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
