//! Three servers of one cluster on this machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use sluice_client::Options;

use crate::certificates::Pair;
use crate::endpoint::Endpoint;
use crate::process::this_program;
use crate::server::{Server, own_settings};

/// Time within which the nodes must agree on a leader.
const AGREE_WITHIN: Duration = Duration::from_secs(60);
/// Pause between two looks at who leads.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time for the answer of a node.
const LOOK_FOR: Duration = Duration::from_secs(5);
/// The shard of the queues under load.
const SHARD: u32 = 0;

/// A node: how its server is started, and the server while it runs.
#[derive(Debug)]
struct Member {
    number: u64,
    arguments: Vec<String>,
    data_dir: PathBuf,
    endpoint: Endpoint,
    log: PathBuf,
    server: Option<Server>,
}

/// The nodes of a cluster.
#[derive(Debug)]
pub(super) struct Nodes {
    members: Vec<Member>,
}

impl Nodes {
    /// Makes a cluster in a folder that does not exist, by `sluice cluster dev` of this program, and starts
    /// its nodes. Blocks.
    pub(super) fn start(folder: &Path, durability: &str, shards: u32) -> Result<Nodes, String> {
        let made = make(folder, shards)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("a cluster without paths");
        let admin = Pair { cert: text(&made["cert"])?.into(), key: text(&made["key"])?.into() };
        let ca = PathBuf::from(text(&made["ca"])?);
        let mut members = Vec::new();
        for node in made["nodes"].as_array().ok_or("a cluster without nodes")? {
            let given = node["arguments"].as_array().ok_or("a node without arguments")?;
            let mut arguments = given.iter().map(text).collect::<Result<Vec<String>, _>>()?;
            let data_dir = arguments.iter().find_map(|argument| argument.strip_prefix("--data-dir="));
            let data_dir = PathBuf::from(data_dir.ok_or("a node without a data directory")?);
            arguments.extend([
                "--config=/dev/null".to_owned(),
                format!("--durability={durability}"),
                format!("--shards={shards}"),
            ]);
            let endpoint = Endpoint::mutual_tls(&text(&node["url"])?, &ca, &admin)?;
            let number = node["node"].as_u64().ok_or("a node without a number")?;
            let log = folder.join(format!("node-{number}.log"));
            members.push(Member { number, arguments, data_dir, endpoint, log, server: None });
        }
        let mut nodes = Nodes { members };
        nodes.start_missing()?;
        Ok(nodes)
    }

    /// Starts the nodes that do not run. Blocks.
    pub(super) fn start_missing(&mut self) -> Result<(), String> {
        for member in self.members.iter_mut().filter(|member| member.server.is_none()) {
            let (endpoint, log) = (member.endpoint.clone(), member.log.clone());
            member.server = Some(Server::spawn(&member.arguments, endpoint, log)?);
        }
        Ok(())
    }

    /// `kill -9` of a node, by its place.
    pub(super) fn kill(&mut self, node: usize) -> Result<(), String> {
        self.members[node].server.take().map_or(Ok(()), Server::kill)
    }

    /// Place of the node behind this one.
    pub(super) fn after(&self, node: usize) -> usize {
        (node + 1) % self.members.len()
    }

    /// Number of the node behind this one, by its place.
    pub(super) fn number_after(&self, node: usize) -> u64 {
        self.members[self.after(node)].number
    }

    /// Process of a node, by its place.
    pub(super) fn pid(&self, node: usize) -> Result<u32, String> {
        self.members[node]
            .server
            .as_ref()
            .map(Server::pid)
            .ok_or_else(|| "a node that does not run".to_owned())
    }

    /// Processes of all nodes.
    pub(super) fn pids(&self) -> Result<Vec<u32>, String> {
        (0..self.members.len()).map(|node| self.pid(node)).collect()
    }

    /// Data directories of all nodes.
    pub(super) fn data_dirs(&self) -> impl Iterator<Item = &Path> {
        self.members.iter().map(|member| member.data_dir.as_path())
    }

    /// A node, as its clients reach it.
    pub(super) fn endpoint(&self, node: usize) -> &Endpoint {
        &self.members[node].endpoint
    }

    /// All nodes, as clients reach them that follow leaders.
    pub(super) fn all(&self) -> Endpoint {
        let urls: Vec<&str> = self.members.iter().map(|member| member.endpoint.url()).collect();
        self.members[0].endpoint.at(&urls.join(","))
    }

    /// Waits until all nodes name one of them as the leader. Its place.
    pub(super) async fn leader(&self) -> Result<usize, String> {
        let began = Instant::now();
        let mut told = Vec::new();
        while began.elapsed() < AGREE_WITHIN {
            told.clear();
            for member in &self.members {
                told.push(leader(&member.endpoint).await);
            }
            let first = told.first().cloned();
            let leads = self.members.iter().position(|member| first == Some(Ok(Some(member.number))));
            if let (Some(place), true) = (leads, told.iter().all(|each| first.as_ref() == Some(each))) {
                return Ok(place);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(format!("the nodes do not agree on a leader within {AGREE_WITHIN:?}: {told:?}"))
    }

    /// Waits until each of so many shards has a leader.
    pub(super) async fn all_led(&self, shards: u32) -> Result<(), String> {
        let began = Instant::now();
        let mut led = Ok(Vec::new());
        while began.elapsed() < AGREE_WITHIN {
            led = leads(&self.members[0].endpoint).await;
            if led.as_ref().is_ok_and(|led| led.len() == shards as usize) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(format!("not all of {shards} shards have a leader within {AGREE_WITHIN:?}: {led:?}"))
    }

    /// Stops all nodes.
    pub(super) fn stop(self) -> Result<(), String> {
        self.members.into_iter().filter_map(|member| member.server).try_for_each(Server::stop)
    }
}

/// Number of the node that leads the shard under load, as far as a node knows.
async fn leader(node: &Endpoint) -> Result<Option<u64>, String> {
    let leads = leads(node).await?;
    Ok(leads.into_iter().find(|(shard, _)| *shard == SHARD).map(|(_, number)| number))
}

/// Shards that have a leader, and the number of its node, as far as a node knows.
async fn leads(node: &Endpoint) -> Result<Vec<(u32, u64)>, String> {
    let at_once = Options {
        request_timeout: LOOK_FOR,
        retry_for: Duration::ZERO,
        connect_retry_for: Duration::ZERO,
        ..Options::default()
    };
    let cluster = node.client(at_once)?.cluster().await.map_err(|error| error.to_string())?;
    let of_node = |node: &sluice_client::ClusterNode| {
        let number = node.number;
        node.leads.iter().map(move |shard| (*shard, number)).collect::<Vec<_>>()
    };
    Ok(cluster.nodes.iter().flat_map(of_node).collect())
}

/// Makes the folder of a cluster. Describes how its nodes are started.
fn make(folder: &Path, shards: u32) -> Result<Value, String> {
    let failed = |reason: &dyn std::fmt::Display| format!("cannot make a cluster: {reason}");
    let output = own_settings(this_program()?)
        .args(["cluster", "dev", "--no-start", "--json", "--port=0", "--dir"])
        .arg(folder)
        .env("SLUICE_CONFIG", "/dev/null")
        .env("SLUICE_SHARDS", shards.to_string())
        .output()
        .map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
}
