//! Credentials of a verb: CA, certificate and token, from flags, a context, or the environment.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use sluice_client::Credentials;

use crate::terminal::{CliError, Result};

/// Paths of the credential files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[command(next_help_heading = "Server")]
pub(crate) struct CredentialFiles {
    /// PEM file with the CA of the server [default: the CAs of the system; env: SLUICE_CA].
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    /// PEM file with your client certificate [env: SLUICE_CERT].
    #[arg(long, value_name = "FILE", requires = "cert_key")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file with the private key of --cert [env: SLUICE_CERT_KEY].
    #[arg(long, value_name = "FILE", requires = "cert")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cert_key: Option<PathBuf>,
    /// File with your token [env: SLUICE_TOKEN_FILE, or SLUICE_TOKEN with the token itself].
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
}

impl CredentialFiles {
    /// Fills what is missing from `other`; a certificate and its key are taken together.
    pub(crate) fn or(self, others: CredentialFiles) -> CredentialFiles {
        let pair =
            if self.cert.is_some() { (self.cert, self.cert_key) } else { (others.cert, others.cert_key) };
        CredentialFiles {
            ca: self.ca.or(others.ca),
            cert: pair.0,
            cert_key: pair.1,
            token_file: self.token_file.or(others.token_file),
        }
    }

    /// The environment variables of [`CredentialFiles::of_environment`]; `None`: the variable must be unset.
    pub(crate) fn variables(&self) -> [(&'static str, Option<&Path>); 4] {
        [
            ("SLUICE_CA", self.ca.as_deref()),
            ("SLUICE_CERT", self.cert.as_deref()),
            ("SLUICE_CERT_KEY", self.cert_key.as_deref()),
            ("SLUICE_TOKEN_FILE", self.token_file.as_deref()),
        ]
    }

    pub(crate) fn of_environment(env: impl Fn(&str) -> Option<String>) -> CredentialFiles {
        let path = |name: &str| env(name).map(PathBuf::from);
        CredentialFiles {
            ca: path("SLUICE_CA"),
            cert: path("SLUICE_CERT"),
            cert_key: path("SLUICE_CERT_KEY"),
            token_file: path("SLUICE_TOKEN_FILE"),
        }
    }

    /// The same with absolute paths, for a process with another working directory.
    pub(crate) fn absolute(self) -> CredentialFiles {
        let absolute = |path: Option<PathBuf>| path.map(|path| std::path::absolute(&path).unwrap_or(path));
        CredentialFiles {
            ca: absolute(self.ca),
            cert: absolute(self.cert),
            cert_key: absolute(self.cert_key),
            token_file: absolute(self.token_file),
        }
    }

    /// Reads the files; `token` is used if no token file is named.
    pub(crate) fn read(&self, token: Option<String>) -> Result<Credentials> {
        let missing = |given: &str, other: &str| {
            CliError::usage(format!("the client certificate's {given} is given, but not its {other}"))
                .hint("Give --cert and --cert-key together, or SLUICE_CERT and SLUICE_CERT_KEY.")
        };
        match (&self.cert, &self.cert_key) {
            (Some(_), None) => {
                return Err(missing(
                    "file (--cert, SLUICE_CERT)",
                    "private key (--cert-key, SLUICE_CERT_KEY)",
                ));
            }
            (None, Some(_)) => {
                return Err(missing(
                    "private key (--cert-key, SLUICE_CERT_KEY)",
                    "file (--cert, SLUICE_CERT)",
                ));
            }
            _ => {}
        }
        let file =
            |what: &str, path: &Option<PathBuf>| path.as_ref().map(|path| read(what, path)).transpose();
        let token = match file("token", &self.token_file)? {
            Some(bytes) => Some(String::from_utf8_lossy(&bytes).trim().to_owned()),
            None => token.map(|token| token.trim().to_owned()),
        };
        Ok(Credentials {
            ca: file("CA", &self.ca)?,
            cert: file("client certificate", &self.cert)?,
            key: file("private key", &self.cert_key)?,
            token,
        })
    }
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| CliError::unreadable(&format!("the {what} {}", path.display()), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_never_paired_with_the_key_of_another_source() {
        let own = CredentialFiles {
            cert: Some("a".into()),
            cert_key: Some("b".into()),
            ..CredentialFiles::default()
        };
        let env = CredentialFiles::of_environment(|name| Some(name.to_owned()));
        let both = own.clone().or(env.clone());
        assert_eq!((both.cert, both.cert_key), (own.cert, own.cert_key));
        assert_eq!(both.ca, env.ca);
        assert_eq!(CredentialFiles::default().or(env.clone()), env);
    }
}
