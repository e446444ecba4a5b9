//! The security settings of the server, and a run with each.

use std::path::Path;

use super::collector::Collector;
use super::loops::{Moved, SingleLoad, move_all};
use crate::load::connection;
use crate::process::usage;
use crate::server::{Server, ServerOptions, counter};

/// Tells, when the server counts them, the blocks that it has taken from its allocator.
const ALLOCATIONS: &str = "sluice_allocations_total";

/// Security settings of a server.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Neither TLS nor encryption at rest.
    Plain,
    /// Mutual TLS, no encryption at rest.
    Mtls,
    /// Encryption at rest, no TLS.
    Encrypted,
    /// Mutual TLS and encryption at rest.
    Both,
    /// Both, and telemetry to a collector, with a trace of 1 % of the messages.
    Telemetry,
}

impl Mode {
    /// Modes that are measured unless others are asked for.
    pub(super) const USUAL: [Mode; 4] = [Mode::Plain, Mode::Mtls, Mode::Encrypted, Mode::Both];

    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Plain => "nothing",
            Mode::Mtls => "mutual TLS",
            Mode::Encrypted => "encryption at rest",
            Mode::Both => "both",
            Mode::Telemetry => "both, with telemetry",
        }
    }

    /// Name of its rate among the figures.
    pub(super) fn key(self) -> &'static str {
        match self {
            Mode::Plain => "per_s_plain",
            Mode::Mtls => "per_s_mtls",
            Mode::Encrypted => "per_s_encrypted",
            Mode::Both => "per_s",
            Mode::Telemetry => "per_s_telemetry",
        }
    }

    pub(super) fn server(self, durability: &str) -> ServerOptions {
        ServerOptions {
            tls: matches!(self, Mode::Mtls | Mode::Both | Mode::Telemetry),
            encryption: matches!(self, Mode::Encrypted | Mode::Both | Mode::Telemetry),
            ..ServerOptions::with_durability(durability)
        }
    }
}

/// The result of one run of a mode.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) mode: Mode,
    pub(super) short: Moved,
    pub(super) long: Moved,
    /// Processor time of the server in the long run, in microseconds per message.
    pub(super) server_cpu_us: f64,
    /// Exports of traces that came to the collector.
    pub(super) traces: u64,
}

/// Runs a mode on a server of its own: so many messages, then so many.
pub(super) async fn run(
    mode: Mode,
    folder: &Path,
    durability: &str,
    shape: &SingleLoad,
    (short, long): (u64, u64),
) -> Result<Ran, String> {
    let data = folder.join(mode.key());
    let mut options = mode.server(durability);
    let collector = if mode == Mode::Telemetry { Some(Collector::start().await?) } else { None };
    options.flags.extend(collector.as_ref().map(Collector::flag));
    let server = Server::start(&data, &options)?;
    let short = move_all(&server, shape, short).await?;
    let before = usage(server.pid())?.cpu;
    let long = move_all(&server, shape, long).await?;
    let cpu = usage(server.pid())?.cpu.saturating_sub(before);
    stop(server).await?;
    remove(&data)?;
    let server_cpu_us = cpu.as_secs_f64() * 1e6 / long.messages.max(1) as f64;
    Ok(Ran { mode, short, long, server_cpu_us, traces: collector.map_or(0, |collector| collector.traces()) })
}

/// Blocks that the server takes from its allocator for a message with everything on, in a run of its own:
/// counting takes time.
pub(super) async fn count_allocations(
    folder: &Path,
    durability: &str,
    shape: &SingleLoad,
    messages: u64,
) -> Result<f64, String> {
    let mut options = Mode::Both.server(durability);
    options.flags.push("--count-allocations".to_owned());
    let server = Server::start(&folder.join("counted"), &options)?;
    let admin = connection(server.endpoint())?;
    let before = counter(&admin, ALLOCATIONS).await?;
    let moved = move_all(&server, shape, messages).await?;
    let taken = counter(&admin, ALLOCATIONS).await?.saturating_sub(before);
    stop(server).await?;
    Ok(taken as f64 / moved.messages.max(1) as f64)
}

/// Stops a server while this runtime goes on, so that connections to it hear that it ends: it would wait for
/// them otherwise, as long as its grace lasts.
async fn stop(server: Server) -> Result<(), String> {
    let stopped = tokio::task::spawn_blocking(|| server.stop()).await;
    stopped.map_err(|error| format!("stopping the server: {error}"))?
}

/// Gives the disk back before the next run; the keys beside it go with the folder.
fn remove(data: &Path) -> Result<(), String> {
    for path in [data.to_owned(), data.with_extension("key")] {
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("cannot remove {}: {error}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}
