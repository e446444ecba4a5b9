//! The text that is printed when the server is ready: address, storage, recovery, next steps.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_engine::query::State;
use sluice_node::Node;

use super::auto::AutoCertificates;
use super::security::Security;
use crate::config::{Config, Loaded};
use crate::root_keys::ServerEncryption;
use crate::terminal::data_dir::NOT_IN_ORDER;
use crate::terminal::format::{counted, quoted, size};
use crate::terminal::{Out, Result};

/// The port that clients use without being told.
const DEFAULT_PORT: u16 = 7070;

/// The result of recovery at the start.
struct Recovery {
    fresh: bool,
    queues: u64,
    messages: u64,
    dead: u64,
    bytes: u64,
    /// Remarks for the operator: cuts, and other notes of recovery.
    notes: Vec<String>,
}

/// The choices of a start, and how long it took.
pub(super) struct Started {
    /// Encryption of the server; `None`: in memory.
    pub(super) chosen: Option<ServerEncryption>,
    pub(super) took: Duration,
}

/// Content of the text.
struct Banner<'a> {
    config: &'a Config,
    is_test: bool,
    address: SocketAddr,
    url: String,
    data_dir: PathBuf,
    security: &'a Security,
    started: Started,
    found: Recovery,
}

/// Prints the text, or a JSON object, to stdout.
pub(super) async fn print(
    loaded: &Loaded,
    address: SocketAddr,
    security: &Security,
    node: &Node,
    started: Started,
    out: Out,
) -> Result<()> {
    let found = look(node).await;
    for note in &found.notes {
        tracing::warn!("{note}");
    }
    let config = &loaded.config;
    let url = url(address, security);
    let data_dir = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    let is_test = loaded.is_test;
    let banner = Banner { config, is_test, address, url, data_dir, security, started, found };
    if out.json { out.object(&banner.json()) } else { out.text(&banner.text()) }
}

impl Banner<'_> {
    fn json(&self) -> Value {
        let Banner { config, security, started, found, .. } = self;
        json!({
            "url": self.url,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "data_dir": (!config.memory).then(|| self.data_dir.display().to_string()),
            "durability": spelled_durability(config),
            "shards": config.shards.0,
            "test": self.is_test,
            "encryption": started.chosen.as_ref().map(ServerEncryption::json),
            "tls": security.tls.is_some(),
            "names": security.made.as_ref().map(AutoCertificates::names),
            "credentials": security.made.as_ref().map(|made| json!({
                "ca": absolute(&made.ca), "cert": absolute(&made.client.cert), "key": absolute(&made.client.key),
            })),
            "recovery": {
                "fresh": found.fresh,
                "queues": found.queues,
                "messages": found.messages,
                "dead": found.dead,
                "bytes": found.bytes,
                "took_ms": started.took.as_millis() as u64,
                "notes": found.notes,
            },
        })
    }

    fn text(&self) -> String {
        let Banner { config, security, started, found, .. } = self;
        let data = if config.memory {
            "in memory: lost when this process ends".to_owned()
        } else {
            self.data_dir.display().to_string()
        };
        let mut text = format!("sluice {} is ready at {}\n\n", env!("CARGO_PKG_VERSION"), self.url);
        let mut field = |name: &str, value: &str| text.push_str(&format!("  {name:<12}{value}\n"));
        field("data", &data);
        if !config.memory {
            field("durability", durability(config.durability));
        }
        if let Some(chosen) = &started.chosen {
            field("encryption", &encryption(chosen));
        }
        field("shards", &config.shards.0.to_string());
        field("access", access(security));
        if let Some(made) = &security.made {
            field("names", &format!("{} (--tls-name adds more)", made.names().join(", ")));
        }
        field("recovered", &recovered(found, started.took));
        for note in &found.notes {
            field("note", note);
        }
        if let Some(warning) = started.chosen.as_ref().and_then(ServerEncryption::warning) {
            text.push_str(&format!("\n{warning}"));
        }
        text.push_str(&next(self.address, &self.url, security));
        text
    }
}

async fn look(node: &Node) -> Recovery {
    let metrics = node.metrics().await;
    let mut found = Recovery { fresh: true, queues: 0, messages: 0, dead: 0, bytes: 0, notes: Vec::new() };
    for shard in &metrics.shards {
        found.queues += shard.queues;
        found.bytes += shard.counters.bytes;
        for (state, count) in State::ALL.iter().zip(shard.counters.states) {
            found.messages += count;
            found.dead += if *state == State::Dead { count } else { 0 };
        }
    }
    if node.recovery_reports().iter().any(|report| !report.fresh && !report.end_known) {
        found.notes.push(NOT_IN_ORDER.to_owned());
    }
    for (number, report) in node.recovery_reports().iter().enumerate() {
        found.fresh &= report.fresh;
        if let Some(cut) = &report.cut {
            found.notes.push(format!(
                "shard {number}: cut {} from the end of {} at byte {}: an incomplete batch that was never \
                confirmed as synced",
                size(cut.bytes),
                cut.file.display(),
                cut.offset
            ));
        }
        found.notes.extend(report.notes.iter().map(|note| format!("shard {number}: {note}")));
    }
    found
}

/// The durability as the configuration spells it.
pub(super) fn spelled_durability(config: &Config) -> String {
    use crate::config::SettingValue as _;
    if config.memory { "memory".to_owned() } else { config.durability.show() }
}

fn durability(durability: sluice_node::Durability) -> &'static str {
    match durability {
        sluice_node::Durability::Always => "always: a reply means that the data is on disk",
        sluice_node::Durability::Interval(_) => {
            "interval: a power loss may lose what was written since the last sync"
        }
        sluice_node::Durability::Os => {
            "os: a power loss may lose what the system has not written to disk yet"
        }
    }
}

fn encryption(chosen: &ServerEncryption) -> String {
    match chosen.encryption.root_of_new() {
        Some(id) => format!("AES-256-GCM, root key {id} from {}", chosen.store.place()),
        None => "off: new files are written without it".to_owned(),
    }
}

fn recovered(found: &Recovery, took: Duration) -> String {
    if found.fresh {
        return "nothing: the server starts without data".to_owned();
    }
    format!(
        "{} in {} ({}, {}) in {took:.1?}",
        counted(found.messages, "message"),
        counted(found.queues, "queue"),
        counted(found.dead, "dead letter"),
        size(found.bytes)
    )
}

/// The URL for clients.
fn url(address: SocketAddr, security: &Security) -> String {
    match &security.tls {
        None => format!("http://{address}"),
        // A certificate names no wildcard address.
        Some(_) if address.ip().is_unspecified() => format!("https://localhost:{}", address.port()),
        Some(_) => format!("https://{address}"),
    }
}

fn access(security: &Security) -> &'static str {
    match (security.tls.is_some(), security.access.asks()) {
        (true, true) => "TLS; callers must authenticate",
        (true, false) => "TLS; anybody who reaches this port may do everything",
        (false, true) => "clear text; callers must authenticate",
        (false, false) => "clear text; anybody who reaches this port may do everything",
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn next(address: SocketAddr, url: &str, security: &Security) -> String {
    let plain = security.tls.is_none() && address.port() == DEFAULT_PORT && address.ip().is_loopback();
    let mut server = if plain { String::new() } else { format!("  export SLUICE_SERVER={url}\n") };
    if let Some(made) = &security.made {
        for (name, path) in [
            ("SLUICE_CA", &made.ca),
            ("SLUICE_CERT", &made.client.cert),
            ("SLUICE_CERT_KEY", &made.client.key),
        ] {
            server.push_str(&format!("  export {name}={}\n", quoted(&absolute(path))));
        }
    }
    let sluice = program();
    format!(
        "\nNext, in another terminal:\n{server}  {sluice} send emails hello\n  \
        {sluice} work emails -- sh -c 'cat; echo'\n  \
        {sluice} queue list\nThe API is described at {url}/docs. Ctrl-C stops the server.\n\n"
    )
}

/// Command with which a shell calls this program: its name if that is in PATH, else its path.
fn program() -> String {
    let name = "sluice";
    let Ok(path) = std::env::current_exe().and_then(|path| path.canonicalize()) else {
        return name.to_owned();
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).find_map(|folder| folder.join(name).canonicalize().ok());
    if found.as_ref() == Some(&path) {
        return name.to_owned();
    }
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    let path = path.strip_prefix(&here).map_or_else(|_| path.clone(), |rest| Path::new(".").join(rest));
    quoted(&path.display().to_string())
}
