//! Where the server under test is, what its clients trust and show, and the certificates that are made for a run.

use std::path::Path;

use sluice_client::{Client, Credentials, Options};

use crate::cert::{Folder, Maker};
use crate::cli::CliError;
use crate::cli::credentials::CredentialFiles;

/// Certificates outlive the longest run by far.
const CERTIFICATE_DAYS: u32 = 60;
const SERVER: &str = "server";
const CLIENT: &str = "bench";
/// Benchmarks create and delete queues and namespaces.
const CLIENT_SCOPE: &str = "sluice://ns/*?perm=admin";

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

    /// A server of ours that [`serve_flags`] has made certificates for.
    pub(super) fn mutual_tls(address: &str, folder: &Path) -> Result<Endpoint, String> {
        let folder = Folder(folder.to_owned());
        let (ca, client) = (folder.ca(), folder.files(CLIENT));
        let files = CredentialFiles {
            ca: Some(ca.cert),
            cert: Some(client.cert),
            cert_key: Some(client.key),
            token_file: None,
        };
        let credentials = files.read(None).map_err(|error| error.message().to_owned())?;
        Ok(Endpoint { url: format!("https://{address}"), credentials })
    }

    /// Somebody else's server; the environment says what is trusted and shown, as for every verb.
    pub(super) fn named(url: &str) -> Result<Endpoint, String> {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let files = CredentialFiles::of_environment(env);
        let credentials = files.read(env("SLUICE_TOKEN")).map_err(|error| error.message().to_owned())?;
        Ok(Endpoint { url: url.to_owned(), credentials })
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

/// Makes a CA, a server's and a client's certificate in a folder of their own, and tells the flags of `sluice serve` with
/// which it asks each client for one.
pub(super) fn serve_flags(folder: &Path) -> Result<[String; 3], String> {
    let folder = Folder(folder.to_owned());
    if !folder.has_ca() {
        let told = |error: CliError| error.message().to_owned();
        folder.make_ca("Sluice benchmark CA", CERTIFICATE_DAYS).map_err(told)?;
        let ca = folder.open_ca()?;
        let server = ca.server(&["127.0.0.1".to_owned()], CERTIFICATE_DAYS, Maker::Person)?;
        folder.write(SERVER, &server, false).map_err(told)?;
        let client = ca.client(CLIENT, &[CLIENT_SCOPE.to_owned()], CERTIFICATE_DAYS, Maker::Person)?;
        folder.write(CLIENT, &client, false).map_err(told)?;
    }
    let (ca, server) = (folder.ca(), folder.files(SERVER));
    Ok([
        format!("--tls-cert={}", server.cert.display()),
        format!("--tls-key={}", server.key.display()),
        format!("--tls-client-ca={}", ca.cert.display()),
    ])
}
