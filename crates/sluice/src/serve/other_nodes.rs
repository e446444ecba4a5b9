//! The other nodes of a cluster, to which requests of clients are passed on.

use std::collections::BTreeMap;
use std::io;

use sluice_front::nodes::{Connecting, Nodes, Wire};
use sluice_peers::{Identity, PeerFiles};
use sluice_replica::NodeId;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// The protocol of requests that are passed on (RFC 9113 §3.3).
const HTTP2: &[u8] = b"h2";

/// The nodes of a cluster, as one of them sees the others.
#[derive(Debug)]
pub(super) struct OtherNodes {
    pub(super) own: Identity,
    /// Addresses of all nodes, as `HOST:PORT`.
    pub(super) addresses: BTreeMap<NodeId, String>,
    pub(super) files: PeerFiles,
}

impl OtherNodes {
    fn address_of(&self, node: u64) -> Option<(NodeId, &String)> {
        self.addresses.get_key_value(&NodeId::new(node)?).map(|(node, address)| (*node, address))
    }
}

impl Nodes for OtherNodes {
    fn connect(&self, node: u64) -> Connecting<'_> {
        Box::pin(async move {
            let unknown = || io::Error::other(format!("cluster_members has no node {node}"));
            let (node, address) = self.address_of(node).ok_or_else(unknown)?;
            let there = Identity { node, ..self.own };
            let stream = self.files.connect(there, address, HTTP2).await.map_err(io::Error::other)?;
            Ok(Box::new(stream) as Box<dyn Wire>)
        })
    }

    fn address(&self, node: u64) -> Option<String> {
        self.address_of(node).map(|(_, address)| address.clone())
    }

    fn is_node(&self, certificates: &[CertificateDer<'_>]) -> bool {
        self.files.node_of(certificates).is_some_and(|there| {
            there.cluster == self.own.cluster
                && there.node != self.own.node
                && self.addresses.contains_key(&there.node)
        })
    }
}
