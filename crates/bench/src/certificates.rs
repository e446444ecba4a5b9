//! Certificates for one run: a CA, and what it signs. `sluice cert` of this program makes them.

use std::path::{Path, PathBuf};

use super::process::this_program;

/// Certificates outlive the longest run by far.
const DAYS: &str = "60";
const CA: &str = "ca";
const SERVER: &str = "server";
const CLIENT: &str = "bench";

/// The two PEM files of a certificate.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

/// The folder of a CA and of what it has signed.
#[derive(Clone, Debug)]
pub(super) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// The folder as it is; nothing is made yet.
    pub(super) fn in_folder(folder: &Path) -> Certificates {
        Certificates { folder: folder.to_owned() }
    }

    /// Makes the CA, a server's certificate for these names, and an administrator's, unless there is a CA
    /// already.
    ///
    /// # Errors
    /// What `sluice cert` says on stderr.
    pub(super) fn make(&self, names: &[&str]) -> Result<(), String> {
        if self.ca().cert.exists() {
            return Ok(());
        }
        self.run(&["ca", "--name", "Sluice benchmark CA"])?;
        self.run(&[&["server", "--file", SERVER], names].concat())?;
        self.run(&["client", CLIENT, "--scope", "*=admin"])
    }

    /// The CA.
    pub(super) fn ca(&self) -> Pair {
        self.pair(CA)
    }

    /// The server's certificate.
    pub(super) fn server(&self) -> Pair {
        self.pair(SERVER)
    }

    /// The administrator's certificate: benchmarks create and delete queues and namespaces.
    pub(super) fn client(&self) -> Pair {
        self.pair(CLIENT)
    }

    fn pair(&self, name: &str) -> Pair {
        Pair { cert: self.folder.join(format!("{name}.pem")), key: self.folder.join(format!("{name}.key")) }
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let failed = |reason: &dyn std::fmt::Display| format!("cannot make certificates: {reason}");
        let output = this_program()?
            .arg("cert")
            .args(arguments)
            .args(["--days", DAYS])
            .arg("--dir")
            .arg(&self.folder)
            .output()
            .map_err(|error| failed(&error))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}
