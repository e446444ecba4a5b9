//! Verification of a server by the fingerprint of its CA, which nothing else makes known.

use std::sync::Arc;

use sluice_calls::roster::join_token::fingerprint;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Verifier of servers that show a CA with one fingerprint, which has signed their certificate.
#[derive(Debug)]
pub(super) struct PinnedCa {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl PinnedCa {
    /// The verifier for a CA, by the SHA-256 of its certificate.
    pub(super) fn new(fingerprint: [u8; 32], provider: Arc<CryptoProvider>) -> PinnedCa {
        PinnedCa { fingerprint, provider }
    }
}

impl ServerCertVerifier for PinnedCa {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let ca = between.iter().find(|shown| fingerprint(shown) == self.fingerprint);
        let other = "the server is no node of the cluster for which the join token was made";
        let ca = ca.ok_or_else(|| Error::General(other.to_owned()))?;
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone().into_owned())?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&leaf, &roots, &[], now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
