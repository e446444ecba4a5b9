//! The server as a node of a cluster, for its calls.

use std::collections::BTreeMap;

use sluice_calls::roster::join_token::fingerprint;
use sluice_calls::roster::{ClusterCa, OwnNode};
use sluice_front::tls::first_certificate;
use sluice_peers::{Identity, Peers};

use crate::cert::Folder;

/// The server as a node.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) identity: Identity,
    pub(super) cluster: String,
    pub(super) peers: Peers,
    /// Folder of the cluster's CA; `None`: others sign the certificates of its nodes.
    pub(super) ca: Option<Folder>,
}

impl OwnNode for Own {
    fn cluster(&self) -> &str {
        &self.cluster
    }

    fn number(&self) -> u64 {
        self.identity.node.get()
    }

    fn addresses(&self) -> BTreeMap<u64, String> {
        let nodes = self.peers.nodes();
        nodes.addresses.iter().map(|(node, address)| (node.get(), address.clone())).collect()
    }

    fn connected(&self) -> Vec<u64> {
        self.peers.connected().iter().map(|peer| peer.node.get()).collect()
    }

    fn authority(&self) -> Result<ClusterCa, String> {
        let fixed = "the nodes of this cluster are those of cluster_members: no machine can join it";
        let folder = self.ca.as_ref().ok_or(fixed)?;
        let pair = folder.read_ca().map_err(|e| format!("{e}: ask a node that has the key of the CA"))?;
        let certificate = first_certificate(pair.cert.as_bytes())?;
        Ok(ClusterCa { certificate: pair.cert, fingerprint: fingerprint(&certificate), key: pair.key })
    }
}
