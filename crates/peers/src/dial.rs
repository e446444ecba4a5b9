//! Connecting to a peer, again and again.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use sluice_replica::NodeId;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::{TlsConnector, TlsStream, client};

use crate::connection::End;
use crate::identity::Identity;
use crate::shared::{Failure, Shared};
use crate::tls::PeerFiles;
use crate::{ALPN, GREETING_MAX};

/// First and longest pause between two attempts. Each is twice the last, less a random part of up to a half.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Time without a connection with a node that has the higher number, and so has to connect, after which this
/// one does: a node that was removed learns so from nobody else, and the other one may not know the present
/// address of this one, or may not know of it at all.
const KNOCK_AFTER: Duration = Duration::from_secs(5);

/// Keeps a connection to a node until this node stops, or one of the two was removed.
pub(crate) async fn keep_connected(shared: Arc<Shared>, node: NodeId) {
    let (mut pause, mut logged) = (PAUSE_MIN, String::new());
    let waits = node > shared.local.identity.node;
    loop {
        if waits {
            tokio::select! {
                () = shared.stopped() => return,
                () = sleep(KNOCK_AFTER) => {}
            }
        }
        let Some(address) = shared.nodes().addresses.get(&node).cloned() else { return };
        if waits && shared.links.get(node).is_some() {
            continue;
        }
        let began = Instant::now();
        let end = tokio::select! {
            () = shared.stopped() => return,
            end = connect(&shared, node, &address) => end,
        };
        if let Err(failure) = &end {
            shared.links.note(node, failure.to_string());
        }
        let text = match end {
            Ok(End::Stopping | End::PeerRemoved) => return,
            Ok(End::Removed) | Err(Failure::Ungreeted(End::Removed)) => {
                return shared.receiver.removed(node);
            }
            Err(Failure::Unreached(_)) if waits => continue,
            Ok(end) => format!("the connection with node {} is over: {end}", node.get()),
            Err(failure) => format!("no connection with node {} at {address}: {failure}", node.get()),
        };
        if text != logged {
            tracing::warn!("{text}");
            logged = text;
        }
        if began.elapsed() > PAUSE_MAX {
            pause = PAUSE_MIN;
        }
        tokio::select! {
            () = shared.stopped() => return,
            () = sleep(less_some(pause)) => pause = (pause * 2).min(PAUSE_MAX),
        }
    }
}

async fn connect(shared: &Arc<Shared>, node: NodeId, address: &str) -> Result<End, Failure> {
    let connecting = handshake(&shared.files, address, ALPN);
    let stream = timeout(GREETING_MAX, connecting).await;
    let stream = stream.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
    let stream = stream.map_err(Failure::Unreached)?;
    shared.greet(TlsStream::Client(stream), node).await
}

impl PeerFiles {
    /// Connects to another node at the address `HOST:PORT`, by the protocol with this name in ALPN.
    ///
    /// # Errors
    ///
    /// The node is not reached, speaks no such protocol, or is another one.
    pub async fn connect(
        &self,
        node: Identity,
        address: &str,
        alpn: &'static [u8],
    ) -> Result<client::TlsStream<TcpStream>, String> {
        let stream = handshake(self, address, alpn).await?;
        let leaf = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let there = Identity::of_certificate(leaf.ok_or("it has shown no certificate")?);
        let there = there.map_err(|error| error.to_string())?;
        if there == node { Ok(stream) } else { Err(format!("{there} is there instead")) }
    }
}

async fn handshake(
    files: &PeerFiles,
    address: &str,
    alpn: &'static [u8],
) -> Result<client::TlsStream<TcpStream>, String> {
    let files = files.clone();
    let config = spawn_blocking(move || files.client_config(alpn)).await;
    let config = config.map_err(|error| error.to_string())??;
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    // Without it, it is only slower.
    let _ = stream.set_nodelay(true);
    // No name is compared, and with an address none is sent.
    let name = ServerName::IpAddress(stream.peer_addr().map_err(|error| error.to_string())?.ip().into());
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    stream.map_err(|error| format!("the handshake failed: {error}"))
}

/// A pause without a random part of up to a half, so that nodes that have lost each other do not all come
/// back at once.
fn less_some(pause: Duration) -> Duration {
    let part = RandomState::new().build_hasher().finish() % 512;
    pause - pause * part as u32 / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_within_a_half() {
        let pauses: Vec<Duration> = (0..100).map(|_| less_some(PAUSE_MAX)).collect();
        assert!(pauses.iter().all(|pause| (PAUSE_MAX / 2..=PAUSE_MAX).contains(pause)));
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }
}
