//! `sluice cluster`.

use std::time::Duration;

use clap::Subcommand;
use sluice_client::Cluster;

use super::confirm::Confirmation;
use super::connect::ServerFlags;
use super::format::time;
use super::output::Table;
use super::{Out, Result, duration, number};
use crate::dev_cluster::{self, DevArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Run three nodes of one cluster in this terminal, to try it out.
    Dev(DevArgs),
    /// List the nodes of the cluster, and the shards that each leads.
    Members {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Create a join token and print it. It cannot be printed again.
    #[command(
        after_help = "One machine can join with it: `sluice serve --join https://HOST:PORT --join-token TOKEN`."
    )]
    Token {
        /// Time for which the token is valid [default: 1h; at most 7d].
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        ttl: Option<Duration>,
        #[command(flatten)]
        server: ServerFlags,
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

pub(super) async fn run(verb: ClusterVerb, out: Out) -> Result<u8> {
    match verb {
        ClusterVerb::Dev(args) => return dev_cluster::run(args, out).await,
        ClusterVerb::Members { server } => {
            let connection = server.connect()?;
            let cluster = connection.client.cluster().await.map_err(|e| connection.error(&e))?;
            out.show(&cluster, table)?;
        }
        ClusterVerb::Token { ttl, server } => {
            let connection = server.connect()?;
            let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
            let made = connection.client.cluster_token_create(ttl_ms).await;
            let made = made.map_err(|e| connection.error(&e))?;
            out.note(&format!(
                "One machine can join with it until {}. Keep it: it cannot be shown again.",
                time(made.expires_at_ms)
            ));
            out.show(&made, |made| format!("{}\n", made.token))?;
        }
        ClusterVerb::Remove { node, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("remove node {node} from the cluster for good"))?;
            let removed = connection.client.cluster_remove(node).await;
            let removed = removed.map_err(|e| connection.error(&e))?;
            out.show(&removed, |it| format!("removed node {}: {} at {}\n", it.number, it.name, it.address))?;
        }
    }
    Ok(0)
}

fn table(cluster: &Cluster) -> String {
    let mut table = Table::new(&["NODE", "NAME", "ADDRESS", "JOINED", "LEADS", ""]);
    for node in &cluster.nodes {
        let leads: Vec<String> = node.leads.iter().map(u32::to_string).collect();
        table.row([
            node.number.to_string(),
            node.name.clone(),
            node.address.clone(),
            time(node.joined_at_ms),
            leads.join(" "),
            if node.number == cluster.node { "answers".to_owned() } else { String::new() },
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use sluice_client::ClusterNode;

    use super::*;

    #[test]
    fn the_nodes_are_listed_with_the_shards_that_they_lead() {
        let node = |number, leads: &[u32]| ClusterNode {
            number,
            name: format!("n{number}"),
            address: format!("10.0.0.{number}:7070"),
            joined_at_ms: 0,
            leads: leads.to_vec(),
        };
        let cluster =
            Cluster { cluster: "5b0c".to_owned(), node: 2, nodes: vec![node(1, &[0, 2]), node(2, &[])] };
        assert_eq!(
            table(&cluster),
            "NODE  NAME  ADDRESS        JOINED                LEADS\n\
             1     n1    10.0.0.1:7070  1970-01-01 00:00:00Z  0 2\n\
             2     n2    10.0.0.2:7070  1970-01-01 00:00:00Z         answers\n"
        );
    }
}
