//! The servers that workers call: one alone, or a cluster of three nodes on this machine.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::endpoint::Endpoint;
use crate::nodes::Nodes;
use crate::process::usage;
use crate::server::{Server, ServerOptions};

/// The servers of a measurement.
#[derive(Debug)]
pub(super) enum Served {
    /// A server alone.
    Alone(Server),
    /// A cluster, and the place of the node that led its first shard at the begin.
    Cluster(Nodes, usize),
}

impl Served {
    pub(super) fn alone(data: &Path, options: &ServerOptions) -> Result<Served, String> {
        Server::start(data, options).map(Served::Alone)
    }

    /// A cluster, as soon as all its shards have a leader.
    pub(super) fn cluster(data: &Path, options: &ServerOptions, runtime: &Runtime) -> Result<Served, String> {
        let nodes = Nodes::start(data, &options.durability, options.shards)?;
        runtime.block_on(nodes.all_led(options.shards))?;
        let leader = runtime.block_on(nodes.leader())?;
        Ok(Served::Cluster(nodes, leader))
    }

    /// The server, or the node that led.
    pub(super) fn endpoint(&self) -> &Endpoint {
        match self {
            Served::Alone(server) => server.endpoint(),
            Served::Cluster(nodes, leader) => nodes.endpoint(*leader),
        }
    }

    /// Processor time of all processes.
    pub(super) fn cpu(&self) -> Result<Duration, String> {
        let processes = match self {
            Served::Alone(server) => vec![server.pid()],
            Served::Cluster(nodes, _) => nodes.pids()?,
        };
        processes.into_iter().map(|process| usage(process).map(|usage| usage.cpu)).sum()
    }

    pub(super) fn stop(self) -> Result<(), String> {
        match self {
            Served::Alone(server) => server.stop(),
            Served::Cluster(nodes, _) => nodes.stop(),
        }
    }
}
