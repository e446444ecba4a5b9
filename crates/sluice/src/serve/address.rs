//! Where to listen, and whether that is safe.

use std::io;
use std::net::SocketAddr;

use sluice_calls::access::Access;
use tokio::net::{TcpListener, TcpSocket};

use super::secured::Secured;
use crate::config::{Loaded, Origin};
use crate::terminal::{CliError, Fault, Result};

/// Connections that may wait to be accepted, if the system allows as many (`net.core.somaxconn`). With the
/// usual 128, of thousands of workers that come back at once some would wait for seconds, and some for ever:
/// those that say nothing first.
const BACKLOG: u32 = 4_096;

/// Listens at the address of the settings, if that is safe as far as the settings tell.
pub(super) async fn bind(loaded: &Loaded, secured: &Secured) -> Result<TcpListener> {
    let listen = &loaded.config.listen;
    let from = origin(loaded);
    let found = tokio::net::lookup_host(listen).await;
    let found: Vec<SocketAddr> = found
        .map_err(|e| CliError::usage(format!("cannot find the address {listen} (from {from}): {e}")))?
        .collect();
    let open = found.iter().find(|address| !address.ip().is_loopback());
    if let Some(open) = open.filter(|_| !loaded.config.insecure && secured.tls.is_none()) {
        return Err(clear_text(listen, open, &from));
    }
    listen_at(&found).map_err(|e| {
        let told = format!("cannot listen at {listen} (from {from}): {e}");
        match e.kind() {
            io::ErrorKind::AddrInUse => CliError::of(Fault::InUse, told).hint(
                "Another server has this port, perhaps a sluice. --listen 127.0.0.1:0 takes a free one.",
            ),
            io::ErrorKind::AddrNotAvailable => CliError::usage(told).hint(
                "This machine has no such address. 127.0.0.1 is this machine, 0.0.0.0 all that it has.",
            ),
            io::ErrorKind::PermissionDenied => {
                CliError::usage(told).hint("Ports below 1024 are for root; take a higher one.")
            }
            _ => CliError::failed(told),
        }
    })
}

/// Listens at the first of these that can be had.
fn listen_at(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut result = Err(io::Error::new(io::ErrorKind::InvalidInput, "it stands for no address"));
    for address in addresses {
        result = listen_at_one(*address);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn listen_at_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that starts again finds its port although connections of the one before are still ending.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether the address is safe with the identities that there are; asked when the tokens are known.
pub(super) fn check(loaded: &Loaded, address: &SocketAddr, access: &Access) -> Result<()> {
    if address.ip().is_loopback() || loaded.config.insecure || access.asks() {
        return Ok(());
    }
    let (listen, from) = (&loaded.config.listen, origin(loaded));
    let reached = format!(
        "{listen} (from {from}) can be reached from other machines, and nobody is asked who they are"
    );
    Err(CliError::usage(reached)
        .hint(format!("Whoever reaches port {} could read, send and delete everything.", address.port()))
        .hint("Take --tls auto, or --tls-client-ca, or --access-policy; or make a token while listening on 127.0.0.1.")
        .hint("On a network that you trust, add --insecure."))
}

fn origin(loaded: &Loaded) -> String {
    match loaded.origin("listen") {
        Origin::Default => "the default".to_owned(),
        origin => origin.to_string(),
    }
}

fn clear_text(listen: &str, open: &SocketAddr, from: &str) -> CliError {
    CliError::usage(format!("{listen} (from {from}) can be reached from other machines, and there is no TLS"))
        .hint(format!("Whoever reaches port {} could read, send and delete everything.", open.port()))
        .hint("Take --tls auto, or --tls-cert and --tls-key; or listen on 127.0.0.1.")
        .hint("On a network that you trust, add --insecure.")
}
