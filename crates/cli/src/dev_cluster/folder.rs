//! The folder of a cluster that runs on one machine: a folder `tls` with the CA and certificates, and one for
//! each node with its data.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use sluice_peers::{ClusterId, Identity};
use sluice_replica::NodeId;

use super::server::{NodeFiles, begin_data};
use crate::cert::{Files, Folder, Maker};
use crate::config::RootKeySource;
use crate::root_keys::RootKeyStore;
use crate::terminal::{CliError, Result};

const CA_DAYS: u32 = 3_650;
const DAYS: u32 = 397;
const ADMIN: &str = "admin";
const ADMIN_SCOPE: &str = "sluice://ns/*?perm=admin";
/// File that is there when everything else is.
const COMPLETE: &str = "complete";

/// A folder with everything in it.
#[derive(Debug)]
pub(super) struct DevFolder {
    path: PathBuf,
    tls: Folder,
}

impl DevFolder {
    /// Opens a folder, or makes it for a number of nodes.
    ///
    /// # Errors
    /// The folder holds something else, or was not completed; it cannot be written.
    pub(super) async fn open_or_make(path: &Path, nodes: u16) -> Result<DevFolder> {
        let path = std::path::absolute(path).map_err(|e| CliError::unwritable(path, &e))?;
        let roots = RootKeyStore::new(&RootKeySource::Beside, &path);
        let folder = DevFolder { tls: Folder::new(path.join("tls"), roots), path };
        if folder.path.join(COMPLETE).exists() {
            return Ok(folder);
        }
        if folder.path.exists() {
            let there = format!("{} holds no whole cluster", folder.path.display());
            return Err(CliError::usage(there).hint("Name another folder with --dir, or remove this one."));
        }
        folder.make_certificates(nodes)?;
        begin_data(&folder.data(1)).await?;
        let copied = (2..=nodes).try_for_each(|number| folder.copy_first(number));
        let complete = copied.and_then(|()| fs::write(folder.path.join(COMPLETE), ""));
        complete.map_err(|e| CliError::unwritable(&folder.path, &e))?;
        Ok(folder)
    }

    /// The files of a node.
    pub(super) fn files(&self, number: u16) -> NodeFiles {
        NodeFiles { data: self.data(number), certificate: self.tls.files(&name(number)), ca: self.ca() }
    }

    /// The certificate of the CA, of nodes and of clients.
    pub(super) fn ca(&self) -> PathBuf {
        self.tls.ca().cert
    }

    /// The certificate and key of an administrator.
    pub(super) fn admin(&self) -> Files {
        self.tls.files(ADMIN)
    }

    fn data(&self, number: u16) -> PathBuf {
        self.node(number).join("data")
    }

    fn node(&self, number: u16) -> PathBuf {
        self.path.join(name(number))
    }

    fn make_certificates(&self, nodes: u16) -> Result<()> {
        let cluster = ClusterId(RandomState::new().build_hasher().finish());
        self.tls.make_ca(&format!("Sluice cluster {cluster}"), CA_DAYS)?;
        let ca = self.tls.open_ca().map_err(CliError::failed)?;
        let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        for number in 1..=nodes {
            let Some(node) = NodeId::new(number.into()) else { continue };
            let identity = Identity { cluster, node }.to_string();
            let pair = ca.node(&identity, &hosts, DAYS, Maker::Person).map_err(CliError::failed)?;
            self.tls.write(&name(number), &pair, false)?;
        }
        let scopes = [ADMIN_SCOPE.to_owned()];
        let pair = ca.client(ADMIN, &scopes, DAYS, Maker::Person).map_err(CliError::failed)?;
        self.tls.write(ADMIN, &pair, false).map(drop)
    }

    /// Gives a node a copy of what the first has: its data and its root keys.
    fn copy_first(&self, number: u16) -> io::Result<()> {
        copy(&self.node(1), &self.node(number))
    }
}

fn name(number: u16) -> String {
    format!("node-{number}")
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
