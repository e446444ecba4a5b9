//! Stdio: one caller, the process at the other end.

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use super::agent::{Agent, Identity};
use super::caller::Input;
use crate::terminal::{CliError, Fault, Result};

/// Serves the process at the other end of stdin and stdout.
pub(super) async fn serve(identity: Identity) -> Result<u8> {
    let failed =
        |reason: String| CliError::of(Fault::Failed, format!("the agent cannot be served: {reason}"));
    let (input, caller) = Input::new(tokio::io::stdin());
    match Agent::new(identity).of(caller).serve((input, tokio::io::stdout())).await {
        Ok(running) => running.waiting().await.map(|_| 0).map_err(|e| failed(e.to_string())),
        // The agent has gone before it has said a word.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(0),
        Err(error) => Err(failed(error.to_string())),
    }
}
