//! The handshake of a connection.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Current, Tls};

/// The type of the record that every TLS connection begins with (RFC 8446 §5.1).
const HANDSHAKE_RECORD: u8 = 0x16;

/// The answer to HTTP in clear text on a TLS port.
const CLEAR_TEXT: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: application/json\r\ncontent-length: 130\r\nconnection: close\r\n\r\n\
    {\"error\":{\"code\":\"tls_required\",\"message\":\"this port speaks TLS, and this was clear text: use https:// \
    in the URL\",\"details\":{}}}\n";

/// The reason for which a handshake failed.
#[derive(Debug)]
pub enum HandshakeFailure {
    /// The handshake took too long.
    Late,
    /// The client spoke clear text. If that was HTTP, it was told so.
    ClearText,
    /// The client went away before it said a word.
    Gone,
    /// The client's messages or certificate are not valid; it got an alert.
    Refused(io::Error),
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeFailure::Late => f.write_str("the handshake was not done in time"),
            HandshakeFailure::ClearText => f.write_str("clear text on a TLS port"),
            HandshakeFailure::Gone => f.write_str("closed before the handshake"),
            HandshakeFailure::Refused(error) => write!(f, "the handshake failed: {error}"),
        }
    }
}

impl Tls {
    /// Told when its files were replaced.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Does the handshake, within its time.
    ///
    /// # Errors
    /// Why there is none; the connection is closed then.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, HandshakeFailure> {
        let accepted = timeout(self.handshake_timeout, handshake(&self.current(), stream)).await;
        accepted.unwrap_or(Err(HandshakeFailure::Late))
    }
}

async fn handshake(current: &Current, stream: TcpStream) -> Result<TlsStream<TcpStream>, HandshakeFailure> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) if first[0] == HANDSHAKE_RECORD => {}
        Ok(1) => {
            tell_clear_text(stream, first[0]).await;
            return Err(HandshakeFailure::ClearText);
        }
        _ => return Err(HandshakeFailure::Gone),
    }
    let acceptor = TlsAcceptor::from(Arc::clone(&current.config));
    let stream = acceptor.accept(stream).await.map_err(HandshakeFailure::Refused)?;
    check_resumed(current, &stream).map_err(HandshakeFailure::Refused)?;
    Ok(stream)
}

/// A resumed session brings the client's certificate out of its ticket, where nobody has looked at it again.
fn check_resumed(current: &Current, stream: &TlsStream<TcpStream>) -> io::Result<()> {
    let connection = stream.get_ref().1;
    let Some([leaf, between @ ..]) = connection.peer_certificates() else { return Ok(()) };
    if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
        return Ok(());
    }
    current.verify(leaf, between).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl Current {
    fn verify(&self, leaf: &CertificateDer<'_>, between: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        let Some(clients) = &self.clients else { return Ok(()) };
        clients.verify_client_cert(leaf, between, UnixTime::now()).map(drop)
    }
}

/// The certificates that the client of an open connection has shown, which may be taken no more when CAs are
/// replaced.
pub(crate) struct ShownCertificate {
    tls: Arc<Tls>,
    changes: watch::Receiver<()>,
    chain: Vec<CertificateDer<'static>>,
}

impl ShownCertificate {
    /// `changes`: those since before the handshake. `None`: the client has shown none.
    pub(crate) fn of(
        tls: &Arc<Tls>,
        changes: watch::Receiver<()>,
        stream: &TlsStream<TcpStream>,
    ) -> Option<ShownCertificate> {
        let chain = stream.get_ref().1.peer_certificates()?.to_vec();
        Some(ShownCertificate { tls: Arc::clone(tls), changes, chain })
    }

    /// Resolves when they are taken no more.
    pub(crate) async fn refused(&mut self) {
        loop {
            // Never an error: it knows the sender.
            let _ = self.changes.changed().await;
            if let [leaf, between @ ..] = &*self.chain
                && self.tls.current().verify(leaf, between).is_err()
            {
                return;
            }
        }
    }
}

/// The certificates that the client has shown, its own first; none if it has shown none.
pub(crate) fn client_certificates(stream: &TlsStream<TcpStream>) -> &[CertificateDer<'static>] {
    stream.get_ref().1.peer_certificates().unwrap_or_default()
}

async fn tell_clear_text(mut stream: TcpStream, first: u8) {
    if !first.is_ascii_uppercase() {
        return;
    }
    // Whoever does not read it gets none; the caller's deadline bounds the wait for it.
    if stream.write_all(CLEAR_TEXT).await.is_ok() && stream.shutdown().await.is_ok() {
        // Until the client closes: closing on unread bytes would reset the connection and lose the answer.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::CLEAR_TEXT;

    #[test]
    fn the_answer_to_clear_text_is_as_long_as_it_says() {
        let text = std::str::from_utf8(CLEAR_TEXT).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
