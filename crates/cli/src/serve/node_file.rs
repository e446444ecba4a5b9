//! The file `node` in a data directory: the place of this server in a cluster.
//!
//! It is no part of a backup, so what is restored from one is a server alone. The keys of the cluster lie
//! beside the data directory, with the certificates of `--tls auto`.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sluice_calls::roster::check_address;
use sluice_peers::{ClusterId, Identity, NodeTable};
use sluice_replica::NodeId;

use crate::atomic_file::AtomicFile;
use crate::config::Config;
use crate::terminal::{CliError, Result};

const NAME: &str = "node";

/// The place of a server in a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeFile {
    /// Address at which clients and other nodes reach it, as `host:port`.
    pub(super) address: String,
    /// Secret by which the cluster knows this machine again while it joins.
    pub(super) machine: String,
    /// Its cluster; `None`: it has not joined yet.
    pub(crate) joined: Option<Membership>,
    /// Its place when the recovery of its cluster is done, which was begun; `None`: none was.
    pub(super) recovering: Option<Membership>,
    /// True: it was removed from the cluster.
    pub(super) is_removed: bool,
}

/// A number in a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Membership {
    /// Id of the cluster.
    pub(super) cluster: String,
    /// Number of the node.
    pub(super) node: u64,
    /// True: the server has not started under this number yet, so that it has promised nothing.
    pub(super) is_new: bool,
    /// Addresses of all nodes by their numbers, as this one knew them last.
    pub(crate) nodes: BTreeMap<u64, String>,
    /// Id of the cluster from which this one was recovered; `None`: it was not.
    pub(super) recovered_from: Option<String>,
}

impl NodeFile {
    /// Reads the file of a data directory; `None`: the server belongs to no cluster.
    pub(crate) fn read(data_dir: &Path) -> Result<Option<NodeFile>> {
        let path = path(data_dir);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CliError::unreadable(&path.display().to_string(), &error)),
        };
        let damaged = |reason: String| {
            CliError::failed(format!("{} is damaged: {reason}", path.display()))
                .hint("Bring it back from a copy, or replace this node: `sluice cluster replace`.")
        };
        let file: NodeFile = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        let mut places = file.joined.iter().chain(&file.recovering);
        if places.any(|place| place.identity().is_none()) {
            return Err(damaged("it names no node".to_owned()));
        }
        Ok(Some(file))
    }

    /// Changes the place in the file of a data directory, if it is that of the node with this number, whose
    /// address is that in its list from then on. Nothing is written where it is so already.
    pub(super) fn change(data_dir: &Path, node: u64, change: impl FnOnce(&mut Membership)) -> Result<()> {
        let Some(mut file) = NodeFile::read(data_dir)? else { return Ok(()) };
        let before = file.clone();
        if let Some(place) = file.joined.as_mut().filter(|place| place.node == node) {
            change(place);
            if let Some(address) = place.nodes.get(&node) {
                file.address.clone_from(address);
            }
        }
        if file == before { Ok(()) } else { file.write(data_dir) }
    }

    /// Writes the file durably.
    pub(super) fn write(&self, data_dir: &Path) -> Result<()> {
        let path = path(data_dir);
        let write = || {
            fs::create_dir_all(data_dir)?;
            let mut file = AtomicFile::create(&path, 0o600)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.finish()
        };
        write().map_err(|error| CliError::unwritable(&path, &error))
    }

    /// Removes the file of a data directory.
    pub(super) fn remove(data_dir: &Path) -> Result<()> {
        let path = path(data_dir);
        fs::remove_file(&path).map_err(|error| CliError::unwritable(&path, &error))
    }
}

impl Membership {
    /// The place of the node with which a cluster begins.
    pub(super) fn first(node: u64, address: &str) -> Membership {
        let cluster = ClusterId(RandomState::new().build_hasher().finish()).to_string();
        let nodes = [(node, address.to_owned())].into();
        Membership { cluster, node, is_new: false, nodes, recovered_from: None }
    }

    /// True when the cluster began with this node, as far as it knows of no other.
    pub(super) fn is_first(&self) -> bool {
        self.nodes.keys().eq([&self.node])
    }

    /// Cluster and node; `None`: the file does not name them.
    pub(super) fn identity(&self) -> Option<Identity> {
        Some(Identity { cluster: self.cluster.parse::<ClusterId>().ok()?, node: NodeId::new(self.node)? })
    }

    /// The nodes of the cluster.
    pub(super) fn table(&self) -> NodeTable {
        let address = |(number, address): (&u64, &String)| Some((NodeId::new(*number)?, address.clone()));
        NodeTable::of(self.nodes.iter().filter_map(address).collect())
    }
}

/// The address of a server for clients and other nodes.
pub(super) fn own_address(config: &Config) -> Result<String> {
    let address = config.cluster_address.0.as_ref().unwrap_or(&config.listen);
    check_address(address)
        .map_err(|why| CliError::usage(why).hint("Name it with --cluster-address HOST:PORT."))?;
    Ok(address.clone())
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_and_a_damaged_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(NodeFile::read(&data).unwrap(), None);
        let nodes: BTreeMap<u64, String> = [(1, "one:7070".to_owned()), (2, "two:7070".to_owned())].into();
        let joined =
            Membership { cluster: "00000000000000ab".to_owned(), nodes, ..Membership::first(2, "two:7070") };
        assert!(!joined.is_first() && Membership::first(4, "two:7070").is_first());
        let file = NodeFile {
            address: "two:7070".to_owned(),
            machine: "m".to_owned(),
            joined: Some(joined.clone()),
            recovering: Some(Membership::first(3, "two:7070")),
            is_removed: false,
        };
        file.write(&data).unwrap();
        assert_eq!(NodeFile::read(&data).unwrap(), Some(file.clone()));
        assert_eq!(joined.identity().unwrap().to_string(), "sluice://node/00000000000000ab/2");
        assert_eq!(joined.table().addresses.len(), 2);
        for (node, is_new) in [(3, false), (2, true)] {
            NodeFile::change(&data, node, |place| place.is_new = true).unwrap();
            assert_eq!(NodeFile::read(&data).unwrap().unwrap().joined.unwrap().is_new, is_new, "node {node}");
        }
        let moved = |place: &mut Membership| drop(place.nodes.insert(2, "two.example:7071".to_owned()));
        NodeFile::change(&data, 2, moved).unwrap();
        assert_eq!(NodeFile::read(&data).unwrap().unwrap().address, "two.example:7071");
        let nowhere = Membership { node: 0, ..joined };
        NodeFile { joined: Some(nowhere), ..file }.write(&data).unwrap();
        assert!(NodeFile::read(&data).is_err());
        fs::write(data.join(NAME), "{").unwrap();
        assert!(NodeFile::read(&data).unwrap_err().message().contains("is damaged"));
    }
}
