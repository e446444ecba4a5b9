//! Protocols beside HTTP on the server's port.

use std::fmt;
use std::pin::Pin;

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Protocol beside HTTP that a client may choose by ALPN (RFC 7301), on a listener with TLS.
pub trait AlpnHandler: fmt::Debug + Send + Sync {
    /// The protocol's name, for [`crate::tls::Tls::load`].
    fn name(&self) -> &'static [u8];

    /// Serves a connection whose client has chosen the protocol, until it ends. The future is dropped when
    /// the client's certificate is taken no more. When the listener ends the connection goes on: requests
    /// that are still answered may need it.
    fn serve(&self, stream: TlsStream<TcpStream>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
