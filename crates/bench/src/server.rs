//! The server under test: this program once more, as a child with its data in a folder of its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sluice_client::{Client, Options};

use super::certificates::Certificates;
use super::endpoint::Endpoint;
use super::load::runtime;
use super::process::{Usage, reset_peak, this_program, usage};

/// Time within which a started server must answer; it includes the recovery of a large log.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// Time within which a server must end after SIGTERM.
const STOP_WITHIN: Duration = Duration::from_secs(40);

/// Settings that the benchmark states itself: those of the environment would make what it says of the server
/// untrue. So would those of a file, and the server gets an empty one.
const OWN_SETTINGS: [&str; 8] = [
    "SLUICE_KEY_SOURCE",
    "SLUICE_MEMORY",
    "SLUICE_NO_ENCRYPTION",
    "SLUICE_TLS",
    "SLUICE_TLS_CERT",
    "SLUICE_TLS_KEY",
    "SLUICE_TLS_CLIENT_CA",
    "SLUICE_ACCESS_POLICY",
];

/// The options with which a server is started.
#[derive(Clone, Debug)]
pub(super) struct ServerOptions {
    /// Value of `--durability`.
    pub(super) durability: String,
    /// Without a disk.
    pub(super) memory: bool,
    pub(super) shards: u32,
    /// Mutual TLS, with certificates of its own.
    pub(super) tls: bool,
    /// True when the server encrypts what it stores.
    pub(super) encryption: bool,
    /// Further flags of `sluice serve`, as in `--cache=256MiB`.
    pub(super) flags: Vec<String>,
}

impl ServerOptions {
    /// Clear text on the wire and encryption at rest, which are the defaults of `sluice serve`.
    pub(super) fn with_durability(durability: &str) -> ServerOptions {
        ServerOptions {
            durability: durability.to_owned(),
            memory: false,
            shards: 1,
            tls: false,
            encryption: true,
            flags: Vec::new(),
        }
    }

    /// The durability, as the report shows it.
    pub(super) fn durability(&self) -> &str {
        if self.memory { "none: in memory" } else { &self.durability }
    }

    /// TLS and encryption, as the report shows them.
    pub(super) fn security(&self) -> String {
        let wire = if self.tls { "mutual TLS" } else { "clear text" };
        let disk = match (self.memory, self.encryption) {
            (true, _) => "nothing on disk",
            (false, true) => "encrypted on disk",
            (false, false) => "not encrypted on disk",
        };
        format!("{wire}, {disk}")
    }

    /// The flags of `sluice serve`; makes certificates beside the data directory when they are needed.
    fn arguments(&self, address: &str, data_dir: &Path) -> Result<Vec<String>, String> {
        let mut arguments = vec![
            "serve".to_owned(),
            "--config=/dev/null".to_owned(),
            format!("--listen={address}"),
            format!("--data-dir={}", data_dir.display()),
            format!("--durability={}", self.durability),
            format!("--shards={}", self.shards),
        ];
        if self.memory {
            arguments.push("--memory".to_owned());
        }
        if !self.encryption {
            arguments.push("--no-encryption".to_owned());
        }
        if self.tls {
            let certificates = certificates(data_dir);
            certificates.make(&["127.0.0.1"])?;
            arguments.extend(mutual_tls_flags(&certificates));
        }
        arguments.extend_from_slice(&self.flags);
        Ok(arguments)
    }
}

/// The certificates of a server: in a folder beside its data.
fn certificates(data_dir: &Path) -> Certificates {
    Certificates::in_folder(&data_dir.with_extension("certificates"))
}

/// The flags of `sluice serve` with which it asks each client for a certificate.
fn mutual_tls_flags(certificates: &Certificates) -> [String; 3] {
    let server = certificates.server();
    [
        format!("--tls-cert={}", server.cert.display()),
        format!("--tls-key={}", server.key.display()),
        format!("--tls-client-ca={}", certificates.ca().cert.display()),
    ]
}

/// A server that this process started; killed when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    endpoint: Endpoint,
    log: PathBuf,
    ready_after: Duration,
}

impl Server {
    /// Starts a server on a data directory and waits until it serves. Blocks.
    pub(super) fn start(data_dir: &Path, options: &ServerOptions) -> Result<Server, String> {
        let address = free_address()?;
        let arguments = options.arguments(&address, data_dir)?;
        let endpoint = match options.tls {
            true => {
                let made = certificates(data_dir);
                Endpoint::mutual_tls(&format!("https://{address}"), &made.ca().cert, &made.client())?
            }
            false => Endpoint::clear_text(&address),
        };
        Server::spawn(&arguments, endpoint, data_dir.with_extension("log"))
    }

    /// Starts this program with these arguments, by which it serves at `endpoint`, and waits until it does.
    /// What it says is added to the file `log`. Blocks.
    pub(super) fn spawn(arguments: &[String], endpoint: Endpoint, log: PathBuf) -> Result<Server, String> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let output_too =
            output.try_clone().map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let started = Instant::now();
        let child = own_settings(this_program()?)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(output_too)
            .spawn()
            .map_err(|error| format!("cannot start a server: {error}"))?;
        let mut server = Server { child, endpoint, log, ready_after: Duration::ZERO };
        let endpoint = server.endpoint.clone();
        let is_ready = || match endpoint.is_encrypted() {
            true => is_ready_over_tls(&endpoint),
            false => is_ready(endpoint.address()),
        };
        server.wait_until(is_ready, started)?;
        Ok(server)
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Time from the start of the process to its first successful answer.
    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// `kill -9`.
    pub(super) fn kill(mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| format!("cannot kill the server: {error}"))?;
        self.child.wait().map(drop).map_err(|error| format!("cannot wait for the server: {error}"))
    }

    /// SIGTERM; an error when it does not end well.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|error| format!("cannot stop the server: {error}"))?;
        let asked = Instant::now();
        while asked.elapsed() < STOP_WITHIN {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.told(&format!("the server ended with {status}"))),
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(format!("cannot wait for the server: {error}")),
            }
        }
        Err(self.told(&format!("the server did not end within {STOP_WITHIN:?} after SIGTERM")))
    }

    fn wait_until(&mut self, is_ready: impl Fn() -> bool, started: Instant) -> Result<(), String> {
        while started.elapsed() < READY_WITHIN {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.told(&format!("the server ended with {status} before it was ready")));
            }
            if is_ready() {
                self.ready_after = started.elapsed();
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(self.told(&format!("the server was not ready within {READY_WITHIN:?}")))
    }

    /// A failure with the end of what the server said.
    fn told(&self, failure: &str) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(10)..].join("\n");
        if end.is_empty() { failure.to_owned() } else { format!("{failure}; it said:\n{end}") }
    }
}

/// A command of this program without the settings of its environment.
pub(super) fn own_settings(mut command: Command) -> Command {
    for setting in OWN_SETTINGS {
        command.env_remove(setting);
    }
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago. Another process may take it first; then the server says so and the run
/// fails.
fn free_address() -> Result<String, String> {
    let listener =
        TcpListener::bind("127.0.0.1:0").map_err(|error| format!("cannot find a free port: {error}"))?;
    listener
        .local_addr()
        .map(|address| address.to_string())
        .map_err(|error| format!("cannot find a free port: {error}"))
}

/// Asks `/readyz` once, by hand: without the retries and pauses of a client, so that the time can be told.
fn is_ready(address: &str) -> bool {
    use std::io::{Read, Write};
    let ask = || -> std::io::Result<bool> {
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut status_line = [0u8; 12];
        stream.read_exact(&mut status_line)?;
        Ok(status_line.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

/// The same over TLS, on a thread of its own since the caller's may be driving a runtime.
fn is_ready_over_tls(endpoint: &Endpoint) -> bool {
    let ask = || {
        let at_once =
            Options { retry_for: Duration::ZERO, connect_retry_for: Duration::ZERO, ..Options::default() };
        let client = endpoint.client(at_once)?;
        runtime(1)?.block_on(client.status()).map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| scope.spawn(ask).join().is_ok_and(|answer| answer.is_ok()))
}

/// One figure of `/metrics` that has no labels.
pub(super) async fn counter(client: &Client, name: &str) -> Result<u64, String> {
    let page = client.metrics().await.map_err(|error| format!("cannot ask for /metrics: {error}"))?;
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| format!("/metrics does not tell {name}"))
}

/// Counters of a server's journals since its start, summed over all shards.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct JournalFigures {
    pub(super) fsyncs: u64,
    pub(super) log_bytes: u64,
    pub(super) snapshots: u64,
    pub(super) compacted_bytes: u64,
    /// True when a snapshot is being written on at least one shard.
    pub(super) snapshot_running: bool,
}

impl JournalFigures {
    /// Asks a server.
    pub(super) async fn of(client: &Client) -> Result<JournalFigures, String> {
        let status =
            client.status().await.map_err(|error| format!("cannot ask for the server's status: {error}"))?;
        let shards = status["shards"].as_array().ok_or("the server's status names no shards")?;
        let sum = |key: &str| -> Result<u64, String> {
            let one = |shard: &Value| shard[key].as_u64();
            shards
                .iter()
                .map(one)
                .sum::<Option<u64>>()
                .ok_or_else(|| format!("the server's status has no {key:?}"))
        };
        Ok(JournalFigures {
            fsyncs: sum("fsyncs")?,
            log_bytes: sum("log_bytes")?,
            snapshots: sum("snapshots")?,
            compacted_bytes: sum("compacted_bytes")?,
            snapshot_running: shards.iter().any(|shard| shard["snapshot_running"] == Value::Bool(true)),
        })
    }

    pub(super) fn since(&self, before: &JournalFigures) -> JournalFigures {
        JournalFigures {
            fsyncs: self.fsyncs - before.fsyncs,
            log_bytes: self.log_bytes - before.log_bytes,
            snapshots: self.snapshots - before.snapshots,
            compacted_bytes: self.compacted_bytes - before.compacted_bytes,
            snapshot_running: self.snapshot_running,
        }
    }
}

/// The server under test: a child of ours, or somebody else's, of which less is known.
#[derive(Debug)]
pub(super) enum Target {
    Child(Server),
    Elsewhere(Endpoint),
}

impl Target {
    pub(super) fn endpoint(&self) -> &Endpoint {
        match self {
            Target::Child(server) => server.endpoint(),
            Target::Elsewhere(endpoint) => endpoint,
        }
    }

    /// Resources that the process has used; `None`: the server was named by --url.
    pub(super) fn usage(&self) -> Result<Option<Usage>, String> {
        match self {
            Target::Child(server) => usage(server.pid()).map(Some),
            Target::Elsewhere(_) => Ok(None),
        }
    }

    pub(super) fn reset_peak(&self) -> Result<(), String> {
        match self {
            Target::Child(server) => reset_peak(server.pid()),
            Target::Elsewhere(_) => Ok(()),
        }
    }

    pub(super) fn stop(self) -> Result<(), String> {
        match self {
            Target::Child(server) => server.stop(),
            Target::Elsewhere(_) => Ok(()),
        }
    }
}
