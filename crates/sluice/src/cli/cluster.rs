//! `sluice cluster`.

use clap::Subcommand;
use sluice_client::Cluster;

use super::connect::ServerFlags;
use super::output::Table;
use super::{Out, Result};
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
}

pub(super) async fn run(verb: ClusterVerb, out: Out) -> Result<u8> {
    match verb {
        ClusterVerb::Dev(args) => return dev_cluster::run(args, out).await,
        ClusterVerb::Members { server } => {
            let connection = server.connect()?;
            let cluster = connection.client.cluster().await.map_err(|e| connection.error(&e))?;
            out.show(&cluster, table)?;
        }
    }
    Ok(0)
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
