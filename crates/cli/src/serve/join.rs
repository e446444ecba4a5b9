//! `sluice serve --join`: a machine becomes a node of a cluster.
//!
//! The join token carries the fingerprint of the cluster's CA, so that the machine gives the token to nobody
//! but the cluster. What a join cut half way has left is used by the next try: until the answer is kept the
//! cluster gives the same machine the same number.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use clap::Args;
use data_encoding::HEXLOWER;
use sluice_calls::roster::join_token::{Parts, fingerprint, parts};
use sluice_client::{Client, Credentials, Joined, Machine, Options};
use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION};
use sluice_front::tls::first_certificate;
use sluice_journal::{Encryption, holds_journal};
use sluice_replica::Protocols;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError};

use super::auto::folder;
use super::node_file::{Membership, NodeFile, own_address};
use super::pinned::PinnedCa;
use super::place::expect_no_node;
use crate::cert::{Pair, pem};
use crate::config::Config;
use crate::root_keys::ServerEncryption;
use crate::terminal::{CliError, Fault, Result};
use sluice_peers::tls::Verifier;

/// Longest time for connecting to the cluster and for the handshake, each.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Length of the secret of a machine, in bytes.
const SECRET_BYTES: usize = 32;

/// The cluster to join.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct JoinArgs {
    /// Join the cluster that is reached here, with an empty data directory. Ignored by a server that has
    /// joined it [env: SLUICE_JOIN].
    #[arg(long, value_name = "URL")]
    join: Option<String>,
    /// Join token, as `sluice cluster add` prints it [env: SLUICE_JOIN_TOKEN].
    #[arg(long, value_name = "TOKEN")]
    join_token: Option<String>,
    /// File with the join token [env: SLUICE_JOIN_TOKEN_FILE].
    #[arg(long, value_name = "FILE", conflicts_with = "join_token")]
    join_token_file: Option<PathBuf>,
}

impl JoinArgs {
    /// The same, with what the environment says where no flag does; of the token either all is a flag, or
    /// nothing.
    pub(super) fn or_environment(self, env: impl Fn(&str) -> Option<String>) -> JoinArgs {
        let env = |name: &str| env(name).filter(|value| !value.is_empty());
        let join = self.join.or_else(|| env("SLUICE_JOIN"));
        if self.join_token.is_some() || self.join_token_file.is_some() {
            return JoinArgs { join, ..self };
        }
        let join_token_file = env("SLUICE_JOIN_TOKEN_FILE").map(PathBuf::from);
        JoinArgs { join, join_token: env("SLUICE_JOIN_TOKEN"), join_token_file }
    }

    /// The place of the server in a cluster, `None`: it is alone. If these flags say so it joins first, and
    /// the encryption that it has chosen for that is returned as well.
    pub(super) async fn place(
        &self,
        config: &Config,
    ) -> Result<(Option<NodeFile>, Option<ServerEncryption>)> {
        let file = if config.memory { None } else { NodeFile::read(&config.data_dir)? };
        match (file, &self.join) {
            (Some(file), _) if file.is_removed => Err(removed(&config.data_dir)),
            (Some(file), _) if file.recovering.is_some() => Err(unrecovered(&config.data_dir)),
            (Some(file), _) if file.joined.is_some() => {
                self.check_cluster(config)?;
                Ok((Some(file), None))
            }
            (Some(_), None) => Err(CliError::usage("this server has not finished joining a cluster")
                .hint("Start it with --join and --join-token again.")),
            (file, Some(url)) => {
                let (file, chosen) = join(config, url, &self.token()?, file).await?;
                Ok((Some(file), Some(chosen)))
            }
            (None, None) if self.join_token.is_some() || self.join_token_file.is_some() => {
                Err(CliError::usage("a join token without the cluster to join")
                    .hint("Name one of its nodes: --join https://HOST:PORT."))
            }
            (None, None) => Ok((None, None)),
        }
    }

    /// Refuses a join token of another cluster than that of the data directory, by their CAs. A token that is
    /// gone or damaged by now tells nothing.
    fn check_cluster(&self, config: &Config) -> Result<()> {
        let Some(token) = self.token().ok().and_then(|token| parts(&token).ok()) else { return Ok(()) };
        let ca = folder(config).ca().read_pem().and_then(|pem| first_certificate(pem.as_bytes()));
        if ca.is_ok_and(|ca| fingerprint(&ca) != token.fingerprint) {
            let other = format!("{} is that of a node of another cluster", config.data_dir.display());
            return Err(CliError::of(Fault::Exists, format!("cannot join with this token: {other}"))
                .hint("To let this machine join, name an empty data directory with --data-dir.")
                .hint("To go on in the cluster of the data directory, start without the token."));
        }
        Ok(())
    }

    /// Refuses to join a cluster, for a server for tests.
    pub(super) fn expect_none(&self) -> Result<()> {
        if self.join.is_none() && self.join_token.is_none() && self.join_token_file.is_none() {
            return Ok(());
        }
        Err(CliError::usage("a server that runs with --test joins no cluster")
            .hint("Leave out --join and --join-token."))
    }

    fn token(&self) -> Result<String> {
        let missing = || CliError::usage("--join needs --join-token or --join-token-file");
        match (&self.join_token, &self.join_token_file) {
            (Some(_), Some(_)) => Err(CliError::usage(
                "SLUICE_JOIN_TOKEN and SLUICE_JOIN_TOKEN_FILE are both set: unset one of them",
            )),
            (Some(token), None) => Ok(token.trim().to_owned()),
            (None, Some(path)) => {
                let text = fs::read_to_string(path);
                let text = text.map_err(|e| CliError::unreadable(&path.display().to_string(), &e))?;
                Ok(text.trim().to_owned())
            }
            (None, None) => Err(missing()),
        }
    }
}

/// Refusal to start with the data of a node that was removed.
pub(super) fn removed(data_dir: &Path) -> CliError {
    let told = format!("the node whose data are in {} was removed from its cluster", data_dir.display());
    CliError::of(Fault::Removed, told)
        .hint("To use this machine again, let it join as a new node, with an empty data directory.")
}

fn unrecovered(data_dir: &Path) -> CliError {
    let told = format!("the recovery of the cluster from {} was interrupted", data_dir.display());
    CliError::usage(told).hint("Finish it: repeat `sluice cluster recover`.")
}

async fn join(
    config: &Config,
    url: &str,
    token: &str,
    file: Option<NodeFile>,
) -> Result<(NodeFile, ServerEncryption)> {
    if config.memory || config.tls_cert.0.is_some() {
        return Err(CliError::usage("a node of a cluster has a data directory and --tls auto"));
    }
    if holds_journal(&config.data_dir.join("shard-000")) {
        let held = format!("{} has data, which would be lost", config.data_dir.display());
        return Err(CliError::of(Fault::Exists, held)
            .hint("A machine joins with an empty data directory: name another with --data-dir."));
    }
    let Parts { fingerprint, .. } = parts(token).map_err(CliError::usage)?;
    // A former try may have named another address.
    let address = own_address(config)?;
    let is_first_try = file.is_none();
    let mut file = match file {
        Some(file) => NodeFile { address, ..file },
        None => NodeFile { address, machine: random()?, joined: None, recovering: None, is_removed: false },
    };
    let ca = ca_of(url, fingerprint).await.map_err(|e| e.context(&format!("cannot join at {url}")))?;
    file.write(&config.data_dir)?;
    let joined = match ask(config, url, token, ca, &file).await {
        Err(error) if error.code() == "unauthenticated" => {
            return Err(token_refused(config, error, is_first_try));
        }
        answer => answer?,
    };
    let chosen = ServerEncryption::choose(config).map_err(|e| CliError::start(&e))?;
    keep_ca(config, &joined, &chosen.encryption)?;
    tracing::info!("joined the cluster {} as node {}", joined.cluster, joined.node);
    let Joined { cluster, node, nodes, .. } = joined;
    let nodes = nodes.into_iter().map(|it| (it.node, it.address)).collect();
    file.joined = Some(Membership { cluster, node, is_new: true, nodes, recovered_from: None });
    file.write(&config.data_dir)?;
    Ok((file, chosen))
}

/// The error where a join token is refused. A first try leaves no file behind, which could lie in the mount
/// point of a disk. Where it looks like one the error says so: the flags may be those of a node that has
/// joined before.
fn token_refused(config: &Config, error: CliError, is_first_try: bool) -> CliError {
    let removed = if is_first_try { NodeFile::remove(&config.data_dir) } else { Ok(()) };
    match removed.and_then(|()| expect_no_node(config)) {
        Ok(()) => error,
        Err(more) => more.context(error.message()),
    }
}

/// The CA of the cluster that is reached at a URL, as PEM.
async fn ca_of(url: &str, fingerprint: [u8; 32]) -> Result<Vec<u8>> {
    let expected = || CliError::usage("expected https://HOST:PORT of a node of the cluster");
    let address = url.strip_prefix("https://").ok_or_else(expected)?.trim_end_matches('/');
    let (host, port) = address.rsplit_once(':').ok_or_else(expected)?;
    port.parse::<u16>().map_err(|_| expected())?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|_| expected())?;
    let unreached = |told: String| CliError::of(Fault::Unreachable, told);
    let late = || unreached("no answer in time".to_owned());
    let stream = timeout(CONNECT_MAX, TcpStream::connect(address)).await.map_err(|_| late())?;
    let stream = stream.map_err(|e| unreached(e.to_string()))?;
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| CliError::failed(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { trust: PinnedCa(fingerprint), provider }))
        .with_no_client_auth();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let stream = timeout(CONNECT_MAX, connecting).await.map_err(|_| late())?;
    let stream = stream.map_err(|e| CliError::of(Fault::Tls, refusal(&e)))?;
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let ca = shown.iter().find(|certificate| self::fingerprint(certificate) == fingerprint);
    ca.map(|ca| pem("CERTIFICATE", ca).into_bytes())
        .ok_or_else(|| CliError::of(Fault::Tls, "it has not shown the cluster's CA"))
}

/// The reason of a handshake that failed: that of [`PinnedCa`] alone, if it has given one.
fn refusal(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    match inner {
        Some(TlsError::General(reason)) => reason.clone(),
        _ => error.to_string(),
    }
}

async fn ask(config: &Config, url: &str, token: &str, ca: Vec<u8>, file: &NodeFile) -> Result<Joined> {
    let credentials = Credentials { ca: Some(ca), ..Credentials::default() };
    let client = Client::with_options(url, Options { credentials, ..Options::default() });
    let client = client.map_err(|e| CliError::client(&e))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let machine = Machine {
        token: token.to_owned(),
        address: file.address.clone(),
        machine: file.machine.clone(),
        now_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        behaviour: BEHAVIOUR_VERSION,
        oldest_behaviour: BEHAVIOUR_OLDEST,
        protocol: Protocols::OWN.newest(),
        oldest_protocol: Protocols::OWN.oldest(),
        shards: config.shards.as_u32(),
    };
    let joined = client.cluster_join(&machine).await;
    joined.map_err(|e| CliError::client(&e).context(&format!("cannot join at {url}")))
}

/// Keeps the cluster's CA, with which this node makes its certificates from now on.
fn keep_ca(config: &Config, joined: &Joined, encryption: &Encryption) -> Result<()> {
    let folder = folder(config);
    let is_kept = folder.ca().read_pem().is_ok_and(|cert| cert == joined.ca);
    if folder.has_ca() && !is_kept {
        let other = format!("{} is the CA of somebody else than the cluster", folder.ca().cert.display());
        return Err(CliError::of(Fault::Exists, other)
            .hint("Name another folder with --tls-dir, or move this one away."));
    }
    folder.keep_ca(&Pair { cert: joined.ca.clone(), key: joined.ca_key.clone() }, encryption)
}

fn random() -> Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| CliError::failed("the system gives no random numbers"))?;
    Ok(HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_no_flag_does() {
        let env = |name: &str| match name {
            "SLUICE_JOIN" => Some("https://one:7070".to_owned()),
            "SLUICE_JOIN_TOKEN" => Some("of-env".to_owned()),
            _ => Some(String::new()),
        };
        let flags = |token_file: Option<&str>| {
            let join_token_file = token_file.map(PathBuf::from);
            JoinArgs { join: None, join_token: None, join_token_file }.or_environment(env)
        };
        let told = flags(None);
        assert_eq!(
            (told.join.as_deref(), told.join_token.as_deref()),
            (Some("https://one:7070"), Some("of-env"))
        );
        assert_eq!(told.join_token_file, None, "an empty variable is none");
        assert_eq!(flags(Some("token")).join_token, None, "the flag overrides it");
        let both = JoinArgs { join_token_file: Some("token".into()), ..told };
        assert!(both.token().unwrap_err().message().contains("both set"));
    }
}
