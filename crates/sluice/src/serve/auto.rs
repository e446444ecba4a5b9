//! `--tls auto`: a CA, the server's certificate, and one for an administrator, made by the first start and kept.
//!
//! They lie beside the data directory, not in it: backups and copies of the data are shown to more people than may sign
//! certificates.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::cert::{Files, Folder, see};
use crate::config::Config;

const CA_DAYS: u32 = 3_650;
const DAYS: u32 = 397;
/// So long before its end a certificate is made anew.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);
const SERVER: &str = "server";
const ADMIN: &str = "admin";
const ADMIN_SCOPE: &str = "sluice://ns/*?perm=admin";

/// What there is, and what a client needs of it.
#[derive(Clone, Debug)]
pub(super) struct Made {
    folder: Folder,
    names: Vec<String>,
    pub(super) ca: PathBuf,
    pub(super) server: Files,
    /// Of an administrator.
    pub(super) client: Files,
}

impl Made {
    /// Makes what is missing, and what is about to end or names the server no longer.
    pub(super) fn ensure(config: &Config) -> Result<Made, String> {
        let folder = Folder(config.tls_dir.0.clone().unwrap_or_else(|| beside(config)));
        let made = Made {
            names: names(&config.listen),
            ca: folder.ca().cert,
            server: folder.files(SERVER),
            client: folder.files(ADMIN),
            folder,
        };
        if !made.folder.has_ca() {
            // Two CAs of one name would be mistaken for each other.
            let tag = RandomState::new().build_hasher().finish() as u32;
            made.folder.make_ca(&format!("Sluice CA {tag:08x}"), CA_DAYS)?;
        }
        made.renew()?;
        Ok(made)
    }

    /// Makes certificates anew that are about to end, or that another CA has signed: no client trusts that one.
    pub(super) fn renew(&self) -> Result<(), String> {
        let ca = self.ca_key_id()?;
        if !is_good(&self.server, &self.names, &ca) {
            let pair = self.folder.open_ca()?.server(&self.names, DAYS)?;
            self.folder.write(SERVER, &pair, true)?;
            tracing::info!("made a certificate for {}", self.names.join(", "));
        }
        if !is_good(&self.client, &[], &ca) {
            let pair = self.folder.open_ca()?.client(ADMIN, &[ADMIN_SCOPE.to_owned()], DAYS)?;
            self.folder.write(ADMIN, &pair, true)?;
            tracing::info!("made a certificate for an administrator: {}", self.client.cert.display());
        }
        Ok(())
    }

    /// What certificates name that the CA has signed.
    fn ca_key_id(&self) -> Result<Option<Vec<u8>>, String> {
        let told = |e: String| {
            format!(
                "{}: {e}: bring it back, or move its whole folder away, and a new CA is made that clients have to get",
                self.ca.display()
            )
        };
        let pem = std::fs::read(&self.ca).map_err(|e| told(e.to_string()))?;
        Ok(see(&pem).map_err(told)?.key_id)
    }
}

fn beside(config: &Config) -> PathBuf {
    let mut name = config.data_dir.file_name().unwrap_or("sluice".as_ref()).to_owned();
    name.push("-tls");
    config.data_dir.with_file_name(name)
}

/// Whether a pair is there, is signed by the CA with this key, names all of these, and has some time left.
fn is_good(files: &Files, names: &[String], ca: &Option<Vec<u8>>) -> bool {
    let Ok(pair) = files.read() else { return false };
    let Ok(seen) = see(pair.cert.as_bytes()) else { return false };
    let left = seen.not_after.duration_since(SystemTime::now()).unwrap_or_default();
    left > RENEW_BEFORE && seen.issuer_key_id == *ca && names.iter().all(|name| seen.names.contains(name))
}

/// By what a server is reached: as this machine, and as the settings say.
pub(super) fn names(listen: &str) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = listen.rsplit_once(':').map_or("", |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let wildcard = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    let uname = rustix::system::uname();
    let machine = uname.nodename().to_string_lossy().into_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    for name in [Some(host).filter(|_| !wildcard), Some(machine).filter(|name| name.chars().all(plain))] {
        names.extend(name.filter(|name| !name.is_empty() && !names.contains(name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_server_is_named_as_it_is_reached() {
        for (listen, name) in
            [("queue.example.org:7070", "queue.example.org"), ("[2001:db8::1]:1", "2001:db8::1")]
        {
            assert!(names(listen).contains(&name.to_owned()), "{:?}", names(listen));
        }
        for listen in ["0.0.0.0:7070", "[::]:7070", "localhost:7070"] {
            let names = names(listen);
            assert!(!names.contains(&"0.0.0.0".to_owned()) && !names.contains(&"::".to_owned()), "{names:?}");
            assert_eq!(names.iter().filter(|name| *name == "localhost").count(), 1);
        }
    }
}
