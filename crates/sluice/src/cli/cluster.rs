//! `sluice cluster`.

use std::time::Duration;

use clap::{Args, Subcommand};
use sluice_client::{Cluster, MadeJoinToken};

use super::confirm::Confirmation;
use super::connect::ServerFlags;
use super::format::time;
use super::output::Table;
use super::{Out, Result, duration, number};
use crate::dev_cluster::{self, DevArgs};
use crate::serve::init::{self, InitArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Run three nodes of one cluster in this terminal, to try it out.
    Dev(DevArgs),
    /// Make a stopped server the first node of a new cluster, with the data that it has.
    Init(InitArgs),
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
        #[command(flatten)]
        validity: Validity,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Create a join token for a machine that replaces a node, and print it.
    #[command(after_help = "The node is removed when the machine that joins has all data.")]
    Replace {
        /// Number of the node, as `sluice cluster members` shows it.
        #[arg(value_parser = number(1u64..))]
        node: u64,
        #[command(flatten)]
        validity: Validity,
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
        ClusterVerb::Init(args) => init::run(args, out)?,
        ClusterVerb::Token { validity, server } => make_token(&server, validity, None, out).await?,
        ClusterVerb::Replace { node, validity, server } => {
            make_token(&server, validity, Some(node), out).await?;
        }
        ClusterVerb::Remove { node, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("remove node {node} from the cluster for good"))?;
            let leaving = connection.client.cluster_remove(node).await.map_err(|e| connection.error(&e))?;
            out.show(&leaving, |it| format!("node {} at {} is being removed\n", it.node, it.address))?;
        }
    }
    Ok(0)
}

async fn make_token(server: &ServerFlags, validity: Validity, replaces: Option<u64>, out: Out) -> Result<()> {
    let connection = server.connect()?;
    let ttl_ms = validity.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let made = connection.client.cluster_token_create(ttl_ms, replaces).await;
    let made = made.map_err(|e| connection.error(&e))?;
    out.note(&format!(
        "One machine can join with it until {}. Keep it: it cannot be shown again.",
        time(made.expires_at_ms)
    ));
    out.show(&made, |made: &MadeJoinToken| format!("{}\n", made.token))
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

#[cfg(test)]
mod tests {
    use sluice_client::ClusterNode;

    use super::*;

    #[test]
    fn the_nodes_are_listed_with_the_shards_that_they_lead() {
        let node = |number, leads: &[u32]| ClusterNode {
            number,
            address: format!("10.0.0.{number}:7070"),
            leads: leads.to_vec(),
        };
        let cluster =
            Cluster { cluster: "5b0c".to_owned(), node: 2, nodes: vec![node(1, &[0, 2]), node(2, &[])] };
        assert_eq!(
            table(&cluster),
            "NODE  ADDRESS        LEADS\n\
             1     10.0.0.1:7070  0 2\n\
             2     10.0.0.2:7070         answers\n"
        );
    }
}
