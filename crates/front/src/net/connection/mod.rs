//! The life of a connection: its handshake, the version of HTTP that it speaks, and its end.
//!
//! | module | |
//! |---|---|
//! | `preface` | which version a client speaks that does not say so in its handshake |
//! | `http1` | HTTP/1.1, by hyper |
//! | `heads` | heads of HTTP/1.1, looked at before hyper reads them |
//! | `framing` | where a body of HTTP/1.1 ends |
//! | `http2` | HTTP/2, by `sluice-http2` |
//! | `stalls` | counts streams of HTTP/2 whose clients are slow |

mod framing;
mod heads;
mod http1;
mod http2;
mod preface;
mod stalls;

#[cfg(feature = "fuzzing")]
pub(crate) use heads::check_pieces;

use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use sluice_calls::access::{ConnectionSlot, Peer};
use sluice_http2::drive::{Plain, Tls as TlsWire};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::server::TlsStream;

use self::preface::{Version, version_of};
use super::activity::{Activity, Verdict};
use super::alpn::AlpnHandler;
use super::context::Context;
use super::options::{HttpOptions, SEND_BUFFER_BYTES};
use super::service::Service;
use super::tls::{HandshakeFailure, ShownCertificate, client_certificates};

/// Grace period of a connection that was told to close.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Serves a connection until it ends. `stopping` turns true when the server stops.
pub(super) async fn serve<S: Service>(
    context: Arc<Context>,
    stream: TcpStream,
    slot: ConnectionSlot,
    mut stopping: watch::Receiver<bool>,
) {
    context.metrics.connections.fetch_add(1, Ordering::Relaxed);
    let _open = OpenConnection::new(&context);
    // A small answer must not wait for the next one; if that fails it is only slower.
    let _ = stream.set_nodelay(true);
    // Only if the system allows; without it, slow clients are judged more coarsely.
    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(SEND_BUFFER_BYTES);
    let Some(tls) = &context.options.tls else {
        let peer = Peer::new(context.calls.access(), slot, None);
        return Served::new(&context, peer, stopping).in_clear_text::<S>(stream).await;
    };
    let changes = tls.changes();
    let accepted = tokio::select! {
        biased;
        // Nothing was asked yet: a stop need not wait for who says nothing.
        _ = stopping.wait_for(|stopping| *stopping) => return,
        accepted = tls.accept(stream) => accepted,
    };
    match accepted {
        Ok(stream) if let Some(further) = chosen(&context.options, &stream) => {
            let shown = ShownCertificate::of(tls, changes, &stream);
            // Not one of the listener's connections: the last answers may need it.
            let certificates = client_certificates(&stream);
            let is_node = context.options.nodes.as_ref().is_some_and(|nodes| nodes.is_node(certificates));
            let slot = if is_node { slot.of_node() } else { slot };
            tokio::spawn(hand_over(further, stream, shown, slot));
        }
        Ok(stream) => {
            let peer = peer_of(&context, slot, client_certificates(&stream));
            let shown = ShownCertificate::of(tls, changes, &stream);
            Served { shown, ..Served::new(&context, peer, stopping) }.over_tls::<S>(stream).await;
        }
        Err(failure) => {
            // Who only looks whether the port is open, as balancers do, has failed nothing.
            if !matches!(failure, HandshakeFailure::Gone) {
                // Banned or not, this connection is over.
                let _ = slot.failed();
            }
            context.metrics.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!("connection ended: {failure}");
        }
    }
}

/// The protocol beside HTTP, if the client has chosen it.
fn chosen(options: &HttpOptions, stream: &TlsStream<TcpStream>) -> Option<Arc<dyn AlpnHandler>> {
    let alpn = stream.get_ref().1.alpn_protocol();
    options.further.clone().filter(|further| alpn == Some(further.name()))
}

/// Gives a connection to the protocol beside HTTP, until it ends or has to.
async fn hand_over(
    further: Arc<dyn AlpnHandler>,
    stream: TlsStream<TcpStream>,
    mut shown: Option<ShownCertificate>,
    _slot: ConnectionSlot,
) {
    tokio::select! {
        () = refused(&mut shown) => {}
        () = further.serve(stream) => {}
    }
}

/// The other end of a connection over which these certificates were shown, its own first.
fn peer_of(context: &Context, slot: ConnectionSlot, shown: &[CertificateDer<'_>]) -> Peer {
    let access = context.calls.access();
    match &context.options.nodes {
        Some(nodes) if nodes.is_node(shown) => Peer::node(access, slot.of_node()),
        _ => Peer::new(access, slot, shown.first().map(AsRef::as_ref)),
    }
}

/// A connection that has done its handshake.
struct Served<'c> {
    context: &'c Arc<Context>,
    peer: Arc<Peer>,
    activity: Arc<Activity>,
    shown: Option<ShownCertificate>,
    stopping: watch::Receiver<bool>,
}

impl<'c> Served<'c> {
    fn new(context: &'c Arc<Context>, peer: Peer, stopping: watch::Receiver<bool>) -> Served<'c> {
        let activity = Arc::new(Activity::new(context.options.connection_answers_bytes_max));
        Served { context, peer: Arc::new(peer), activity, shown: None, stopping }
    }

    /// ALPN has chosen the version; without it, it is HTTP/1.1 (RFC 9113 §3.2).
    async fn over_tls<S: Service>(self, stream: TlsStream<TcpStream>) {
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return self.speak_http1::<S>(stream).await;
        }
        let (stream, tls) = stream.into_inner();
        let wire = TlsWire::new(stream, tls, &self.context.http2_limits);
        self.speak_http2::<S>(wire).await;
    }

    /// The first bytes tell the version (RFC 9113 §3.3).
    async fn in_clear_text<S: Service>(mut self, stream: TcpStream) {
        let options = &self.context.options;
        let begun = tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stopping| *stopping) => return,
            begun = version_of(stream, options.idle_timeout, options.head_timeout) => begun,
        };
        match begun {
            Ok((Version::Http1, stream)) => self.speak_http1::<S>(stream).await,
            Ok((Version::Http2, stream)) => self.speak_http2::<S>(Plain::new(stream)).await,
            Err(error) => ended(self.context, Err(error)),
        }
    }

    /// Lets a conversation go on until it ends, or has to.
    async fn converse(self, mut conversation: impl Conversation) {
        let Served { context, peer, mut shown, mut stopping, .. } = self;
        let (mut closing, mut turned_away) = (false, false);
        let mut look_after = Duration::ZERO;
        loop {
            tokio::select! {
                // First, so that an answer that the stop brings about says `connection: close`.
                biased;
                _ = stopping.wait_for(|stopping| *stopping), if !closing => {
                    closing = true;
                    conversation.shut_down();
                }
                () = peer.turned_away(), if !turned_away => {
                    (closing, turned_away, look_after) = (true, true, CLOSE_GRACE);
                    conversation.shut_down();
                }
                // At once: whoever is behind it is known no more.
                () = refused(&mut shown) => return,
                end = &mut conversation => return ended(context, end),
                () = sleep(look_after) => match conversation.verdict(&context.options) {
                    // Its last answers had their time, and a session or requests without end get no more.
                    _ if turned_away => return,
                    Verdict::Keep(next) => look_after = next,
                    Verdict::Close if !closing => {
                        closing = true;
                        look_after = CLOSE_GRACE;
                        conversation.shut_down();
                    }
                    Verdict::Close => return,
                    Verdict::Cut(reason) => {
                        return ended(context, Err(io::Error::new(io::ErrorKind::TimedOut, reason)));
                    }
                },
            }
        }
    }
}

/// Resolves when what a client has shown is taken no more.
async fn refused(shown: &mut Option<ShownCertificate>) {
    match shown {
        Some(shown) => shown.refused().await,
        None => pending().await,
    }
}

/// Counts and logs a connection that did not end in order.
fn ended(context: &Context, end: io::Result<()>) {
    let Err(error) = end else { return };
    if error.kind() == io::ErrorKind::TimedOut {
        context.metrics.connections_cut.fetch_add(1, Ordering::Relaxed);
    }
    tracing::debug!("connection ended: {error}");
}

/// A connection and its protocol: a future that ends when the connection has. One that fails with
/// [`io::ErrorKind::TimedOut`] was cut.
trait Conversation: Future<Output = io::Result<()>> + Unpin {
    /// Begins an end in order: what is asked already is answered.
    fn shut_down(&mut self);

    /// The decision on the connection as of now.
    fn verdict(&self, options: &HttpOptions) -> Verdict;
}

/// Counts an open connection while it lives.
struct OpenConnection<'c>(&'c Context);

impl<'c> OpenConnection<'c> {
    fn new(context: &'c Context) -> OpenConnection<'c> {
        context.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(context)
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
