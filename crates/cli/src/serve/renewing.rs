//! A node that may have forgotten what it acknowledged gets another number from the cluster, and starts again
//! under it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_calls::roster::renewal::ask;
use sluice_node::Node;
use sluice_peers::Peers;
use sluice_replica::NodeId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::node_file::{Membership, NodeFile};
use crate::terminal::{CliError, Result};

/// Pause between two looks, and between two rounds of questions.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time after which the log says again that the node waits.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The parts that watch for what the node has forgotten.
pub(super) struct Renewing {
    pub(super) node: Node,
    pub(super) peers: Peers,
    pub(super) own: NodeId,
    /// Data directory, with the file of the node; `None`: its number stands in the settings.
    pub(super) data_dir: Option<PathBuf>,
    /// Told when the file of the node has another number.
    pub(super) renewed: Arc<Notify>,
}

impl Renewing {
    /// Watches for as long as the server runs, or until the node has another number.
    pub(super) async fn run(self) {
        while !self.node.has_forgotten() {
            sleep(LOOK_EVERY).await;
        }
        tracing::error!(
            "node {} may have forgotten what it acknowledged, after a loss of power before it was synced, of a part of \
             the log, or of other data: it neither votes nor counts under this number",
            self.own.get()
        );
        let Some(data_dir) = &self.data_dir else {
            tracing::error!(
                "its number stands in cluster_members, so that it cannot take another: make the cluster anew of a backup"
            );
            return;
        };
        let number = self.number().await;
        let mut logged = String::new();
        while let Err(error) = self.take(data_dir, number) {
            if error.message() != logged {
                logged = error.message().to_owned();
                tracing::error!("the new number {number} cannot be kept, which is tried again: {logged}");
            }
            sleep(LOOK_EVERY).await;
        }
        self.renewed.notify_one();
    }

    /// Asks the other nodes for a number until one has it.
    async fn number(&self) -> u64 {
        let mut told = Instant::now();
        loop {
            for peer in self.peers.connected() {
                if let Some(number) = ask(&self.node, peer.node.get()).await {
                    return number;
                }
            }
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                tracing::warn!(
                    "no node has given this one a new number yet, since none leads: look at `sluice cluster status`"
                );
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Writes the number into the file of the node.
    fn take(&self, data_dir: &Path, number: u64) -> Result<()> {
        let missing = || CliError::failed("the file of the node is gone");
        let file = NodeFile::read(data_dir)?.ok_or_else(missing)?;
        let former = file.joined.clone().ok_or_else(missing)?;
        let known = self.peers.nodes();
        let others = known.addresses.iter().filter(|(node, _)| **node != self.own);
        let others = others.map(|(node, address)| (node.get(), address.clone()));
        let nodes = others.chain([(number, file.address.clone())]).collect();
        let joined = Some(Membership { node: number, is_new: true, nodes, ..former });
        NodeFile { joined, ..file }.write(data_dir)?;
        tracing::info!("this machine was node {}, and is node {number} from now on", self.own.get());
        Ok(())
    }
}
