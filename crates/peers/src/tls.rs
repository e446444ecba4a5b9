//! Certificates on both sides of a connection.
//!
//! A peer is who its certificate names, if the cluster's CA has signed it; the address over which it is
//! reached proves nothing and is not compared. Files are read for each connection, so that renewed ones are
//! taken up.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    ClientConfig, CommonState, DigitallySignedStruct, Error, ProtocolVersion, RootCertStore, SignatureScheme,
};

use crate::ALPN;
use crate::hello::Refusal;
use crate::identity::Identity;

/// Files of a node, all of them PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerFiles {
    /// Certificate of the node, for server and client, followed by those between it and the CA.
    pub cert: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// Certificate of the cluster's CA.
    pub ca: PathBuf,
}

impl PeerFiles {
    /// The settings for connections to other nodes, by the protocol with this name in ALPN.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or used, which the text names.
    pub fn client_config(&self, alpn: &[u8]) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            Arc::new(Verifier { trust: ClusterCa(self.roots()?), provider: Arc::clone(&provider) });
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let key = key.map_err(|error| format!("{}: {error}", self.key.display()))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(certificates(&self.cert)?, key);
        let mut config = config.map_err(|error| {
            format!("{} with the key {}: {error}", self.cert.display(), self.key.display())
        })?;
        config.alpn_protocols = vec![alpn.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// Checks the certificates that a peer has shown as a client against the cluster's CA: the server's own
    /// listener may trust other CAs as well.
    pub(crate) fn check_client(&self, shown: &[CertificateDer<'_>]) -> Result<(), Refusal> {
        let [leaf, between @ ..] = shown else { return Err(Refusal::Insecure) };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = self.roots().map_err(Refusal::Untrusted)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| Refusal::Untrusted(error.to_string()))?;
        let verified = verifier.verify_client_cert(leaf, between, UnixTime::now());
        verified.map(drop).map_err(|error| Refusal::Untrusted(error.to_string()))
    }

    /// The node that a client is, by the certificates that it has shown, its own first. `None`: they name no
    /// node, or the cluster's CA has not signed them. Reads files only for who claims to be a node.
    pub fn node_of(&self, shown: &[CertificateDer<'_>]) -> Option<Identity> {
        let named = Identity::of_certificate(shown.first()?).ok()?;
        self.check_client(shown).ok().map(|()| named)
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca)? {
            roots.add(certificate).map_err(|error| format!("{}: {error}", self.ca.display()))?;
        }
        Ok(roots)
    }
}

/// The node that is at the other end of a connection, as its certificate names it.
pub(crate) fn identity_of(connection: &CommonState) -> Result<Identity, Refusal> {
    let is_secure = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3)
        && connection.alpn_protocol() == Some(ALPN);
    let leaf = connection.peer_certificates().and_then(<[_]>::first).filter(|_| is_secure);
    Identity::of_certificate(leaf.ok_or(Refusal::Insecure)?).map_err(Refusal::Certificate)
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, String> {
    let told = |error| format!("{}: {error}", path.display());
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(told)?.collect();
    certificates.map_err(told)
}

/// The CAs by which a [`Verifier`] trusts a server.
pub trait Trust: fmt::Debug + Send + Sync + 'static {
    /// The CAs, where the server has shown these certificates behind its own.
    ///
    /// # Errors
    ///
    /// The server has not shown what it has to, or a CA cannot be used.
    fn roots(&self, shown: &[CertificateDer<'_>]) -> Result<RootCertStore, Error>;
}

/// Verifier of the certificates of servers: signed by a trusted CA, valid now, whatever their names.
#[derive(Debug)]
pub struct Verifier<T> {
    /// The trusted CAs.
    pub trust: T,
    /// The cryptography.
    pub provider: Arc<CryptoProvider>,
}

/// The cluster's CA, which is trusted whatever is shown.
#[derive(Debug)]
struct ClusterCa(RootCertStore);

impl Trust for ClusterCa {
    fn roots(&self, _shown: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        Ok(self.0.clone())
    }
}

impl<T: Trust> ServerCertVerifier for Verifier<T> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        let roots = self.trust.roots(between)?;
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&leaf, &roots, between, now, algorithms)?;
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
