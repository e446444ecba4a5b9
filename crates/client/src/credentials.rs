//! Credentials of a client: the CA that it trusts, its certificate, its token.

use std::fmt;
use std::sync::Arc;

use http::header::HeaderValue;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::error::ClientError;

/// Version of HTTP for which a connection is made (RFC 7301).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alpn {
    Http1,
    Http2,
}

/// Certificates are only used with `https://`; a token goes with every request.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The CAs that may have signed the server's certificate, as PEM; `None`: those that the system trusts.
    pub ca: Option<Vec<u8>>,
    /// The client's certificate, followed by those between it and the CA, as PEM.
    pub cert: Option<Vec<u8>>,
    /// Its private key, as PEM.
    pub key: Option<Vec<u8>>,
    /// A token of `sluice token create`.
    pub token: Option<String>,
}

/// Says what is there; keys and tokens belong into no log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("ca", &self.ca.is_some())
            .field("cert", &self.cert.is_some())
            .field("key", &self.key.is_some())
            .field("token", &self.token.is_some())
            .finish()
    }
}

impl Credentials {
    /// A TLS connector with these credentials.
    pub(crate) fn connector(&self, alpn: Alpn) -> Result<TlsConnector, ClientError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable(format!("TLS cannot be set up: {e}")))?
            .with_root_certificates(self.roots()?);
        let mut config = match (&self.cert, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let chain = certificates("the client's certificate", cert)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|e| unusable(format!("the client's private key is no PEM of one: {e}")))?;
                builder.with_client_auth_cert(chain, key).map_err(|e| {
                    unusable(format!("the client's certificate cannot be used with its key: {e}"))
                })?
            }
            _ => return Err(unusable("a client's certificate and its private key go together")),
        };
        config.alpn_protocols = vec![match alpn {
            Alpn::Http1 => b"http/1.1".to_vec(),
            Alpn::Http2 => b"h2".to_vec(),
        }];
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn roots(&self) -> Result<RootCertStore, ClientError> {
        let mut roots = RootCertStore::empty();
        let Some(pem) = &self.ca else {
            // What the system has and cannot be used is not ours to judge; an empty store trusts nobody.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for certificate in certificates("the CA", pem)? {
            roots.add(certificate).map_err(|e| unusable(format!("the CA cannot be used: {e}")))?;
        }
        Ok(roots)
    }

    /// The header that carries the token.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, ClientError> {
        let Some(token) = &self.token else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| unusable("the token has characters that no token has"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|e| unusable(format!("{what} is no PEM: {e}")))?;
    if found.is_empty() {
        return Err(unusable(format!("{what} is no PEM of a certificate")));
    }
    Ok(found)
}

fn unusable(reason: impl Into<String>) -> ClientError {
    ClientError::Credentials { reason: reason.into() }
}
