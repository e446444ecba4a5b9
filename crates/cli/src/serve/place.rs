//! The place of the server in a cluster, as its files or its settings have it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sluice_front::tls::first_certificate;
use sluice_journal::holds_journal;
use sluice_peers::{ClusterId, Identity, NodeTable, PeerFiles};
use sluice_replica::{Members, NodeId};

use super::auto::{self, AutoCertificates};
use super::node_file::{Membership, NodeFile};
use crate::config::Config;
use crate::terminal::{CliError, Result};

/// The place of the server in a cluster.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Cluster and node.
    pub(super) identity: Identity,
    /// The cluster from which this one was recovered; `None`: it was not.
    pub(super) recovered_from: Option<ClusterId>,
    /// The nodes as far as they are known before the cluster's list is.
    pub(super) nodes: NodeTable,
    /// Members with which a log begins that was in no cluster before; of a machine that joins, none.
    pub(super) members: Members,
    /// True: the server has not started under its number yet.
    pub(super) is_new: bool,
    /// Source of the place.
    pub(super) source: Source,
}

/// Source of a server's place in a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The settings name all nodes, and files of certificates.
    Settings(PeerFiles),
    /// The file of the node, with this address of its own; certificates are those of `--tls auto`.
    File(String),
}

impl Place {
    /// The place of a server; `None`: it is alone.
    pub(super) fn of(config: &Config, file: Option<&NodeFile>) -> Result<Option<Place>> {
        match file.and_then(|file| Some((file, file.joined.as_ref()?))) {
            Some((file, joined)) => Place::of_file(file, joined).map(Some),
            None => match Place::of_settings(config)? {
                None => expect_no_node(config).map(|()| None),
                place => Ok(place),
            },
        }
    }

    /// The certificates with which the node speaks to others.
    pub(super) fn files(&self, made: Option<&AutoCertificates>) -> Option<PeerFiles> {
        match (&self.source, made) {
            (Source::Settings(files), _) => Some(files.clone()),
            (Source::File(_), Some(made)) => {
                let (cert, key) = (made.server.cert.clone(), made.server.key.clone());
                Some(PeerFiles { cert, key, ca: made.ca.clone() })
            }
            (Source::File(_), None) => None,
        }
    }

    fn of_file(file: &NodeFile, joined: &Membership) -> Result<Place> {
        let identity =
            joined.identity().ok_or_else(|| CliError::failed("the file of the node names none"))?;
        let members = joined.is_first().then(|| Members::new(vec![identity.node], Vec::new(), joined.node));
        Ok(Place {
            identity,
            recovered_from: joined.recovered_from.as_ref().and_then(|id| id.parse().ok()),
            nodes: joined.table(),
            members: members.flatten().unwrap_or_default(),
            is_new: joined.is_new,
            source: Source::File(file.address.clone()),
        })
    }

    fn of_settings(config: &Config) -> Result<Option<Place>> {
        let members = &config.cluster_members.0;
        let (Some(cert), Some(key), Some(ca)) =
            (config.tls_cert.0.clone(), config.tls_key.0.clone(), config.tls_client_ca.0.clone())
        else {
            return Ok(None);
        };
        if members.is_empty() {
            return Ok(None);
        }
        let identity = identity(&cert).map_err(|e| CliError::usage(format!("{}: {e}", cert.display())))?;
        let addresses: BTreeMap<NodeId, String> =
            members.iter().filter_map(|(number, at)| Some((NodeId::new(*number)?, at.clone()))).collect();
        if !addresses.contains_key(&identity.node) {
            return Err(CliError::usage(format!(
                "cluster_members has no node {}, which {} names",
                identity.node.get(),
                cert.display()
            )));
        }
        let highest = addresses.keys().last().map_or(0, |node| node.get());
        let members = Members::new(addresses.keys().copied().collect(), Vec::new(), highest)
            .ok_or_else(|| CliError::usage("cluster_members names more nodes than a cluster can have"))?;
        let nodes = NodeTable::of(addresses);
        let source = Source::Settings(PeerFiles { cert, key, ca });
        Ok(Some(Place { identity, recovered_from: None, nodes, members, is_new: false, source }))
    }
}

/// Checks that no certificate of a node lies beside a data directory without data: its disk may not be
/// mounted, and a server alone would take messages in its place.
///
/// # Errors
/// A sentence that says what to do.
pub(super) fn expect_no_node(config: &Config) -> Result<()> {
    let has_data = config.memory || holds_journal(&config.data_dir.join("shard-000"));
    let cert = auto::server_certificate(config);
    let Some(identity) = identity(&cert).ok().filter(|_| !has_data) else { return Ok(()) };
    let (cert, node, data) = (cert.display(), identity.node.get(), config.data_dir.display());
    let told = format!("{cert} is the certificate of node {node} of a cluster, whose data are not in {data}");
    Err(CliError::usage(told)
        .hint("Mount the disk with the data, if it is not mounted.")
        .hint(format!(
            "If they are lost: `sluice cluster replace {node}` on another node lets this machine join in its place, \
             and `sluice cluster add` if it was removed."
        ))
        .hint("For a server of no cluster name another folder with --tls-dir, or move this one away."))
}

fn identity(cert: &Path) -> std::result::Result<Identity, String> {
    let pem = fs::read(cert).map_err(|error| error.to_string())?;
    Identity::of_certificate(&first_certificate(&pem)?).map_err(|error| error.to_string())
}
