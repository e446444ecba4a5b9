//! `--tls auto`: a CA, the server's certificate, and one for an administrator, made by the first start and
//! kept.
//!
//! They lie beside the data directory, not in it: backups and copies of the data are shown to more people
//! than may sign certificates. What somebody else has put there is used as it is, and never replaced.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::names;
use crate::cert::{Authority, Files, Folder, Maker, Pair};
use crate::config::Config;
use crate::terminal::{CliError, Result};

const CA_DAYS: u32 = 3_650;
const DAYS: u32 = 397;
/// So long before its end a certificate is made anew.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);
/// What to do without the CA.
const ADVICE: &str =
    "bring it back, or move its whole folder away, and a new CA is made that clients have to get";
const SERVER: &str = "server";
const ADMIN: &str = "admin";
const ADMIN_SCOPE: &str = "sluice://ns/*?perm=admin";

/// What there is, and what a client needs of it.
#[derive(Clone, Debug)]
pub(super) struct Made {
    folder: Folder,
    config: Config,
    pub(super) ca: PathBuf,
    pub(super) server: Files,
    /// Certificate and key of an administrator.
    pub(super) client: Files,
}

/// What is to be done about a pair of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The file is there, and does.
    Good,
    /// The file was made by a server and does, but ends soon or is not for all names.
    Short,
    /// The file is not there, or was made by a server and does not do any more.
    ToMake,
    /// Somebody else has made it.
    Foreign,
}

impl Made {
    /// Makes what is missing, and what is about to end or is not for all names of the server any more.
    pub(super) fn ensure(config: &Config) -> Result<Made> {
        let folder = Folder(config.tls_dir.0.clone().unwrap_or_else(|| beside(config)));
        let made = Made {
            config: config.clone(),
            ca: folder.ca().cert,
            server: folder.files(SERVER),
            client: folder.files(ADMIN),
            folder,
        };
        for files in [&made.server, &made.client] {
            state(files, &[], &None)?;
        }
        if !made.folder.has_ca() {
            // Two CAs of one name would be mistaken for each other.
            let tag = RandomState::new().build_hasher().finish() as u32;
            made.folder.make_ca(&format!("Sluice CA {tag:08x}"), CA_DAYS)?;
        }
        made.renew()?;
        Ok(made)
    }

    /// Makes certificates anew that are about to end, whose names are not all that the server has by now, or
    /// that another CA has signed: no client trusts those.
    pub(super) fn renew(&self) -> Result<()> {
        let (names, ca) = (names::all(&self.config), self.ca_key_id()?);
        match state(&self.server, &names, &ca)? {
            State::Good => {}
            State::Foreign => self.warn_of_foreign()?,
            state => {
                let what = format!("a certificate for {}", names.join(", "));
                self.make(SERVER, &what, state, |ca| ca.server(&names, DAYS, Maker::Server))?;
            }
        }
        // Both may be kept on another machine, where the administrator is.
        let taken_off = !self.client.exist() && !self.folder.ca().key.exists();
        match state(&self.client, &[], &ca)? {
            State::Good | State::Foreign => {}
            _ if taken_off => {}
            state => {
                let what = format!("a certificate for an administrator: {}", self.client.cert.display());
                let scopes = [ADMIN_SCOPE.to_owned()];
                self.make(ADMIN, &what, state, |ca| ca.client(ADMIN, &scopes, DAYS, Maker::Server))?;
            }
        }
        Ok(())
    }

    /// Makes a pair anew. Where that fails, one that does stays in use, and the log tells: the CA's key may
    /// have been taken off this machine, or the disk be full.
    fn make(
        &self,
        name: &str,
        what: &str,
        state: State,
        make: impl FnOnce(&Authority) -> std::result::Result<Pair, String>,
    ) -> Result<()> {
        let pair = self.folder.open_ca().map_err(|e| format!("{e}: {ADVICE}")).and_then(|ca| make(&ca));
        let made = pair.map_err(CliError::usage).and_then(|pair| self.folder.write(name, &pair, true));
        match made {
            Ok(_) => tracing::info!("made {what}"),
            Err(error) if state == State::Short => {
                tracing::warn!(
                    "the one there is stays in use, since {what} could not be made: {}",
                    error.message()
                );
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What certificates name that the CA has signed.
    fn ca_key_id(&self) -> Result<Option<Vec<u8>>> {
        let seen = self.folder.ca().see().map_err(|e| CliError::usage(format!("{e}: {ADVICE}")))?;
        Ok(seen.key_id)
    }

    /// What the server's certificate is for.
    pub(super) fn names(&self) -> Vec<String> {
        self.server.see().map(|seen| seen.names).unwrap_or_default()
    }

    /// Tells what a certificate of somebody else lacks of what the settings ask for.
    fn warn_of_foreign(&self) -> Result<()> {
        let (seen, path) = (self.server.see().map_err(CliError::usage)?, self.server.cert.display());
        let named = self.config.tls_name.0.iter().map(String::as_str);
        let missing: Vec<&str> =
            named.filter(|name| !seen.names.iter().any(|has| has.eq_ignore_ascii_case(name))).collect();
        let ca = self.folder.ca().see().map_err(CliError::usage)?;
        if seen.issuer != ca.subject {
            tracing::warn!("{path} is signed by {}: give clients the certificate of that CA", seen.issuer);
        }
        if !missing.is_empty() {
            tracing::warn!(
                "{path} is for {}, and not for {}: it was not made by --tls auto, so it stays; \
                 make another with `sluice cert server`, or remove it",
                seen.names.join(", "),
                missing.join(", ")
            );
        }
        if seen.not_after.duration_since(SystemTime::now()).unwrap_or_default() < RENEW_BEFORE {
            tracing::warn!("{path} ends at {}: it was not made by --tls auto, so renew it", seen.expires);
        }
        Ok(())
    }
}

fn beside(config: &Config) -> PathBuf {
    let mut name = config.data_dir.file_name().unwrap_or("sluice".as_ref()).to_owned();
    name.push("-tls");
    config.data_dir.with_file_name(name)
}

/// Whether a pair is there and fits, is signed by the CA with this key, is for all of these names, and has
/// some time left.
fn state(files: &Files, names: &[String], ca: &Option<Vec<u8>>) -> Result<State> {
    if !files.exist() {
        return Ok(State::ToMake);
    }
    let seen = files.see().map_err(|e| {
        let key = files.key.display();
        CliError::usage(format!(
            "{e}; what is in it and in {key} was not made by --tls auto: mend it, or move both away"
        ))
    })?;
    if !seen.by_server {
        return Ok(State::Foreign);
    }
    let left = seen.not_after.duration_since(SystemTime::now()).unwrap_or_default();
    let has_all = names.iter().all(|name| seen.names.contains(name));
    let does = !left.is_zero() && seen.issuer_key_id == *ca && files.fit(&seen);
    Ok(match does {
        true if left > RENEW_BEFORE && has_all => State::Good,
        true => State::Short,
        false => State::ToMake,
    })
}
