//! The listening address, and whether it is safe.

use std::io;
use std::net::SocketAddr;

use sluice_calls::access::Access;
use tokio::net::{TcpListener, TcpSocket};

use super::security::Security;
use crate::config::{Loaded, Origin};
use crate::terminal::{CliError, Fault, Result};

/// Maximum number of connections that wait to be accepted, if the system allows as many
/// (`net.core.somaxconn`). With the usual 128, some of thousands of workers that reconnect at once would wait
/// for seconds, and some forever: those that wait for the server to speak first.
const BACKLOG: u32 = 4_096;

/// Listens at the address in the settings, unless the settings already show that it is unsafe.
pub(super) async fn bind(loaded: &Loaded, security: &Security) -> Result<TcpListener> {
    let listen = &loaded.config.listen;
    let from = origin(loaded);
    let found = tokio::net::lookup_host(listen).await;
    let found: Vec<SocketAddr> = found
        .map_err(|e| CliError::usage(format!("cannot find the address {listen} (from {from}): {e}")))?
        .collect();
    let open = found.iter().find(|address| !address.ip().is_loopback());
    if let Some(open) = open.filter(|_| !loaded.config.insecure && security.tls.is_none()) {
        return Err(clear_text(listen, open, &from));
    }
    listen_at(&found).map_err(|e| {
        let told = format!("cannot listen at {listen} (from {from}): {e}");
        match e.kind() {
            io::ErrorKind::AddrInUse => CliError::of(Fault::InUse, told).hint(
                "Another process uses this port, perhaps another sluice. --listen 127.0.0.1:0 takes a free \
                port.",
            ),
            io::ErrorKind::AddrNotAvailable => CliError::usage(told).hint(
                "This machine has no such address. 127.0.0.1 is reached from this machine only; 0.0.0.0 \
                stands for all its addresses.",
            ),
            io::ErrorKind::PermissionDenied => {
                CliError::usage(told).hint("Ports below 1024 need root; take a higher one.")
            }
            _ => CliError::failed(told),
        }
    })
}

/// Listens at the first of these addresses that is available.
fn listen_at(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut result = Err(io::Error::new(io::ErrorKind::InvalidInput, "the name has no address"));
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
    // A restarted server gets its port although connections of the former process are still closing.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Refuses an address that is unsafe with the present identities; called when the tokens are known.
pub(super) fn check(loaded: &Loaded, address: &SocketAddr, access: &Access) -> Result<()> {
    if address.ip().is_loopback() || loaded.config.insecure || access.asks() {
        return Ok(());
    }
    let (listen, from) = (&loaded.config.listen, origin(loaded));
    let reached = format!(
        "{listen} (from {from}) can be reached from other machines, and callers need not authenticate"
    );
    Err(CliError::usage(reached)
        .hint(format!("Whoever reaches port {} could read, send and delete everything.", address.port()))
        .hint(
            "Use --tls auto, --tls-client-ca or --access-policy; or create a token while listening on \
            127.0.0.1.",
        )
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
        .hint("Use --tls auto, or --tls-cert and --tls-key; or listen on 127.0.0.1.")
        .hint("On a network that you trust, add --insecure.")
}
