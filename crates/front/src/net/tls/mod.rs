//! TLS for listeners: rustls with *ring*, TLS 1.3 and 1.2, session tickets, and files that can be replaced
//! while it runs.
//!
//! What lives here: certificates, handshakes, and whose certificate a client has shown. What does not: what
//! that client may do, which is [`sluice_calls::access`]'s to say.
//!
//! Map: `files` from PEM files to what rustls takes, with a cause for each that cannot be used; `accept` the
//! handshake, and an answer for those who speak clear text.

mod accept;
mod files;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use tokio::sync::watch;

pub use accept::HandshakeFailure;
pub(crate) use accept::{ShownCertificate, client_certificates};
use files::{Contents, Read};

/// Time before a certificate's end from which it is reported at each check.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 86_400);

/// Protocols that a client may choose of any listener (RFC 7301), the better one first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of a listener's TLS, all of them PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by those between it and the CA.
    pub cert: PathBuf,
    /// The certificate's private key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: PathBuf,
    /// Certificates of the CAs whose client certificates are taken; `None`: clients are not asked for one.
    pub client_ca: Option<PathBuf>,
}

/// The error in making TLS: a sentence for the operator that names the file and the cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsError(pub String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// TLS of a listener, as its files were when they were last read without a mistake.
pub struct Tls {
    files: TlsFiles,
    handshake_timeout: Duration,
    /// Protocols that a client may choose.
    alpn: Vec<Vec<u8>>,
    /// Kept when files are replaced, so that sessions resume.
    tickets: Arc<dyn ProducesTickets>,
    current: RwLock<Arc<Current>>,
    /// Told when that is replaced.
    changes: watch::Sender<()>,
    /// The contents that were read last, valid or not; they are not checked again until they change.
    seen: Mutex<Contents>,
}

/// The configuration of new connections.
pub(crate) struct Current {
    config: Arc<ServerConfig>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    expires_at: SystemTime,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files; a handshake may then take so long. A client may choose HTTP, or the further protocol
    /// with this name in ALPN, which an [`AlpnHandler`](crate::AlpnHandler) serves.
    ///
    /// # Errors
    /// A file that is missing or no PEM, a certificate whose time has not come or is over, a key of another
    /// certificate.
    pub fn load(
        files: TlsFiles,
        further: Option<&[u8]>,
        handshake_timeout: Duration,
    ) -> Result<Tls, TlsError> {
        let tickets = rustls::crypto::ring::Ticketer::new()
            .map_err(|e| TlsError(format!("the system gives no random numbers: {e}")))?;
        let alpn: Vec<Vec<u8>> = ALPN.into_iter().chain(further).map(<[u8]>::to_vec).collect();
        let contents = Contents::read(&files)?;
        let current = Current::new(&files, &contents, &alpn, &tickets)?;
        let current = RwLock::new(Arc::new(current));
        let (changes, seen) = (watch::Sender::new(()), Mutex::new(contents));
        Ok(Tls { files, handshake_timeout, alpn, tickets, current, changes, seen })
    }

    /// Looks whether the files have changed, and takes them up for new connections. Those that are open go
    /// on, unless their client has shown a certificate of a CA that is none any more. Tells whether there was
    /// something new.
    ///
    /// # Errors
    /// As [`Tls::load`], once for each change; what was in use stays in use.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = Contents::read(&self.files)?;
        if *seen == contents {
            return Ok(false);
        }
        let made = Current::new(&self.files, &contents, &self.alpn, &self.tickets);
        *seen = contents;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made?);
        self.changes.send_replace(());
        Ok(true)
    }

    /// Days until the certificate in use ends, if these are few.
    pub fn expires_soon(&self) -> Option<u64> {
        let left = self.current().expires_at.duration_since(SystemTime::now()).unwrap_or_default();
        (left < EXPIRES_SOON).then_some(left.as_secs() / 86_400)
    }

    /// True if clients may show certificates.
    pub fn asks_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Longest time for a handshake.
    pub fn handshake_timeout(&self) -> Duration {
        self.handshake_timeout
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn new(
        files: &TlsFiles,
        contents: &Contents,
        alpn: &[Vec<u8>],
        tickets: &Arc<dyn ProducesTickets>,
    ) -> Result<Current, TlsError> {
        let Read { chain, key, client_cas, expires_at } = contents.parse(files)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|e| TlsError(format!("TLS cannot be set up: {e}")))?;
        let (builder, clients) = match client_cas {
            None => (builder.with_no_client_auth(), None),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                // A client may prove who it is in another way: whether it has, is for the access module to
                // see.
                let verifier = verifier
                    .allow_unauthenticated()
                    .build()
                    .map_err(|e| TlsError(format!("the CA of clients cannot be used: {e}")))?;
                (builder.with_client_cert_verifier(Arc::clone(&verifier)), Some(verifier))
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|e| files::unusable_pair(files, &e))?;
        config.alpn_protocols = alpn.to_vec();
        config.ticketer = Arc::clone(tickets);
        // Tickets carry the sessions.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Current { config: Arc::new(config), clients, expires_at })
    }
}

/// The first certificate of a PEM text, as DER.
///
/// # Errors
/// That there is none.
pub fn first_certificate(pem: &[u8]) -> Result<Vec<u8>, String> {
    let certificate = CertificateDer::from_pem_slice(pem);
    certificate.map(|der| der.to_vec()).map_err(|e| format!("no PEM of a certificate: {e}"))
}
