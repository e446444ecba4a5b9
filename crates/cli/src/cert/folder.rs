//! The folder of a CA: `ca.pem` and `ca.key`, and a `.pem` and a `.key` file for each certificate that it has
//! signed.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use sluice_journal::Encryption;

use super::read::{CertificateInfo, read_certificate};
use super::{Authority, Pair, sealed};
use crate::atomic_file::{AtomicFile, sync_folder_of};
use crate::root_keys::RootKeyStore;
use crate::terminal::{self, CliError, Fault};

const CA: &str = "ca";

/// Checks the base name of a pair's files.
pub(crate) fn pair_names(name: &str) -> Result<(), String> {
    sluice_calls::access::client_uri(name).map(drop)
}

/// The paths of a certificate and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Files {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// A folder of certificates.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Source of the root keys that open the CA's key where that is sealed.
    roots: RootKeyStore,
}

impl Folder {
    /// The folder with this path, whose CA's key may be sealed with one of these root keys.
    pub(crate) fn new(path: PathBuf, roots: RootKeyStore) -> Folder {
        Folder { path, roots }
    }

    /// The paths of the CA.
    pub(crate) fn ca(&self) -> Files {
        self.files(CA)
    }

    /// The paths of a pair.
    pub(crate) fn files(&self, name: &str) -> Files {
        Files { cert: self.path.join(format!("{name}.pem")), key: self.path.join(format!("{name}.key")) }
    }

    /// True when the folder has a CA.
    pub(crate) fn has_ca(&self) -> bool {
        self.ca().exist()
    }

    /// Opens the CA for signing.
    pub(crate) fn open_ca(&self) -> Result<Authority, String> {
        Authority::open(&self.read_ca()?).map_err(|e| format!("the CA in {}: {e}", self.path.display()))
    }

    /// Reads the CA, and opens its key if that is sealed.
    pub(crate) fn read_ca(&self) -> Result<Pair, String> {
        let files = self.ca();
        let Pair { cert, key } = files.read()?;
        if !sealed::is_sealed(&key) {
            return Ok(Pair { cert, key });
        }
        let roots = self.roots.read()?.unwrap_or_default();
        let key = sealed::open(&key, &roots).map_err(|e| {
            format!("{}: {e}: name the place of the root keys with --key-source", files.key.display())
        })?;
        Ok(Pair { cert, key })
    }

    /// Seals the CA's key with the root key of new files, unless it is, or they are not encrypted. A key that
    /// was taken off this machine is none to seal.
    pub(crate) fn seal_ca(&self, encryption: &Encryption) -> terminal::Result<()> {
        let files = self.ca();
        if !files.key.exists() {
            return Ok(());
        }
        if sealed::fits(&files.read().map_err(CliError::failed)?.key, encryption) {
            return Ok(());
        }
        self.keep_ca(&self.read_ca().map_err(CliError::failed)?, encryption)
    }

    /// Writes a new CA. An existing CA is never replaced, because all its certificates would become
    /// worthless.
    pub(crate) fn make_ca(&self, name: &str, days: u32) -> terminal::Result<Files> {
        if self.has_ca() {
            let there =
                format!("there is a CA in {} already: name another folder with --dir", self.path.display());
            return Err(CliError::of(Fault::Exists, there));
        }
        self.write(CA, &Authority::create(name, days).map_err(CliError::usage)?, false)
    }

    /// Writes the CA that a cluster has given this node, over a former copy of it, its key sealed with the
    /// root key of new files.
    pub(crate) fn keep_ca(&self, pair: &Pair, encryption: &Encryption) -> terminal::Result<()> {
        let key = sealed::seal(&pair.key, encryption).map_err(CliError::failed)?;
        self.write(CA, &Pair { cert: pair.cert.clone(), key }, true).map(drop)
    }

    /// Writes a pair; with `overwrite` it replaces existing files.
    pub(crate) fn write(&self, name: &str, pair: &Pair, overwrite: bool) -> terminal::Result<Files> {
        self.make().map_err(|e| CliError::unwritable(&self.path, &e))?;
        let files = self.files(name);
        for path in [&files.cert, &files.key] {
            if !overwrite && path.exists() {
                let there = format!("{} exists: --overwrite replaces it", path.display());
                return Err(CliError::of(Fault::Exists, there));
            }
        }
        // Both files are on disk before either gets its name, so that a full disk changes nothing. The
        // certificate is renamed first: it says who made the pair, even if the key does not get its name. A
        // reader finds both files, or two that do not match, and reads again.
        let mut parts = Vec::with_capacity(2);
        for (path, text, mode) in [(&files.cert, &pair.cert, 0o644), (&files.key, &pair.key, 0o600)] {
            parts.push((path, written(path, text, mode).map_err(|e| CliError::unwritable(path, &e))?));
        }
        for (path, part) in parts {
            part.finish().map_err(|e| CliError::unwritable(path, &e))?;
        }
        Ok(files)
    }

    /// Creates the folder durably, if it is missing.
    fn make(&self) -> std::io::Result<()> {
        if self.path.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        sync_folder_of(&self.path)
    }
}

impl Files {
    /// True when one of the files exists.
    pub(crate) fn exist(&self) -> bool {
        self.cert.exists() || self.key.exists()
    }

    /// Reads the certificate.
    pub(crate) fn read_certificate(&self) -> Result<CertificateInfo, String> {
        let pem = fs::read(&self.cert).map_err(|e| format!("cannot read {}: {e}", self.cert.display()))?;
        read_certificate(&pem).map_err(|e| format!("{}: {e}", self.cert.display()))
    }

    /// Reads the certificate as it is.
    pub(crate) fn read_pem(&self) -> Result<String, String> {
        read(&self.cert)
    }

    /// True when the private key exists and matches `seen`, the contents of the certificate.
    pub(crate) fn matches(&self, seen: &CertificateInfo) -> bool {
        let key = self.read().ok().and_then(|pair| KeyPair::from_pem(&pair.key).ok());
        key.is_some_and(|key| key.public_key_raw() == seen.public_key)
    }

    pub(crate) fn read(&self) -> Result<Pair, String> {
        Ok(Pair { cert: read(&self.cert)?, key: read(&self.key)? })
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// A complete file that has not got its name yet.
fn written(path: &Path, text: &str, mode: u32) -> std::io::Result<AtomicFile> {
    let mut part = AtomicFile::create(path, mode)?;
    part.write_all(text.as_bytes())?;
    part.sync()?;
    Ok(part)
}
