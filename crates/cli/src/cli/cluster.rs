//! `sluice cluster`.

use std::time::Duration;

use clap::{Args, Subcommand};
use sluice_calls::codes::exit;
use sluice_client::{Cluster, ClusterNode, ClusterStatus};

use super::cluster_limits::{self, ClusterLimitsVerb};
use super::confirm::Confirmation;
use super::connect::ServerFlags;
use super::format::{counted, quoted, time};
use super::output::Table;
use super::{Out, Result, duration, number};
use crate::dev_cluster::{self, DevArgs};
use crate::serve::init::{self, InitArgs};
use crate::serve::recover::{self, RecoverArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Run three nodes of one cluster in this terminal, to try it out.
    Dev(DevArgs),
    /// Make a server that does not run the first node of a new cluster, with the data that it has.
    Init(InitArgs),
    /// List the nodes of the cluster, and the shards that each leads.
    Members {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Say what is wrong with the cluster and what to do, and show its nodes and shards.
    #[command(after_help = "Exits with 7 while a shard has no leader, and with 0 otherwise.")]
    Status {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Hand the leadership of shards to a node.
    #[command(
        after_help = "Examples:\n  sluice cluster transfer 2\n  sluice cluster transfer 2 --shard 0 --shard 3"
    )]
    Transfer {
        /// Number of the node that is to lead.
        node: u64,
        /// Shard whose leadership is handed over; repeat the flag for several [default: all].
        #[arg(long, value_name = "SHARD")]
        shard: Vec<u32>,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Set the address of a node whose machine has moved. Ask a node that the others reach.
    #[command(after_help = "Example:\n  sluice cluster address 3 three.example:7070")]
    Address {
        /// Number of the node.
        node: u64,
        /// Address at which clients and other nodes will reach it.
        #[arg(value_name = "HOST:PORT")]
        address: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Put the newest behaviour version into force, once all nodes are upgraded.
    ///
    /// No node can go back to a program that does not know it. A server alone may use it too.
    Finalize {
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Show the limits of the cluster, and set them.
    #[command(subcommand)]
    Limits(ClusterLimitsVerb),
    /// Let a machine join: print the command to run on it. It cannot be printed again.
    #[command(after_help = JOINING_HELP)]
    Add {
        #[command(flatten)]
        validity: Validity,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Let a machine join in the place of a node: print the command to run on it.
    ///
    /// The node is removed when the machine that joins has all data.
    #[command(after_help = JOINING_HELP)]
    Replace {
        /// Number of the node, as `sluice cluster members` shows it.
        #[arg(value_parser = number(1u64..))]
        node: u64,
        #[command(flatten)]
        validity: Validity,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Make a stopped node a cluster of its own, when a majority of the nodes is gone for good.
    Recover {
        #[command(flatten)]
        recover: RecoverArgs,
        #[command(flatten)]
        confirm: Confirmation,
    },
    /// Remove a node for good. It never comes back under its number.
    Remove {
        /// Number of the node, as `sluice cluster members` shows it.
        #[arg(value_parser = number(1u64..))]
        node: u64,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
}

/// End of the help of the verbs that let a machine join.
const JOINING_HELP: &str =
    "The machine needs an empty data directory. With --json: {\"token\",\"expires_at_ms\"}.";

/// The validity of a join token.
#[derive(Debug, Args)]
pub(crate) struct Validity {
    /// Time for which the token is valid [default: 1h; at most 7d].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
}

pub(super) async fn run(verb: ClusterVerb, out: Out) -> Result<u8> {
    match verb {
        ClusterVerb::Dev(args) => return dev_cluster::run(args, out).await,
        ClusterVerb::Members { server } => {
            let connection = server.connect()?;
            let cluster = connection.client.cluster().await.map_err(|e| connection.error(&e))?;
            out.show(&cluster, table)?;
        }
        ClusterVerb::Init(args) => init::run(args, out).await?,
        ClusterVerb::Add { validity, server } => let_join(&server, validity, None, out).await?,
        ClusterVerb::Replace { node, validity, server } => {
            let_join(&server, validity, Some(node), out).await?;
        }
        ClusterVerb::Recover { recover, confirm } => recover::run(recover, |what| confirm.ask(what), out)?,
        ClusterVerb::Remove { node, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("Removing node {node} from the cluster"))?;
            let leaving = connection.client.cluster_remove(node).await.map_err(|e| connection.error(&e))?;
            out.show(&leaving, |it| format!("node {} at {} is being removed\n", it.node, it.address))?;
        }
        ClusterVerb::Status { server } => {
            let connection = server.connect()?;
            let status = connection.client.cluster_status().await.map_err(|e| connection.error(&e))?;
            out.show(&status, health)?;
            return Ok(exit_code(&status));
        }
        ClusterVerb::Address { node, address, server } => {
            let connection = server.connect()?;
            let moved = connection.client.cluster_address(node, &address).await;
            let moved = moved.map_err(|e| connection.error(&e))?;
            out.show(&moved, |it| format!("node {} is at {}\n", it.node, it.address))?;
        }
        ClusterVerb::Finalize { confirm, server } => {
            let connection = server.connect()?;
            confirm.ask("Putting the newest behaviour version into force")?;
            let finalized = connection.client.cluster_finalize().await.map_err(|e| connection.error(&e))?;
            out.show(&finalized, |it| {
                let already = if it.former == it.behaviour { " already" } else { "" };
                format!("behaviour version {} is in force{already}\n", it.behaviour)
            })?;
        }
        ClusterVerb::Limits(verb) => return cluster_limits::run(verb, out).await,
        ClusterVerb::Transfer { node, shard, server } => {
            let connection = server.connect()?;
            let transferred = connection.client.cluster_transfer(node, &shard).await;
            let transferred = transferred.map_err(|e| connection.error(&e))?;
            out.show(&transferred, |it| format!("node {} leads {}\n", it.node, shards_in_words(&it.shards)))?;
        }
    }
    Ok(0)
}

/// Makes a join token, and shows the command with which a machine joins by it.
async fn let_join(server: &ServerFlags, validity: Validity, replaces: Option<u64>, out: Out) -> Result<()> {
    let connection = server.connect()?;
    let cluster = connection.client.cluster().await.map_err(|e| connection.error(&e))?;
    let ttl_ms = validity.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let made = connection.client.cluster_token_create(ttl_ms, replaces).await;
    let made = made.map_err(|e| connection.error(&e))?;
    out.note(&format!(
        "One machine joins with this until {}. Keep it secret: it cannot be shown again.\n\
         HOST is the name or address by which the other machines reach it.",
        time(made.expires_at_ms)
    ));
    out.show(&made, |made| joining_command(&cluster, replaces, &made.token))
}

/// The command with which a machine joins, at the node that has answered, unless that is to be replaced.
fn joining_command(cluster: &Cluster, replaces: Option<u64>, token: &str) -> String {
    let stays = |node: &&ClusterNode| Some(node.number) != replaces;
    let answers = cluster.nodes.iter().filter(stays).find(|node| node.number == cluster.node);
    let address =
        answers.or_else(|| cluster.nodes.iter().find(stays)).map_or("HOST:PORT", |it| it.address.as_str());
    format!(
        "sluice serve --listen 0.0.0.0:7070 --cluster-address HOST:7070 \\\n  --join {} --join-token {}\n",
        quoted(&format!("https://{address}")),
        quoted(token)
    )
}

fn table(cluster: &Cluster) -> String {
    let mut table = Table::new(&["NODE", "ADDRESS", "LEADS", ""]);
    for node in &cluster.nodes {
        let leads: Vec<String> = node.leads.iter().map(u32::to_string).collect();
        table.row([
            node.number.to_string(),
            node.address.clone(),
            leads.join(" "),
            if node.number == cluster.node { "answers".to_owned() } else { String::new() },
        ]);
    }
    table.render()
}

fn shards_in_words(shards: &[u32]) -> String {
    let numbers: Vec<String> = shards.iter().map(u32::to_string).collect();
    format!("{} {}", if shards.len() == 1 { "shard" } else { "shards" }, numbers.join(", "))
}

/// Health as text: the problems, what the cluster outlives, the nodes, and the members of each shard.
fn health(status: &ClusterStatus) -> String {
    let mut text = String::new();
    for problem in &status.problems {
        text.push_str(&format!("! {problem}\n"));
    }
    let nodes = match status.tolerates {
        0 => "no node".to_owned(),
        count => counted(count, "node"),
    };
    let is_healthy = if status.healthy { "is healthy, and " } else { "" };
    text.push_str(&format!("The cluster {is_healthy}outlives the loss of {nodes} now.\n"));
    let mut nodes = Table::new(&["NODE", "ADDRESS", "VERSION", ""]);
    for node in &status.nodes {
        let note = match (node.number == status.node, node.reached) {
            (true, _) => "answers",
            (false, true) => "",
            (false, false) => "not reached",
        };
        let version = node.version.clone().unwrap_or_default();
        nodes.row([node.number.to_string(), node.address.clone(), version, note.to_owned()]);
    }
    let mut shards = Table::new(&["SHARD", "NODE", "ROLE", "BEHIND"]);
    for shard in &status.shards {
        let number = shard.shard.to_string();
        let [node, role, term] = match shard.leader {
            Some(leader) => [leader.to_string(), "leads".to_owned(), format!("term {}", shard.term)],
            None => ["none".to_owned(), "no leader".to_owned(), String::new()],
        };
        shards.row([number.clone(), node, role, term]);
        for follower in &shard.followers {
            let behind = match (follower.heard, follower.records_behind) {
                (false, _) => "not heard of".to_owned(),
                (true, 0) => String::new(),
                (true, records) => {
                    format!("{records} records, {} bytes, {} ms", follower.bytes_behind, follower.ms_behind)
                }
            };
            let role = if follower.votes { "follows" } else { "learns" };
            shards.row([number.clone(), follower.node.to_string(), role.to_owned(), behind]);
        }
    }
    format!("{text}\n{}\n{}", nodes.render(), shards.render())
}

/// Exit code of a status: nothing can be done on a shard without a leader.
fn exit_code(status: &ClusterStatus) -> u8 {
    if status.shards.iter().all(|shard| shard.leader.is_some()) { 0 } else { exit::UNAVAILABLE }
}

#[cfg(test)]
mod tests {
    use sluice_client::{NodeStatus, ReplicatedShard, ShardFollower};

    use super::*;

    /// Two nodes, of which the second answers.
    fn two() -> Cluster {
        let node = |number, leads: &[u32]| ClusterNode {
            number,
            address: format!("10.0.0.{number}:7070"),
            leads: leads.to_vec(),
        };
        Cluster { cluster: "5b0c".to_owned(), node: 2, nodes: vec![node(1, &[0, 2]), node(2, &[])] }
    }

    #[test]
    fn a_machine_joins_at_the_node_that_answers_and_not_at_the_one_that_it_replaces() {
        let command = |replaces| joining_command(&two(), replaces, "sluice_join_1");
        assert_eq!(
            command(None),
            "sluice serve --listen 0.0.0.0:7070 --cluster-address HOST:7070 \\\n  \
             --join https://10.0.0.2:7070 --join-token sluice_join_1\n"
        );
        assert_eq!(command(Some(1)), command(None));
        assert!(command(Some(2)).contains("--join https://10.0.0.1:7070 "));
    }

    #[test]
    fn the_nodes_are_listed_with_the_shards_that_they_lead() {
        assert_eq!(
            table(&two()),
            "NODE  ADDRESS        LEADS\n\
             1     10.0.0.1:7070  0 2\n\
             2     10.0.0.2:7070         answers\n"
        );
    }

    #[test]
    fn health_begins_with_what_is_wrong() {
        let node = |number, reached| NodeStatus {
            number,
            address: format!("10.0.0.{number}:7070"),
            reached,
            silent_ms: None,
            silent_because: None,
            version: reached.then(|| "0.1.0".to_owned()),
            newest_behaviour: None,
            clock_ahead_ms: None,
        };
        let follower = |node, heard, records_behind| ShardFollower {
            node,
            votes: true,
            heard,
            records_behind,
            bytes_behind: 90 * records_behind,
            ms_behind: 0,
        };
        let followers = vec![follower(2, false, 7), follower(3, true, 1)];
        let status = ClusterStatus {
            cluster: "5b0c".to_owned(),
            node: 1,
            healthy: false,
            tolerates: 0,
            problems: vec!["node 2 (10.0.0.2:7070) is down: start it again".to_owned()],
            behaviour: Some(9),
            nodes: vec![node(1, true), node(2, false), node(3, true)],
            shards: vec![
                ReplicatedShard { shard: 0, leader: Some(1), term: 9, followers },
                ReplicatedShard { shard: 1, leader: None, term: 4, followers: Vec::new() },
            ],
        };
        assert_eq!(exit_code(&status), exit::UNAVAILABLE);
        assert_eq!(
            health(&status),
            "! node 2 (10.0.0.2:7070) is down: start it again\n\
             The cluster outlives the loss of no node now.\n\n\
             NODE  ADDRESS        VERSION\n\
             1     10.0.0.1:7070  0.1.0    answers\n\
             2     10.0.0.2:7070           not reached\n\
             3     10.0.0.3:7070  0.1.0\n\n\
             SHARD  NODE  ROLE       BEHIND\n\
             0      1     leads      term 9\n\
             0      2     follows    not heard of\n\
             0      3     follows    1 records, 90 bytes, 0 ms\n\
             1      none  no leader\n"
        );
        let led = ClusterStatus { shards: status.shards[..1].to_vec(), ..status };
        assert_eq!(exit_code(&led), 0, "whatever else is wrong");
        let well = ClusterStatus { healthy: true, tolerates: 1, problems: Vec::new(), ..led };
        assert!(
            health(&well).starts_with("The cluster is healthy, and outlives the loss of 1 node now.\n\n")
        );
    }
}
