//! TLS of the benchmark, the same for both stacks.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, SupportedCipherSuite};

use crate::certificates::{Certificates, Pair};

/// A cipher of TLS 1.3.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cipher {
    #[value(name = "aes-128-gcm")]
    Aes128Gcm,
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    #[value(name = "chacha20-poly1305")]
    Chacha20Poly1305,
}

impl Cipher {
    fn suite(self) -> SupportedCipherSuite {
        match self {
            Cipher::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
            Cipher::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
            Cipher::Chacha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// TLS with a certificate and its key from PEM files.
pub(crate) fn from_files(
    cert: &Path,
    key: &Path,
    cipher: Option<Cipher>,
) -> Result<Arc<ServerConfig>, String> {
    let wrong = |path: &Path, error| format!("{} cannot be used: {error}", path.display());
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
    config(chain.map_err(|error| wrong(cert, error))?, key, cipher)
}

/// TLS with a certificate that is made for this run.
pub(super) fn of_its_own(cipher: Option<Cipher>) -> Result<Arc<ServerConfig>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a folder: {error}"))?;
    let certificates = Certificates::in_folder(folder.path());
    certificates.make(&["localhost", "127.0.0.1"])?;
    let Pair { cert, key } = certificates.server();
    from_files(&cert, &key, cipher)
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    cipher: Option<Cipher>,
) -> Result<Arc<ServerConfig>, String> {
    let mut provider = default_provider();
    if let Some(cipher) = cipher {
        provider.cipher_suites = vec![cipher.suite()];
    }
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}
