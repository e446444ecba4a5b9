//! Requests to servers of others: whom TLS trusts, and one connection with HTTP/1.1, a request at a time.
//!
//! What lives here: what the collector of telemetry and the endpoints of pushes have in common. What does
//! not: addresses, times and retries, which each of them has rules of its own for.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// Most bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// TLS to others.
#[derive(Clone)]
pub struct Tls(TlsConnector);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS that trusts these CAs, as PEM; `None`: those that the system trusts.
    ///
    /// # Errors
    /// A CA that cannot be used.
    pub fn new(ca: Option<&[u8]>) -> Result<Tls, String> {
        let mut roots = RootCertStore::empty();
        match ca {
            // What the system has and cannot be used is not ours to judge; an empty store trusts nobody.
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate = certificate.map_err(|error| format!("the CA is no PEM: {error}"))?;
                    roots.add(certificate).map_err(|error| format!("the CA cannot be used: {error}"))?;
                }
                if roots.is_empty() {
                    return Err("the CA is no PEM of a certificate".to_owned());
                }
            }
        }
        Ok(Tls::trusting(roots))
    }

    /// TLS with which nobody can be reached.
    pub fn trusting_nobody() -> Tls {
        Tls::trusting(RootCertStore::empty())
    }

    fn trusting(roots: RootCertStore) -> Tls {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the ciphers of TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Tls(TlsConnector::from(Arc::new(config)))
    }

    /// Begins a connection over a socket to a server with this name.
    ///
    /// # Errors
    /// A name that no certificate can have; what went wrong in the handshake.
    pub async fn connect<S>(&self, host: &str, socket: S) -> Result<Connection, String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = self.0.connect(name, socket).await.map_err(|error| error.to_string())?;
        Connection::over(stream).await
    }
}

/// A connection, which ends when this is dropped.
#[derive(Debug)]
pub struct Connection {
    requests: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Begins a connection over a stream.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn over<S>(stream: S) -> Result<Connection, String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let begun = builder.handshake(TokioIo::new(stream)).await;
        let (requests, driver) = begun.map_err(|error| error.to_string())?;
        // Its errors are those of the requests.
        let driver = tokio::spawn(async move { drop(driver.await) }).abort_handle();
        Ok(Connection { requests, driver })
    }

    /// True when it takes no more requests.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends a request once the answer to the one before was read; gives the answer, whose body comes later.
    ///
    /// # Errors
    /// Those of the connection, which takes no more requests then.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        self.requests.ready().await?;
        self.requests.send_request(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_that_cannot_be_used_is_told() {
        assert!(Tls::new(Some(b"nothing")).unwrap_err().contains("no PEM of a certificate"));
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(Tls::new(Some(broken)).unwrap_err().contains("cannot be used"));
        assert!(Tls::new(None).is_ok());
    }
}
