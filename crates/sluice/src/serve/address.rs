//! Where to listen, and whether that is safe.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::cli::{CliError, Result};
use crate::config::{Loaded, Origin};

/// Listens at the address of the settings.
pub(super) async fn bind(loaded: &Loaded) -> Result<TcpListener> {
    let listen = &loaded.config.listen;
    let from = match loaded.origin("listen") {
        Origin::Default => "the default".to_owned(),
        origin => origin.to_string(),
    };
    let found = tokio::net::lookup_host(listen).await;
    let found: Vec<SocketAddr> = found
        .map_err(|e| CliError::usage(format!("cannot find the address {listen} (from {from}): {e}")))?
        .collect();
    let open = found.iter().find(|address| !address.ip().is_loopback());
    if let Some(open) = open.filter(|_| !loaded.config.insecure) {
        return Err(refusal(listen, open, &from));
    }
    TcpListener::bind(found.as_slice()).await.map_err(|e| {
        let error = CliError::failed(format!("cannot listen at {listen} (from {from}): {e}"));
        match e.kind() {
            std::io::ErrorKind::AddrInUse => error.hint(
                "Another server has this port, perhaps a sluice. --listen 127.0.0.1:0 takes a free one.",
            ),
            std::io::ErrorKind::PermissionDenied => {
                error.hint("Ports below 1024 are for root; take a higher one.")
            }
            _ => error,
        }
    })
}

fn refusal(listen: &str, open: &SocketAddr, from: &str) -> CliError {
    CliError::usage(format!(
        "{listen} (from {from}) can be reached from other machines, and there is no authentication yet"
    ))
    .hint(format!("Whoever reaches port {} could read, send and delete everything.", open.port()))
    .hint("Listen on 127.0.0.1, or, on a network that you trust, add --insecure.")
}
