//! The folder of a CA: `ca.pem` and `ca.key`, and a `.pem` and a `.key` for each certificate that it has
//! signed.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;

use super::read::{Seen, see};
use super::{Authority, Pair};
use crate::part::{Part, sync_folder_of};
use crate::terminal::{self, CliError, Fault};

const CA: &str = "ca";

/// Names that a pair's files may have.
pub(crate) fn pair_names(name: &str) -> Result<(), String> {
    sluice_calls::access::client_uri(name).map(drop)
}

/// The two files of a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Files {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// A folder of certificates.
#[derive(Clone, Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// The files of the CA.
    pub(crate) fn ca(&self) -> Files {
        self.files(CA)
    }

    /// The files of a pair.
    pub(crate) fn files(&self, name: &str) -> Files {
        Files { cert: self.0.join(format!("{name}.pem")), key: self.0.join(format!("{name}.key")) }
    }

    /// Whether a CA is there.
    pub(crate) fn has_ca(&self) -> bool {
        self.ca().exist()
    }

    /// The CA, to sign with.
    pub(crate) fn open_ca(&self) -> Result<Authority, String> {
        let files = self.ca();
        Authority::open(&files.read()?).map_err(|e| format!("the CA in {}: {e}", self.0.display()))
    }

    /// Writes a new CA; one that is there is never replaced, since all that it has signed would be worthless.
    pub(crate) fn make_ca(&self, name: &str, days: u32) -> terminal::Result<Files> {
        if self.has_ca() {
            let there =
                format!("there is a CA in {} already: name another folder with --dir", self.0.display());
            return Err(CliError::of(Fault::Exists, there));
        }
        self.write(CA, &Authority::create(name, days).map_err(CliError::usage)?, false)
    }

    /// Writes a pair; with `overwrite` instead of what is there.
    pub(crate) fn write(&self, name: &str, pair: &Pair, overwrite: bool) -> terminal::Result<Files> {
        self.make().map_err(|e| CliError::unwritable(&self.0, &e))?;
        let files = self.files(name);
        for path in [&files.cert, &files.key] {
            if !overwrite && path.exists() {
                let there = format!("{} exists: --overwrite replaces it", path.display());
                return Err(CliError::of(Fault::Exists, there));
            }
        }
        // Both are on the disk before either has its name, so that a full disk changes nothing. Then the
        // certificate first: it tells who has made the pair, also when the key did not get its name any more.
        // A reader finds the two of them, or what does not fit, and looks again.
        let mut parts = Vec::with_capacity(2);
        for (path, text, mode) in [(&files.cert, &pair.cert, 0o644), (&files.key, &pair.key, 0o600)] {
            parts.push((path, written(path, text, mode).map_err(|e| CliError::unwritable(path, &e))?));
        }
        for (path, part) in parts {
            part.finish().map_err(|e| CliError::unwritable(path, &e))?;
        }
        Ok(files)
    }

    /// Makes the folder, durably, when it is missing.
    fn make(&self) -> std::io::Result<()> {
        if self.0.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        sync_folder_of(&self.0)
    }
}

impl Files {
    /// Whether one of them is there.
    pub(crate) fn exist(&self) -> bool {
        self.cert.exists() || self.key.exists()
    }

    /// What is in the certificate.
    pub(crate) fn see(&self) -> Result<Seen, String> {
        let pem = fs::read(&self.cert).map_err(|e| format!("cannot read {}: {e}", self.cert.display()))?;
        see(&pem).map_err(|e| format!("{}: {e}", self.cert.display()))
    }

    /// Whether the private key is there and is that of the certificate, of which this was seen.
    pub(crate) fn fit(&self, seen: &Seen) -> bool {
        let key = self.read().ok().and_then(|pair| KeyPair::from_pem(&pair.key).ok());
        key.is_some_and(|key| key.public_key_raw() == seen.public_key)
    }

    pub(crate) fn read(&self) -> Result<Pair, String> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
        };
        Ok(Pair { cert: read(&self.cert)?, key: read(&self.key)? })
    }
}

/// A file that is whole, and yet to get its name.
fn written(path: &Path, text: &str, mode: u32) -> std::io::Result<Part> {
    let mut part = Part::create(path, mode)?;
    part.write_all(text.as_bytes())?;
    part.sync()?;
    Ok(part)
}
