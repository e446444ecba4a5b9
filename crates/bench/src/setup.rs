//! Arguments that benchmarks of a server share: the amount of messages, the security of the server, the
//! directory of its data.

use std::path::PathBuf;
use std::time::Duration;

use sluice_units::parse_duration;
use tempfile::TempDir;

use super::ReadCredentials;
use super::disk::{fdatasync_us, is_in_memory};
use super::endpoint::Endpoint;
use super::load::{Amount, NUMBER_BYTES};
use super::report::Report;
use super::server::{Server, ServerOptions, Target};

/// The amount of messages.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct AmountArgs {
    /// Messages in each phase.
    #[arg(long, default_value_t = 200_000, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(super) messages: u64,
    /// Send for this long in each phase instead of --messages, for example 30s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) seconds: Option<Duration>,
    /// Size of each payload in bytes, at least 16: it begins with the number of the message.
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    pub(super) payload: u32,
    /// Times that the phases are run; the median is reported.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) rounds: u32,
    /// Threads of the load generator.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) client_threads: u32,
}

impl AmountArgs {
    /// The amount of each phase; in a smoke test a small part of it.
    pub(super) fn amount(&self, smoke: bool) -> Amount {
        match self.seconds {
            Some(_) if smoke => Amount::For(Duration::from_millis(400)),
            Some(duration) => Amount::For(duration),
            None if smoke => Amount::Messages(self.messages.min(5_000)),
            None => Amount::Messages(self.messages),
        }
    }
}

/// The server to measure, and how it is secured.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct TargetArgs {
    /// Address of a running server to measure, with the credentials of SLUICE_CA, SLUICE_CERT,
    /// SLUICE_CERT_KEY, SLUICE_TOKEN_FILE or SLUICE_TOKEN [default: a server is started, with its data in a
    /// temporary directory].
    #[arg(long, conflicts_with_all = ["tls", "no_encryption"])]
    url: Option<String>,
    /// Start the server with mutual TLS, with certificates made for this run.
    #[arg(long)]
    tls: bool,
    /// Start the server without encryption of what it stores.
    #[arg(long)]
    no_encryption: bool,
}

impl TargetArgs {
    /// True when the server was named by --url.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.url.is_some()
    }

    /// The server to start with these options, besides how it is secured.
    pub(super) fn secured(&self, options: ServerOptions) -> ServerOptions {
        ServerOptions { tls: self.tls, encryption: !self.no_encryption, ..options }
    }

    /// Starts the server, if it is ours to start.
    pub(super) fn start(
        &self,
        folder: &TempDir,
        options: &ServerOptions,
        credentials: ReadCredentials,
    ) -> Result<Target, String> {
        match &self.url {
            Some(url) => Ok(Target::Elsewhere(Endpoint::named(url, credentials()?))),
            None => Ok(Target::Child(Server::start(&folder.path().join("data"), options)?)),
        }
    }

    /// A report of it that says what the server was told.
    pub(super) fn report(
        &self,
        bench: &'static str,
        folder: &TempDir,
        options: &ServerOptions,
    ) -> Result<Report, String> {
        if self.is_elsewhere() {
            return Ok(Report::new(bench, "as the server has it").secured("as the server has it"));
        }
        report_of(bench, folder, options)
    }
}

/// A report of a server of ours. With a disk it begins with the time that a sync takes there.
pub(super) fn report_of(
    bench: &'static str,
    folder: &TempDir,
    options: &ServerOptions,
) -> Result<Report, String> {
    let mut report = Report::new(bench, options.durability()).secured(options.security());
    if !options.memory {
        report.figure("fdatasync_us", fdatasync_us(folder.path())?);
        if is_in_memory(folder.path()) {
            report.note(
                "the data is on a disk in memory, where a sync costs nothing: choose another with --dir",
            );
        }
    }
    Ok(report)
}

/// The directory of the data, and whether only a small part is run.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct FolderArgs {
    /// Directory in which the temporary data directory is made; choose the disk with it
    /// [default: the system's temporary directory].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Run a small part in a few seconds, to check that the benchmark works; the figures mean nothing.
    #[arg(long)]
    pub(super) smoke: bool,
}

impl FolderArgs {
    /// A folder that goes away with its value.
    pub(super) fn make(&self) -> Result<TempDir, String> {
        let dir = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        tempfile::Builder::new()
            .prefix("sluice-bench-")
            .tempdir_in(&dir)
            .map_err(|error| format!("cannot make a folder in {}: {error}", dir.display()))
    }
}
