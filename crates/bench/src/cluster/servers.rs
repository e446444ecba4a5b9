//! The servers that are compared: all run at once, and take turns under the load.

use std::path::Path;

use crate::endpoint::Endpoint;
use crate::nodes::Nodes;
use crate::server::{Server, ServerOptions};

/// Number of independent servers, as many as the cluster has nodes.
const INDEPENDENT: usize = 3;

/// Group of servers under the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Group {
    /// A server alone.
    One,
    /// Nodes that replicate.
    Cluster,
    /// Servers that know nothing of each other, of which each is given all messages.
    Independent,
}

impl Group {
    /// All groups, in the order of their declaration.
    pub(super) const ALL: [Group; 3] = [Group::One, Group::Cluster, Group::Independent];
}

/// The servers of all groups.
#[derive(Debug)]
pub(super) struct Servers {
    one: Server,
    nodes: Nodes,
    independent: Vec<Server>,
}

impl Servers {
    /// Starts the servers beside a cluster, with data in a folder. Blocks.
    pub(super) fn start(folder: &Path, options: &ServerOptions, nodes: Nodes) -> Result<Servers, String> {
        let one = Server::start(&folder.join("one"), options)?;
        let independent = (1..=INDEPENDENT)
            .map(|number| Server::start(&folder.join(format!("independent-{number}")), options))
            .collect::<Result<_, _>>()?;
        Ok(Servers { one, nodes, independent })
    }

    /// Processes of a group.
    pub(super) fn processes(&self, group: Group) -> Result<Vec<u32>, String> {
        match group {
            Group::One => Ok(vec![self.one.pid()]),
            Group::Cluster => self.nodes.pids(),
            Group::Independent => Ok(self.independent.iter().map(Server::pid).collect()),
        }
    }

    /// Servers of a group that its clients talk to: of a cluster the one that leads.
    pub(super) async fn endpoints(&self, group: Group) -> Result<Vec<Endpoint>, String> {
        Ok(match group {
            Group::One => vec![self.one.endpoint().clone()],
            Group::Cluster => vec![self.nodes.endpoint(self.nodes.leader().await?).clone()],
            Group::Independent => self.independent.iter().map(|server| server.endpoint().clone()).collect(),
        })
    }

    /// Stops all servers but the nodes of the cluster.
    pub(super) fn stop_others(self) -> Result<Nodes, String> {
        self.one.stop()?;
        self.independent.into_iter().try_for_each(Server::stop)?;
        Ok(self.nodes)
    }
}
