//! `--tls auto`: a CA, the server's certificate, and an administrator's certificate, made by the first start
//! and kept.
//!
//! The files lie beside the data directory, not in it: more people see backups and copies of the data than
//! may sign certificates. Files that the server has not made are used unchanged and never replaced.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sluice_peers::Identity;

use super::names;
use crate::cert::{AUTO_SUFFIX, Authority, Files, Folder, Maker, Pair};
use crate::config::Config;
use crate::root_keys::RootKeyStore;
use crate::terminal::{CliError, Result};

const CA_DAYS: u32 = 3_650;
const DAYS: u32 = 397;
/// Remaining validity below which a certificate is renewed.
pub(crate) const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);
/// Advice to a server alone when its CA is missing or cannot be used.
const ADVICE: &str =
    "bring it back; or move its whole folder away: the next start creates a new CA, which clients then need";
/// The same to a node, whose CA is that of its cluster.
const ADVICE_IN_CLUSTER: &str = "bring its folder back from a copy that was made on this machine, for another node's \
    copy of the key is sealed with that node's root key; or replace this node: `sluice cluster replace`";
pub(crate) const SERVER: &str = "server";
const ADMIN: &str = "admin";
const ADMIN_SCOPE: &str = "sluice://ns/*?perm=admin";

/// The folder of the certificates, and the files that the server and clients need.
#[derive(Clone, Debug)]
pub(super) struct AutoCertificates {
    folder: Folder,
    config: Config,
    /// Place of the server in a cluster, which is in its certificate; `None`: it is alone.
    identity: Option<String>,
    pub(super) ca: PathBuf,
    pub(super) server: Files,
    /// The administrator's certificate and key.
    pub(super) client: Files,
}

/// State of a certificate and its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PairState {
    /// The pair is present and valid.
    Good,
    /// The server has made the pair; it is valid, but expires soon or lacks a name.
    Short,
    /// The pair is missing, or the server has made it and it is not valid any more.
    ToMake,
    /// Somebody else has made the pair.
    Foreign,
}

impl AutoCertificates {
    /// Creates missing files, and renews certificates that expire soon or lack a name of the server.
    /// `identity`: place of the server in a cluster, whose CA is there already.
    pub(super) fn ensure(config: &Config, identity: Option<Identity>) -> Result<AutoCertificates> {
        let folder = folder(config);
        let made = AutoCertificates {
            config: config.clone(),
            identity: identity.map(|identity| identity.to_string()),
            ca: folder.ca().cert,
            server: folder.files(SERVER),
            client: folder.files(ADMIN),
            folder,
        };
        for files in [&made.server, &made.client] {
            state(files, &[], &None)?;
        }
        if identity.is_some() {
            made.expect_ca_of_cluster()?;
        } else if !made.folder.has_ca() {
            // Two CAs of one name would be confused with each other.
            let tag = RandomState::new().build_hasher().finish() as u32;
            made.folder.make_ca(&format!("Sluice CA {tag:08x}"), CA_DAYS)?;
        }
        made.renew()?;
        Ok(made)
    }

    /// Checks that the CA of the cluster is there. Its key alone may be missing: the node goes on without.
    fn expect_ca_of_cluster(&self) -> Result<()> {
        let key = self.folder.ca().key;
        if !self.ca.exists() {
            let missing =
                format!("the CA of the cluster is missing: {}: {ADVICE_IN_CLUSTER}", self.ca.display());
            return Err(CliError::usage(missing));
        }
        if !key.exists() {
            tracing::warn!(
                "the key of the cluster's CA is missing: {}: this node lets no machine join, and cannot renew its \
                 own certificate: {ADVICE_IN_CLUSTER}",
                key.display()
            );
        }
        Ok(())
    }

    /// Advice when the CA is missing or cannot be used.
    fn advice(&self) -> &'static str {
        if self.identity.is_some() { ADVICE_IN_CLUSTER } else { ADVICE }
    }

    /// Renews certificates that expire soon, lack a present name of the server, or were signed by another CA,
    /// which no client trusts.
    pub(super) fn renew(&self) -> Result<()> {
        let (names, ca) = (names::all(&self.config), self.ca_key_id()?);
        let covered: Vec<String> = names.iter().chain(&self.identity).cloned().collect();
        match state(&self.server, &covered, &ca)? {
            PairState::Good => {}
            PairState::Foreign => self.warn_of_foreign()?,
            state => {
                let what = format!("a certificate for {}", names.join(", "));
                self.make(SERVER, &what, state, |ca| self.server_pair(ca, &names))?;
            }
        }
        // Both may be kept on the administrator's machine instead.
        let taken_off = !self.client.exist() && !self.folder.ca().key.exists();
        match state(&self.client, &[], &ca)? {
            PairState::Good | PairState::Foreign => {}
            _ if taken_off => {}
            state => {
                let what = format!("a certificate for an administrator: {}", self.client.cert.display());
                let scopes = [ADMIN_SCOPE.to_owned()];
                self.make(ADMIN, &what, state, |ca| ca.client(ADMIN, &scopes, DAYS, Maker::Server))?;
            }
        }
        Ok(())
    }

    /// Makes the server's certificate. That of a node is a client's as well, and followed by the CA, by whose
    /// fingerprint machines that join know it.
    fn server_pair(&self, ca: &Authority, names: &[String]) -> std::result::Result<Pair, String> {
        let Some(identity) = &self.identity else { return ca.server(names, DAYS, Maker::Server) };
        let Pair { cert, key } = ca.node(identity, names, DAYS, Maker::Server)?;
        Ok(Pair { cert: cert + &self.folder.ca().read_pem()?, key })
    }

    /// Renews a pair. If that fails, a valid old pair stays in use, and the log says so: the CA's key may
    /// have been taken off this machine, or the disk may be full.
    fn make(
        &self,
        name: &str,
        what: &str,
        state: PairState,
        make: impl FnOnce(&Authority) -> std::result::Result<Pair, String>,
    ) -> Result<()> {
        let pair =
            self.folder.open_ca().map_err(|e| format!("{e}: {}", self.advice())).and_then(|ca| make(&ca));
        let made = pair.map_err(CliError::usage).and_then(|pair| self.folder.write(name, &pair, true));
        match made {
            Ok(_) => tracing::info!("made {what}"),
            Err(error) if state == PairState::Short => {
                tracing::warn!(
                    "the old one stays in use, because {what} could not be made: {}",
                    error.message()
                );
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The names in the certificates that the CA has signed.
    fn ca_key_id(&self) -> Result<Option<Vec<u8>>> {
        let seen = self
            .folder
            .ca()
            .read_certificate()
            .map_err(|e| CliError::usage(format!("{e}: {}", self.advice())))?;
        Ok(seen.key_id)
    }

    /// The folder with the CA.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The names in the server's certificate.
    pub(super) fn names(&self) -> Vec<String> {
        self.server.read_certificate().map(|seen| seen.names).unwrap_or_default()
    }

    /// Logs what a certificate of somebody else lacks, compared with the settings.
    fn warn_of_foreign(&self) -> Result<()> {
        let (seen, path) =
            (self.server.read_certificate().map_err(CliError::usage)?, self.server.cert.display());
        let named = self.config.tls_name.0.iter().map(String::as_str);
        let missing: Vec<&str> =
            named.filter(|name| !seen.names.iter().any(|has| has.eq_ignore_ascii_case(name))).collect();
        let ca = self.folder.ca().read_certificate().map_err(CliError::usage)?;
        if seen.issuer != ca.subject {
            tracing::warn!("{path} is signed by {}: give clients the certificate of that CA", seen.issuer);
        }
        if !missing.is_empty() {
            tracing::warn!(
                "{path} covers {}, and not {}: it was not made by --tls auto, so it is not replaced; \
                 make another with `sluice cert server`, or remove it",
                seen.names.join(", "),
                missing.join(", ")
            );
        }
        if seen.not_after.duration_since(SystemTime::now()).unwrap_or_default() < RENEW_BEFORE {
            tracing::warn!(
                "{path} expires at {}: it was not made by --tls auto, so renew it yourself",
                seen.expires
            );
        }
        Ok(())
    }
}

/// The folder of the certificates.
pub(crate) fn folder(config: &Config) -> Folder {
    let path = config.tls_dir.0.clone().unwrap_or_else(|| default_folder(config));
    Folder::new(path, RootKeyStore::new(&config.key_source, &config.data_dir))
}

/// The server's certificate that the server makes, or has made earlier.
pub(super) fn server_certificate(config: &Config) -> PathBuf {
    folder(config).files(SERVER).cert
}

fn default_folder(config: &Config) -> PathBuf {
    let mut name = config.data_dir.file_name().unwrap_or("sluice".as_ref()).to_owned();
    name.push(AUTO_SUFFIX);
    config.data_dir.with_file_name(name)
}

/// Checks whether a pair exists and matches, is signed by the CA with this key, covers all of these names,
/// and has enough validity left.
fn state(files: &Files, names: &[String], ca: &Option<Vec<u8>>) -> Result<PairState> {
    if !files.exist() {
        return Ok(PairState::ToMake);
    }
    let seen = files.read_certificate().map_err(|e| {
        let key = files.key.display();
        CliError::usage(format!(
            "{e}; this file and {key} were not made by --tls auto: correct them, or move both away"
        ))
    })?;
    if !seen.by_server {
        return Ok(PairState::Foreign);
    }
    let left = seen.not_after.duration_since(SystemTime::now()).unwrap_or_default();
    let has_all = names.iter().all(|name| seen.names.contains(name));
    let does = !left.is_zero() && seen.issuer_key_id == *ca && files.matches(&seen);
    Ok(match does {
        true if left > RENEW_BEFORE && has_all => PairState::Good,
        true => PairState::Short,
        false => PairState::ToMake,
    })
}
