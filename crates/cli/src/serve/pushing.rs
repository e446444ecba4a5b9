//! Pushes of messages to endpoints, as the settings say.

use std::future::Future;
use std::sync::Arc;

use sluice_calls::access::Access;
use sluice_https::Tls;
use sluice_node::Node;
use sluice_push::{Options, Pushes};

use crate::config::Config;
use crate::terminal::{CliError, Result};

/// The pushes of the server, none of which has begun.
pub(super) fn pushes(config: &Config, access: &Access) -> Result<Pushes> {
    let failed = |reason: String| CliError::usage(format!("push.ca: {reason}"));
    let ca = match &config.push_ca.0 {
        Some(path) => Some(
            std::fs::read(path)
                .map_err(|error| failed(format!("cannot read {}: {error}", path.display())))?,
        ),
        None => None,
    };
    let tls = Tls::new(ca.as_deref()).map_err(failed)?;
    let agent = format!("sluice/{}", env!("CARGO_PKG_VERSION"));
    let mut options = Options::new(tls, config.push_allowed_addresses.clone(), agent);
    options.auditor = Some(Arc::new(access.clone()));
    Ok(Pushes::new(options))
}

/// Pushes the messages of a node while it serves, until it is to stop.
pub(super) async fn run<T>(
    pushes: &Pushes,
    node: &Node,
    stopping: impl Future<Output = ()>,
    serving: impl Future<Output = T>,
) -> T {
    let pushing = pushes.start(node.clone());
    let stop = async {
        stopping.await;
        pushing.stop().await;
    };
    tokio::join!(serving, stop).0
}
