//! The choice of the server, and the error messages when it cannot be reached.

mod contexts;
mod credentials;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use sluice_client::{Client, ClientError, Options, TlsFault, TransportKind};

use crate::terminal::values::{duration, not_empty};
use crate::terminal::{CliError, Result};
pub(crate) use contexts::{Context, Contexts};
pub(crate) use credentials::CredentialFiles;

/// The server when none is named.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7070";

/// Origin of [`DEFAULT_SERVER`], for messages.
const DEFAULT_ORIGIN: &str = "the default";

/// The environment variable that holds the token itself.
const TOKEN_VARIABLE: &str = "SLUICE_TOKEN";
/// The environment variable that holds the id of the open transaction that a command belongs to.
pub(crate) const TRANSACTION: &str = "SLUICE_TRANSACTION";
/// Variable with the id of the transaction that a worker ends when the command ends that it runs.
pub(crate) const WORK_TRANSACTION: &str = "SLUICE_WORK_TRANSACTION";

/// Flags of every verb that talks to a server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerFlags {
    /// URL of the server; those of several nodes of a cluster are separated by commas [default:
    /// http://127.0.0.1:7070; env: SLUICE_SERVER].
    #[arg(long, value_name = "URL", value_parser = not_empty)]
    server: Option<String>,
    /// Context to use, a name given by `sluice context add` [env: SLUICE_CONTEXT].
    #[arg(long, value_name = "NAME", conflicts_with = "server", value_parser = not_empty)]
    context: Option<String>,
    /// Namespace of the queues [default: default; env: SLUICE_NAMESPACE].
    #[arg(long, short, value_name = "NAME", value_parser = not_empty)]
    namespace: Option<String>,
    /// Time for which to retry when the server is busy or cannot be reached; of several each is asked once in
    /// any case, unless it is 0 [default: 10s if busy, 300ms if unreachable].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retry_for: Option<Duration>,
    #[command(flatten)]
    credentials: CredentialFiles,
}

/// Flags of the verbs that show state.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadFlags {
    /// Let the node that is asked answer at once from what it has, which may be behind; in a cluster also
    /// while no node leads.
    #[arg(long)]
    stale: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// A client, and how its server was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// True when the token in the environment applies.
    takes_token: bool,
    /// Files of the CA, the certificate and the token, as absolute paths.
    credentials: CredentialFiles,
    options: Options,
    server: String,
    origin: String,
}

impl ServerFlags {
    /// Chooses the server. Sends nothing.
    pub(crate) fn connect(&self) -> Result<Connection> {
        self.connect_with(Options::default())
    }

    /// As [`Self::connect`], with a time for retries if `--retry-for` names none.
    pub(crate) fn connect_patiently(&self, retry_for: Duration) -> Result<Connection> {
        let retry_for = self.retry_for.or(Some(retry_for));
        ServerFlags { retry_for, ..self.clone() }.connect()
    }

    /// As [`Self::connect`], with client options, in which `--retry-for` overrides the retry times.
    pub(crate) fn connect_with(&self, options: Options) -> Result<Connection> {
        let chosen = choose(self, |name| std::env::var(name).ok().filter(|v| !v.is_empty()))?;
        let retry_for = self.retry_for.unwrap_or(Duration::from_secs(10));
        let connect_retry_for = self.retry_for.unwrap_or(Duration::from_millis(300));
        let takes_token = chosen.token.is_some();
        let read = chosen.credentials.read(chosen.token)?;
        let options = Options { retry_for, connect_retry_for, credentials: read, ..options };
        let client = Client::with_options(&chosen.server, options.clone())
            .map_err(|e| CliError::client(&e).hint(format!("The address comes from {}.", chosen.origin)))?;
        let client =
            if chosen.namespace == "default" { client } else { client.in_namespace(&chosen.namespace) };
        let credentials = chosen.credentials.absolute();
        let ChosenServer { namespace, server, origin, .. } = chosen;
        Ok(Connection { client, namespace, takes_token, credentials, options, server, origin })
    }
}

impl ReadFlags {
    /// As [`ServerFlags::connect`], with a client whose answers may be behind if that was asked for.
    pub(crate) fn connect(&self) -> Result<Connection> {
        let connection = self.server.connect()?;
        let client = if self.stale { connection.client.stale() } else { connection.client };
        Ok(Connection { client, ..connection })
    }
}

impl Connection {
    /// False when nobody has named a server, so that the default counts.
    pub(crate) fn is_chosen(&self) -> bool {
        self.origin != DEFAULT_ORIGIN
    }

    /// The URLs of the server or cluster, as they were given.
    pub(crate) fn urls(&self) -> &str {
        &self.server
    }

    /// The options of the client.
    pub(crate) fn options(&self) -> Options {
        self.options.clone()
    }

    /// The URL of the server that is asked at present, with its scheme.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.server.starts_with("https://") { "https" } else { "http" };
        format!("{scheme}://{}", self.client.server())
    }

    /// The environment variables with which another `sluice` uses the same credentials. `None`: the variable
    /// must be unset, because its value is meant for another server.
    pub(crate) fn variables(&self) -> Vec<(&'static str, Option<OsString>)> {
        let files =
            self.credentials.variables().map(|(name, path)| (name, path.map(|p| p.as_os_str().into())));
        let token = (!self.takes_token).then_some((TOKEN_VARIABLE, None));
        files.into_iter().chain(token).collect()
    }

    /// Turns an error of the client library into a message with advice.
    pub(crate) fn error(&self, error: &ClientError) -> CliError {
        let told = CliError::client(error);
        match error {
            ClientError::Transport { kind: TransportKind::Connect, .. } => told
                .hint(format!("The address comes from {}.", self.origin))
                .hint(if self.server == DEFAULT_SERVER {
                    "Start a server with `sluice serve`, or name another server with --server or \
                    SLUICE_SERVER."
                        .to_owned()
                } else {
                    "Is the server running there? Name another server with --server, or start one with \
                    `sluice serve`."
                        .to_owned()
                }),
            ClientError::Transport { kind: TransportKind::Tls(fault), server, .. } => {
                let told = told.hint(format!("The address comes from {}.", self.origin));
                match tls_hint(*fault, server) {
                    Some(hint) => told.hint(hint),
                    None => told,
                }
            }
            ClientError::Server { code, .. } if code == "tls_required" => told.hint(format!(
                "The address comes from {}. The server speaks TLS: use \
                    https://{}.",
                self.origin,
                self.client.server()
            )),
            ClientError::Server { code, .. } if code == "unauthenticated" => told.hint(
                "Authenticate with --cert and --cert-key, or with --token-file; or set \
                    SLUICE_CERT and SLUICE_CERT_KEY, or SLUICE_TOKEN.",
            ),
            ClientError::Server { code, .. } if code == "forbidden" => {
                told.hint("`sluice whoami` shows your identity and your rights.")
            }
            ClientError::Server { code, .. } if code == "transaction_lost" => told.hint(format!(
                "If it was begun in another namespace than {}, name that one with --namespace or \
                 SLUICE_NAMESPACE.",
                self.namespace
            )),
            ClientError::Server { code, .. } if code == "no_leader" => {
                told.hint("`sluice cluster status` says which nodes are missing, and what to do.")
            }
            ClientError::Protocol { .. } => told.hint(format!("The address comes from {}.", self.origin)),
            _ => told,
        }
    }
}

/// Advice for a failed TLS handshake with `server`, a `host:port`.
fn tls_hint(fault: TlsFault, server: &str) -> Option<String> {
    match fault {
        TlsFault::Issuer => {
            Some("Name the CA that signed the server's certificate with --ca FILE or SLUICE_CA.".to_owned())
        }
        TlsFault::Name => {
            let name = server.rsplit_once(':').map_or(server, |(name, _)| name);
            let name = name.trim_start_matches('[').trim_end_matches(']');
            Some(format!(
                "Use a name that the certificate covers, or make a certificate for {name}: \
                 `sluice serve --tls auto --tls-name {name}`, or `sluice cert server {name}`."
            ))
        }
        TlsFault::ClearText => Some(format!("If the server speaks clear text, use http://{server}.")),
        _ => None,
    }
}

struct ChosenServer {
    server: String,
    namespace: String,
    origin: String,
    credentials: CredentialFiles,
    /// The credentials in the environment.
    token: Option<String>,
}

impl ChosenServer {
    /// A server without a context, to which the credentials in the environment apply.
    fn new(server: String, origin: &str, env: impl Fn(&str) -> Option<String>) -> ChosenServer {
        let token = env(TOKEN_VARIABLE);
        let credentials = CredentialFiles::of_environment(env);
        ChosenServer { server, namespace: String::new(), origin: origin.to_owned(), credentials, token }
    }
}

fn choose(flags: &ServerFlags, env: impl Fn(&str) -> Option<String>) -> Result<ChosenServer> {
    let mut chosen = if let Some(server) = &flags.server {
        ChosenServer::new(server.clone(), "--server", &env)
    } else if let Some(name) = &flags.context {
        named(&Contexts::load()?, name, "--context")?
    } else if let Some(server) = env("SLUICE_SERVER") {
        ChosenServer::new(server, "SLUICE_SERVER", &env)
    } else if let Some(name) = env("SLUICE_CONTEXT") {
        named(&Contexts::load()?, &name, "SLUICE_CONTEXT")?
    } else {
        let contexts = Contexts::load()?;
        match &contexts.current {
            Some(name) => named(&contexts, name, "`sluice context use`")?,
            None => ChosenServer::new(DEFAULT_SERVER.to_owned(), DEFAULT_ORIGIN, &env),
        }
    };
    if let Some(namespace) = flags.namespace.clone().or_else(|| env("SLUICE_NAMESPACE")) {
        chosen.namespace = namespace;
    }
    if chosen.namespace.is_empty() {
        chosen.namespace = "default".to_owned();
    }
    chosen.credentials = flags.credentials.clone().or(chosen.credentials);
    Ok(chosen)
}

fn named(contexts: &Contexts, name: &str, by: &str) -> Result<ChosenServer> {
    let context = contexts.find(name)?;
    Ok(ChosenServer {
        server: context.server.clone(),
        namespace: context.namespace.clone().unwrap_or_default(),
        origin: format!("the context {name:?}, chosen by {by}"),
        credentials: context.credentials.clone(),
        token: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(server: Option<&str>) -> ServerFlags {
        ServerFlags {
            server: server.map(str::to_owned),
            context: None,
            namespace: None,
            retry_for: None,
            credentials: CredentialFiles::default(),
        }
    }

    #[test]
    fn the_flag_stands_above_the_environment() {
        let env = |name: &str| match name {
            "SLUICE_SERVER" => Some("http://env:1".to_owned()),
            "SLUICE_NAMESPACE" => Some("shop".to_owned()),
            _ => None,
        };
        let chosen = choose(&flags(Some("http://flag:1")), env).unwrap();
        assert_eq!((chosen.server.as_str(), chosen.origin.as_str()), ("http://flag:1", "--server"));
        assert_eq!(chosen.namespace, "shop");
        assert_eq!(choose(&flags(None), env).unwrap().origin, "SLUICE_SERVER");
    }
}
