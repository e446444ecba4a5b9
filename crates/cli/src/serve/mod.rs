//! `sluice serve`: runs a server with the given settings until it is told to stop.
//!
//! Map: `banner` the text when it is ready, `logging` the log, `address` the listening address, `open_files`
//! the limit of open files, `limits` those of the engine, `security` TLS and rights, `auto` the certificates
//! of `--tls auto`, `names` the names in them, `stopping` signals, `starter` the process that has started a
//! server for tests, `telemetry` exports to a collector, `pushing` pushes of messages. As a node of a
//! cluster: `node_file` the file that makes it one, `init`, `join` and `recover` how it came to be, `pinned`
//! the check of the cluster's CA, `sealing` the seal of its key, `place` its place, `boot` the boot of the
//! machine, `own_node` the node as calls see it, `cluster` connections to other nodes, `other_nodes` the way
//! of requests to them, `following` the list of nodes, `renewing` another number for a node that has
//! forgotten something.

mod address;
pub(crate) mod auto;
mod banner;
mod boot;
mod cluster;
mod following;
pub(crate) mod init;
mod join;
pub(crate) mod limits;
mod logging;
mod names;
pub(crate) mod node_file;
pub(crate) mod open_files;
mod other_nodes;
mod own_node;
mod pages;
mod pinned;
mod place;
mod pushing;
pub(crate) mod recover;
mod renewing;
mod sealing;
mod security;
mod starter;
mod stopping;
mod telemetry;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sluice_alloc_count::{Mode, set_mode, total_allocations};
use sluice_calls::Calls;
use sluice_calls::access::{Guard, GuardOptions};
use sluice_calls::documents::indexes::keep_indexes;
use sluice_calls::server::About;
use sluice_front::http::{Hosts, HttpOptions};
use sluice_front::serve;
use sluice_node::api::EventOptions;
use sluice_node::keys::KeySource;
use sluice_node::{Durability, Node, Options, StartError};
use sluice_telemetry::Telemetry;
use sluice_telemetry::queue::Queue;
use tokio::runtime::Runtime;

use crate::config::{self, Config, Loaded, SettingFlags, Sources};
use crate::root_keys::ServerEncryption;
use crate::terminal::data_dir::expect_directory;
use crate::terminal::{CliError, Fault, Out, Result};
use banner::Started;
use cluster::ClusterNode;
use join::JoinArgs;
use limits::limits;
use node_file::NodeFile;
use place::Place;
use sealing::SealingSource;
use security::Security;
use stopping::{Failure, Stopping};

/// Minimum time for the journal's last sync.
const LAST_SYNC: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice serve\n  sluice serve --data-dir /var/lib/sluice --durability interval:1s\n  \
    sluice serve --memory --listen 127.0.0.1:0\n  sluice serve --test\n\n\
    The server prints its address when it is ready. SIGTERM or Ctrl-C: it \
    finishes running requests and exits with 0. A second signal ends it at once, \
    which loses nothing that was acknowledged. `sluice config` shows every setting."
)]
pub(crate) struct ServeArgs {
    /// Configuration file [default: ./sluice.toml if it is there; env: SLUICE_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run a server for the tests of a program: everything in memory, a free port of this machine, and time
    /// that tests move (`POST /v1/test/time`). It prints one line of JSON with its `url` when it is ready,
    /// and ends with the process that has started it, or when its stdin, if that is a pipe, is closed.
    /// Neither environment variables nor ./sluice.toml count.
    #[arg(long)]
    test: bool,
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    join: JoinArgs,
    /// Count allocations, and report them in /metrics. For benchmarks: counting takes time.
    #[arg(long, hide = true)]
    count_allocations: bool,
}

/// Runs the server.
pub(crate) fn run(args: ServeArgs, out: Out) -> Result<u8> {
    if args.count_allocations {
        set_mode(Mode::Total);
    }
    let out = if args.test { Out::new(true) } else { out };
    let sources = if args.test {
        Sources::of_test(args.config, args.settings)
    } else {
        Sources::of_process(args.config, args.settings)
    };
    let loaded = config::load(&sources).map_err(|e| CliError::usage(e.to_string()))?;
    let join = if args.test {
        args.join.expect_none()?;
        starter::end_with_it()?;
        args.join
    } else {
        args.join.or_environment(|name| std::env::var(name).ok())
    };
    let logs = telemetry::logs(&loaded.config);
    logging::start(&loaded.config, logs.as_ref());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    open_files::raise_limit();
    pages::keep_small();
    let watched =
        Watched { allocations: args.count_allocations.then_some(total_allocations as fn() -> u64), logs };
    loop {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(connection_threads(loaded.config.shards.as_u32()))
            .enable_all()
            .thread_name("sluice-http")
            .build()
            .map_err(|e| CliError::failed(format!("cannot start threads: {e}")))?;
        let ended = serve_until_stopped(&runtime, &loaded, &join, &watched, out);
        // The threads that still run have had their time.
        runtime.shutdown_timeout(Duration::from_millis(100));
        match ended? {
            Ended::Stopped => return Ok(0),
            Ended::Renewed => tracing::info!("starting again under the new number"),
        }
    }
}

/// Notes of the server from its start on, whatever number it runs under.
struct Watched {
    /// Blocks taken from the allocator; `None`: nobody counts them.
    allocations: Option<fn() -> u64>,
    /// Events of the log that are exported; `None`: they are not.
    logs: Option<Arc<Queue>>,
}

/// The way in which a server has ended that did not fail.
enum Ended {
    /// End on request.
    Stopped,
    /// End of a node that has another number, under which it starts again.
    Renewed,
}

/// Number of threads that serve connections: the processors that the shards leave, at least one. More threads
/// would only pass requests, and the processor, to each other.
fn connection_threads(shards: u32) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.saturating_sub(shards as usize).max(1)
}

fn serve_until_stopped(
    runtime: &Runtime,
    loaded: &Loaded,
    join: &JoinArgs,
    watched: &Watched,
    out: Out,
) -> Result<Ended> {
    let config = &loaded.config;
    if !config.memory {
        expect_directory(&config.data_dir)?;
    }
    // The port first: a second server on the same port must not touch the data.
    let (file, chosen) = runtime.block_on(join.place(config))?;
    let place = Place::of(config, file.as_ref())?;
    let security = Security::load(config, place.as_ref())?;
    let listener = runtime.block_on(address::bind(loaded, &security))?;
    let address = listener.local_addr().map_err(|e| CliError::failed(format!("cannot listen: {e}")))?;
    let began = Instant::now();
    let chosen = match chosen {
        None if !config.memory => Some(ServerEncryption::choose(config).map_err(|e| not_started(&e))?),
        chosen => chosen,
    };
    let made = security.made.as_ref();
    let cluster = runtime.block_on(async { ClusterNode::start(place, made, config) });
    let mut options = options(config, chosen.as_ref());
    options.movable_time = loaded.is_test;
    if let (Some(chosen), Some(made), true) = (&chosen, made, cluster.is_some()) {
        options.key_source = Some(Arc::new(SealingSource::begin(chosen, made.folder())));
    }
    let node = start_node(options, cluster.as_ref())?;
    let took = began.elapsed();
    runtime.block_on(async {
        let ended = cluster.as_ref().map(ClusterNode::ended);
        let stopping = Stopping::watch(node.clone(), async {
            match ended {
                Some(ended) => ended.await,
                None => std::future::pending().await,
            }
        })?;
        security.load_stored(&node).await?;
        address::check(loaded, &address, &security.access)?;
        let security = Arc::new(security);
        security::watch(Arc::clone(&security), node.clone(), cluster.is_some())?;
        spawn_work(&node);
        banner::print(loaded, address, &security, &node.stale(), Started { chosen, took }, out).await?;
        let mut options = http_options(config);
        options.tls = security.tls.clone();
        let own_node = cluster.as_ref().map(ClusterNode::own_node);
        options.nodes = cluster.as_ref().map(ClusterNode::others);
        options.allocations = watched.allocations;
        options.hosts = hosts(config, security.tls.is_some(), address);
        options.connections_max =
            open_files::connections_max(options.connections_max, config.shards.as_u32());
        let telemetry = telemetry::start(config, address, watched.logs.as_ref())?;
        options.telemetry = telemetry.as_ref().map(Telemetry::exports);
        let pushes = pushing::pushes(config, &security.access)?;
        let calls = Calls::new(node.clone(), security.access.clone(), about(config))
            .traced(telemetry.as_ref().and_then(Telemetry::traces).cloned())
            .pushing(pushes.clone());
        let calls = own_node.into_iter().fold(calls, Calls::in_cluster);
        options.further = cluster.map(|cluster| cluster.deliver_to(calls.neighbour()));
        let serving = serve(listener, calls, options, stopping.begun());
        let stopped = pushing::run(&pushes, &node, stopping.begun(), serving).await;
        sum_up_refusals(&security, &node, &stopping).await;
        let ended = finish(&node, config, &stopping, stopped.connections_cut).await;
        telemetry::finish(telemetry).await;
        ended
    })
}

/// Starts what a node does beside its calls: it fills indexes, and ends transactions.
fn spawn_work(node: &Node) {
    tokio::spawn(keep_indexes(node.clone()));
    let (indexing, finishing) = (node.clone(), node.clone());
    tokio::spawn(async move { indexing.keep_message_indexes().await });
    tokio::spawn(async move { finishing.finish_transactions().await });
}

fn about(config: &Config) -> About {
    About { version: env!("CARGO_PKG_VERSION").to_owned(), durability: banner::spelled_durability(config) }
}

fn start_node(options: Options, cluster: Option<&ClusterNode>) -> Result<Node> {
    let node = match cluster {
        Some(cluster) => Node::start_in_cluster(options, cluster.options()),
        None => Node::start(options),
    };
    let node = node.map_err(|error| {
        let advice = cluster.filter(|_| matches!(error, StartError::Damaged(_)));
        match advice.and_then(ClusterNode::advice_on_damage) {
            Some(advice) => not_started(&error).hint(advice),
            None => not_started(&error),
        }
    })?;
    cluster.map_or(Ok(()), ClusterNode::note_start)?;
    Ok(node)
}

fn not_started(error: &StartError) -> CliError {
    CliError::start(error).context("cannot start")
}

/// Takes down what was refused; nothing listens any more to a node that was removed.
async fn sum_up_refusals(security: &Security, node: &Node, stopping: &Stopping) {
    match stopping.failure() {
        Some(Failure::Removed) => security.access.log_refusals("the node was removed from its cluster"),
        _ => security.access.sum_up_refusals(node, true).await,
    }
}

/// After the last connection: syncs the journal, and reports the result.
async fn finish(node: &Node, config: &Config, stopping: &Stopping, cut: usize) -> Result<Ended> {
    if cut > 0 {
        tracing::warn!("{cut} connections did not finish within the grace period and were cut");
    }
    let failure = stopping.failure();
    if let Some(Failure::Journal(reason)) = failure {
        tracing::error!("the journal has failed: {reason}");
        return Err(CliError::of(Fault::Server, format!("the journal has failed: {reason}"))
            .hint(match config.durability {
                Durability::Always => {
                    "Nothing that was acknowledged is lost. Look for disk errors, then start again."
                }
                Durability::Interval(_) | Durability::Os => {
                    "What was acknowledged and not synced may be lost. Look for disk errors, then start again."
                }
            }));
    }
    // The rest of the grace period, and the minimum for the last sync in any case.
    let grace = config.grace.saturating_sub(stopping.elapsed()).max(LAST_SYNC);
    node.shutdown(grace).await.map_err(|e| CliError::of(Fault::Server, e.to_string()))?;
    if failure == Some(Failure::Renewed) {
        return Ok(Ended::Renewed);
    }
    if failure == Some(Failure::Removed) {
        if let Some(file) = NodeFile::read(&config.data_dir)? {
            NodeFile { is_removed: true, ..file }.write(&config.data_dir)?;
        }
        return Err(join::removed(&config.data_dir));
    }
    tracing::info!("stopped");
    Ok(Ended::Stopped)
}

/// The settings for the node.
fn options(config: &Config, chosen: Option<&ServerEncryption>) -> Options {
    Options {
        data_dir: (!config.memory).then(|| config.data_dir.clone()),
        shards: config.shards.as_u32(),
        durability: config.durability,
        cache_bytes: config.cache.0,
        limits: limits(config),
        mailbox_requests: config.mailbox_requests.as_usize(),
        mailbox_bytes: config.mailbox_bytes.0,
        waiting_receives: config.waiting_receives.as_usize(),
        events: EventOptions {
            window: config.events_window.as_usize(),
            keep: config.events_keep,
            readers: config.events_readers.as_usize(),
        },
        reserve_bytes: config.reserve.0,
        low_water_bytes: config.low_water.0,
        accept_clock_jump: config.accept_clock_jump,
        movable_time: false,
        encryption: chosen.map(|chosen| chosen.encryption.clone()).unwrap_or_default(),
        key_source: chosen.map(|chosen| Arc::new(chosen.store.clone()) as Arc<dyn KeySource>),
    }
}

/// The settings for the HTTP front.
fn http_options(config: &Config) -> HttpOptions {
    HttpOptions {
        connections_max: config.http_connections.as_usize(),
        requests_max: config.http_requests.as_usize(),
        bodies_bytes_max: config.http_bodies.as_usize(),
        head_timeout: config.http_head_timeout,
        body_timeout: config.http_body_timeout,
        answers_bytes_max: config.http_answers.as_usize(),
        connection_answers_bytes_max: config.http_connection_answers.as_usize(),
        write_timeout: config.http_write_timeout,
        ping_interval: config.http_ping_interval,
        idle_timeout: config.http_idle_timeout,
        shutdown_grace: config.grace,
        event_pause: config.events_pause,
        metrics_queues_max: config.http_metrics_queues.as_usize(),
        compression: config.http_compression,
        tls: None,
        nodes: None,
        further: None,
        hosts: Hosts::any(),
        guard: Arc::new(Guard::new(guard_options(config))),
        allocations: None,
        telemetry: None,
    }
}

/// The names under which the server accepts requests while callers need not authenticate. Over TLS the
/// certificate decides. On an address that other machines reach any name is accepted, and only requests of
/// web pages are refused.
fn hosts(config: &Config, is_secured: bool, address: SocketAddr) -> Hosts {
    match (is_secured, address.ip().is_loopback()) {
        (true, _) => Hosts::any(),
        (false, true) => Hosts::of_all(names::own(&config.listen)),
        (false, false) => Hosts::of_pages(names::own(&config.listen)),
    }
}

fn guard_options(config: &Config) -> GuardOptions {
    GuardOptions {
        connections_max: config.guard_connections.as_usize(),
        failures_max: config.guard_failures.as_u32(),
        ban: config.guard_ban,
        own_machine: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    fn defaults() -> Config {
        let default = |key: &str| SETTINGS.iter().find(|s| s.key == key).unwrap().default.to_owned();
        Config::read(default).unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_engine() {
        assert_eq!(limits(&defaults()), sluice_engine::Limits::default());
    }

    #[test]
    fn the_defaults_are_those_of_the_http_front() {
        let ours = http_options(&defaults());
        let theirs = HttpOptions { shutdown_grace: ours.shutdown_grace, ..HttpOptions::default() };
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
}
