//! The address of the server under test, and the credentials of its clients.

use std::path::PathBuf;

use sluice_client::{Client, Credentials, Options};

use super::certificates::Certificates;

/// A server, as its clients reach it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    url: String,
    credentials: Credentials,
}

impl Endpoint {
    /// A server of ours, in clear text.
    pub(super) fn clear_text(address: &str) -> Endpoint {
        Endpoint { url: format!("http://{address}"), credentials: Credentials::default() }
    }

    /// A server of ours with these certificates, which asks each client for one.
    pub(super) fn mutual_tls(address: &str, certificates: &Certificates) -> Result<Endpoint, String> {
        let read = |path: PathBuf| {
            std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let client = certificates.client();
        let credentials = Credentials {
            ca: Some(read(certificates.ca().cert)?),
            cert: Some(read(client.cert)?),
            key: Some(read(client.key)?),
            token: None,
        };
        Ok(Endpoint { url: format!("https://{address}"), credentials })
    }

    /// A server that was running before, reached with these credentials.
    pub(super) fn named(url: &str, credentials: Credentials) -> Endpoint {
        Endpoint { url: url.to_owned(), credentials }
    }

    /// `host:port`.
    pub(super) fn address(&self) -> &str {
        self.url.split_once("://").map_or(self.url.as_str(), |(_, address)| address)
    }

    /// A client with options of its own, besides what it trusts and shows.
    pub(super) fn client(&self, options: Options) -> Result<Client, String> {
        let options = Options { credentials: self.credentials.clone(), ..options };
        Client::with_options(&self.url, options).map_err(|error| error.to_string())
    }
}
