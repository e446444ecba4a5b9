//! `sluice bench wire`: serves bodies of fixed sizes over HTTP/2 from one thread, for load generators such as
//! h2load, on this project's stack or on hyper's. What differs between two runs is the stack alone: the same
//! service, the same TLS, the same sockets.
//!
//! Map: `files` what is served; `serve` the connections; `tls` certificate and cipher.

mod files;
mod serve;
pub(super) mod tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sluice_alloc_count::{Mode, counts, set_mode};
use sluice_http2::Limits;
use sluice_http2::emit::EmitMode;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::load::runtime;
use super::process;
use super::report::Report;
use files::{BODIES, Files};
use serve::{Ours, Stack, tls_allocations};

/// Serves bodies over HTTP/2 from one thread, for load generators, until it is interrupted.
#[derive(clap::Args, Debug)]
pub struct WireArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    listen: String,
    /// HTTP/2 implementation: that of Sluice (`ours`) or hyper.
    #[arg(long, value_enum, default_value_t = StackKind::Ours)]
    stack: StackKind,
    /// Writes of payloads by `ours`: `copy` into one buffer, `gather` by reference, `auto` by their size, or
    /// `naive`, one write for each frame.
    #[arg(long, value_enum, default_value_t = Emit::Auto)]
    emit: Emit,
    /// Path of requests to the service in `ours`: `direct`, without the types of the crate `http`, or `http`,
    /// with them.
    #[arg(long, value_enum, default_value_t = Through::Direct)]
    through: Through,
    /// PEM file with the certificate [default: one is made].
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The only TLS cipher suite to offer [default: all; the client's preference decides].
    #[arg(long, value_enum)]
    cipher: Option<tls::Cipher>,
    /// Serve clear text (HTTP/2 with prior knowledge) instead of TLS.
    #[arg(long, conflicts_with_all = ["cert", "cipher"])]
    plain: bool,
    /// Count allocations, which makes each of them slower.
    #[arg(long)]
    allocations: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum StackKind {
    Ours,
    Hyper,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Emit {
    Auto,
    Copy,
    Gather,
    Naive,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Through {
    Direct,
    Http,
}

impl From<Emit> for EmitMode {
    fn from(emit: Emit) -> EmitMode {
        match emit {
            Emit::Auto => EmitMode::Auto,
            Emit::Copy => EmitMode::Copy,
            Emit::Gather => EmitMode::Gather,
            Emit::Naive => EmitMode::Naive,
        }
    }
}

pub(super) fn run(args: &WireArgs) -> Result<Report, String> {
    runtime(1)?.block_on(serve(args))
}

async fn serve(args: &WireArgs) -> Result<Report, String> {
    let tls = match (args.plain, args.cert.as_deref().zip(args.key.as_deref())) {
        (true, _) => None,
        (false, Some((cert, key))) => Some(tls::from_files(cert, key, args.cipher)?),
        (false, None) => Some(tls::of_its_own(args.cipher)?),
    };
    let stack = match args.stack {
        StackKind::Ours => Stack::Ours(Ours {
            mode: args.emit.into(),
            limits: Arc::new(Limits::default()),
            through_http: args.through == Through::Http,
        }),
        StackKind::Hyper => Stack::Hyper,
    };
    let cannot_listen = |error| format!("cannot listen on {}: {error}", args.listen);
    let listener = TcpListener::bind(&args.listen).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let paths = BODIES.map(|(path, _)| path).join(" ");
    eprintln!(
        "process {} serves {paths} on {scheme}://{address}; interrupt it for its figures",
        std::process::id()
    );

    let files = Files::new();
    if args.allocations {
        set_mode(Mode::Count);
    }
    let (cpu_before, counted_before) = (cpu()?, counts());
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|error| format!("cannot wait for a signal: {error}"))?;
    tokio::select! {
        failed = serve::serve(listener, tls, stack, files.clone()) => match failed {
            Ok(never) => match never {},
            Err(error) => return Err(format!("cannot accept connections: {error}")),
        },
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    let (cpu, allocations) = (cpu()? - cpu_before, counts().since(&counted_before).allocations);
    set_mode(Mode::Off);
    Ok(report(args, &files, cpu, allocations))
}

fn report(args: &WireArgs, files: &Files, cpu: Duration, allocations: u64) -> Report {
    let served = files.served();
    let each = |total: f64| if served == 0 { 0.0 } else { total / served as f64 };
    let mut report = Report::new("wire", "none");
    report.figure("requests", served as f64);
    report.figure("cpu_us_per_request", each(cpu.as_secs_f64() * 1e6));
    if args.allocations {
        // hyper's cannot be told from those of its TLS.
        let of_tls = tls_allocations();
        report.figure("allocations_per_request", each((allocations - of_tls) as f64));
        report.figure("tls_allocations_per_request", each(of_tls as f64));
    }
    report
}

fn cpu() -> Result<Duration, String> {
    process::usage(std::process::id()).map(|usage| usage.cpu)
}
