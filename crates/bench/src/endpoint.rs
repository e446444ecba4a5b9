//! The address of the server under test, and the credentials of its clients.

use std::path::Path;

use sluice_client::{Client, Credentials, Options};

use super::certificates::Pair;

/// A server or a cluster, as its clients reach it.
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

    /// A server of ours that asks each client for a certificate. `ca`: the CA of the server's certificate;
    /// `client`: the certificate to show.
    pub(super) fn mutual_tls(url: &str, ca: &Path, client: &Pair) -> Result<Endpoint, String> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let credentials = Credentials {
            ca: Some(read(ca)?),
            cert: Some(read(&client.cert)?),
            key: Some(read(&client.key)?),
            token: None,
        };
        Ok(Endpoint { url: url.to_owned(), credentials })
    }

    /// A server or, with several URLs that are separated by commas, a cluster, with the credentials of this
    /// one.
    pub(super) fn at(&self, urls: &str) -> Endpoint {
        Endpoint { url: urls.to_owned(), credentials: self.credentials.clone() }
    }

    /// A server that was running before, reached with these credentials.
    pub(super) fn named(url: &str, credentials: Credentials) -> Endpoint {
        Endpoint { url: url.to_owned(), credentials }
    }

    /// True with TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// URL of the server; of a cluster several, separated by commas.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// `host:port`.
    pub(super) fn address(&self) -> &str {
        self.url.split_once("://").map_or(self.url.as_str(), |(_, address)| address)
    }

    /// A client with options of its own, besides what it trusts and shows.
    pub(super) fn client(&self, options: Options) -> Result<Client, String> {
        // What other queues are compared with sends without keys, too.
        let options = Options { credentials: self.credentials.clone(), key_sends: false, ..options };
        Client::with_options(&self.url, options).map_err(|error| error.to_string())
    }
}
