//! `sluice mcp`: queues, results, locks and documents as tools of the Model Context Protocol, within the
//! rights of the caller.
//!
//! What may be done is the server's to say: a tool makes the same call as anybody, under the token of its
//! caller. What a person has to approve is named by the policy of the server.
//!
//! Map: `tools` the table of tools, `schema` their arguments out of the description of the API, `calling`
//! from arguments to a call, `answer` from its answer to a result, `agent` the protocol's side, `over_stdio`
//! and `over_http` its transports, `caller` the end of the former, `unstalled` writes of the latter that end.

mod agent;
mod answer;
mod caller;
mod calling;
mod over_http;
mod over_stdio;
mod schema;
mod tools;
mod unstalled;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use sluice_client::Credentials;
use tokio::net::TcpListener;

use crate::connect::ServerFlags;
use crate::terminal::values::not_empty;
use crate::terminal::{CliError, Fault, Result};
use agent::{Agent, Identity};
use over_http::Callers;

/// Time for which calls are tried again if `--retry-for` names none, so that a session outlives a restart of
/// the server.
const RETRY_FOR: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice mcp --token-file agent.token\n  sluice mcp --http 127.0.0.1:7071\n\n\
    Over stdio the agent has the rights of the process. Over HTTP each request needs the \
    token of its caller (Authorization: Bearer TOKEN), and the process uses none of its own. Calls are tried again \
    for 15s when the server is busy or cannot be reached, unless --retry-for says otherwise. docs/agents.md is the \
    guide."
)]
pub(crate) struct McpArgs {
    /// Listen for streamable HTTP at this address, instead of stdio; the path does not matter.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    http: Option<String>,
    /// Name by which callers reach it, beside localhost; repeat the flag for several.
    #[arg(long, value_name = "HOST", requires = "http", value_parser = not_empty)]
    name: Vec<String>,
    /// Origin of web pages that may call it, such as https://chat.example.org; repeat the flag for several.
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = origin)]
    origin: Vec<String>,
    /// Listen on an address that other machines reach, although tokens come in clear text.
    #[arg(long, requires = "http")]
    insecure: bool,
    #[command(flatten)]
    server: ServerFlags,
}

fn host_and_port(text: &str) -> std::result::Result<String, String> {
    let is_one =
        text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_one { Ok(text.to_owned()) } else { Err("expected HOST:PORT, such as 127.0.0.1:7071".to_owned()) }
}

fn origin(text: &str) -> std::result::Result<String, String> {
    let is_one = ["http://", "https://"]
        .iter()
        .any(|scheme| text.strip_prefix(scheme).is_some_and(|host| !host.is_empty() && !host.contains('/')));
    if is_one { Ok(text.to_owned()) } else { Err("expected http://HOST or https://HOST".to_owned()) }
}

/// Serves until the agent, or the process, ends.
pub(crate) async fn run(args: McpArgs) -> Result<u8> {
    let connection = args.server.connect_patiently(RETRY_FOR)?;
    let Some(listen) = &args.http else {
        return over_stdio::serve(Identity::Process(connection.client.clone())).await;
    };
    let listener = bind(listen, args.insecure).await?;
    let options = connection.options();
    // Whoever calls has to bring a token of their own.
    let credentials = Credentials { ca: options.credentials.ca.clone(), ..Credentials::default() };
    let identity = Identity::Callers {
        server: connection.urls().to_owned(),
        namespace: connection.namespace.clone(),
        options: sluice_client::Options { credentials, ..options },
    };
    let address = listener.local_addr().map_err(|e| CliError::failed(format!("cannot listen: {e}")))?;
    eprintln!("sluice mcp listens at http://{address}/ for {}", connection.url());
    let callers = Callers { names: args.name.clone(), origins: args.origin.clone() };
    tokio::select! {
        () = over_http::serve(listener, Agent::new(identity), callers) => Ok(0),
        _ = tokio::signal::ctrl_c() => Ok(0),
        () = terminated() => Ok(0),
    }
}

/// Listens at an address of this machine; with `insecure` at any.
async fn bind(listen: &str, insecure: bool) -> Result<TcpListener> {
    let found = tokio::net::lookup_host(listen).await;
    let found: Vec<SocketAddr> =
        found.map_err(|e| CliError::usage(format!("cannot find the address {listen}: {e}")))?.collect();
    if let Some(open) = found.iter().find(|address| !address.ip().is_loopback() && !insecure) {
        return Err(CliError::usage(format!(
            "{open} can be reached from other machines, and tokens come in clear text"
        ))
        .hint("Listen on 127.0.0.1, with a proxy that speaks TLS in front of it and --name for its host.")
        .hint("On a network that you trust, add --insecure."));
    }
    TcpListener::bind(found.as_slice()).await.map_err(|e| {
        let fault = if e.kind() == std::io::ErrorKind::AddrInUse { Fault::InUse } else { Fault::Usage };
        CliError::of(fault, format!("cannot listen at {listen}: {e}"))
    })
}

async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut told) => drop(told.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tokens_in_clear_text_stay_on_this_machine() {
        let error = bind("0.0.0.0:0", false).await.unwrap_err();
        assert!(error.message().contains("can be reached from other machines"), "{}", error.message());
        assert!(bind("127.0.0.1:0", false).await.is_ok() && bind("0.0.0.0:0", true).await.is_ok());
        let taken = bind("127.0.0.1:0", false).await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        assert_eq!(bind(&address, false).await.unwrap_err().code(), "in_use");
        assert_eq!(bind("nowhere", false).await.unwrap_err().code(), "usage");
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for right in ["127.0.0.1:0", "localhost:7071", "[::1]:7071"] {
            assert!(host_and_port(right).is_ok(), "{right}");
        }
        for wrong in ["", "127.0.0.1", ":7071", "localhost:", "localhost:http", "[::1]", "a:65536"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_origin_has_a_scheme_and_no_path() {
        assert!(origin("https://a.example:8443").is_ok() && origin("http://localhost").is_ok());
        for wrong in ["", "a.example", "https://", "https://a.example/", "ftp://a", "*", "null"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
