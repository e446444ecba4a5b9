//! The other nodes of a cluster, to which requests of clients are passed on.

use std::io;

use sluice_front::nodes::{Connecting, Nodes, Wire};
use sluice_peers::{Identity, PeerFiles, Peers};
use sluice_replica::NodeId;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// The protocol of requests that are passed on (RFC 9113 §3.3).
const HTTP2: &[u8] = b"h2";

/// The nodes of a cluster, as one of them sees the others.
#[derive(Debug)]
pub(super) struct OtherNodes {
    pub(super) own: Identity,
    pub(super) peers: Peers,
    pub(super) files: PeerFiles,
}

impl Nodes for OtherNodes {
    fn connect(&self, node: u64) -> Connecting<'_> {
        Box::pin(async move {
            let unknown = || io::Error::other(format!("the cluster has no node {node}"));
            let address = self.address(node).ok_or_else(unknown)?;
            let there = Identity { node: NodeId::new(node).ok_or_else(unknown)?, ..self.own };
            let stream = self.files.connect(there, &address, HTTP2).await.map_err(io::Error::other)?;
            Ok(Box::new(stream) as Box<dyn Wire>)
        })
    }

    fn address(&self, node: u64) -> Option<String> {
        self.peers.nodes().addresses.get(&NodeId::new(node)?).cloned()
    }

    fn is_node(&self, certificates: &[CertificateDer<'_>]) -> bool {
        self.files.node_of(certificates).is_some_and(|there| {
            there.cluster == self.own.cluster
                && there.node != self.own.node
                // Of one that joins, requests may come before the list with it.
                && !self.peers.nodes().is_removed(there.node)
        })
    }
}
