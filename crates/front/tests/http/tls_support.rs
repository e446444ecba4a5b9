//! Certificates, right and wrong, and a client that shows them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose as Usage, IsCa, Issuer, KeyPair, SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sluice_front::tls::{Tls, TlsFiles};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::{Answer, build, collect};

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// A CA, with a folder for files.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
    pub(crate) dir: TempDir,
}

/// When a certificate is valid.
#[derive(Clone, Copy)]
pub(crate) enum Valid {
    Now,
    Past,
    Future,
}

impl Ca {
    pub(crate) fn new() -> Ca {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Ca { issuer: Issuer::new(params, key), pem, dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn server(&self, valid: Valid) -> Pair {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![Usage::ServerAuth];
        self.sign(params, valid)
    }

    pub(crate) fn client(&self, uris: &[&str], valid: Valid) -> Pair {
        let mut params = CertificateParams::default();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        params.extended_key_usages = vec![Usage::ClientAuth];
        self.sign(params, valid)
    }

    fn sign(&self, mut params: CertificateParams, valid: Valid) -> Pair {
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now();
        let (from, to) = match valid {
            Valid::Now => (now - day, now + day),
            Valid::Past => (now - day * 3, now - day),
            Valid::Future => (now + day, now + day * 3),
        };
        (params.not_before, params.not_after) = (from.into(), to.into());
        let key = KeyPair::generate().unwrap();
        Pair { cert: params.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }

    /// Writes the files of a server.
    pub(crate) fn files(&self, server: &Pair) -> TlsFiles {
        TlsFiles {
            cert: self.write("server.pem", &server.cert),
            key: self.write("server.key", &server.key),
            client_ca: Some(self.write("ca.pem", &self.pem)),
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn tls(&self) -> Arc<Tls> {
        Arc::new(Tls::load(self.files(&self.server(Valid::Now)), None, Duration::from_secs(5)).unwrap())
    }

    pub(crate) fn policy(&self, text: &str) -> PathBuf {
        self.write("policy.toml", text)
    }
}

/// The serial number of a certificate, as revocation lists have it.
pub(crate) fn serial(pair: &Pair) -> String {
    let der = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
    sluice_calls::access::ClientCertificate::read(&der).unwrap().serial
}

/// A client that trusts a CA and shows a certificate.
#[derive(Clone)]
pub(crate) struct TlsClient(TlsConnector);

impl TlsClient {
    pub(crate) fn new(ca: &Ca, shown: Option<&Pair>, alpn: &str) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        TlsClient(TlsConnector::from(Arc::new(config)))
    }

    pub(crate) async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        self.0.connect(ServerName::try_from("localhost").unwrap(), stream).await
    }

    /// A request on a connection of its own; an error when there is no TLS.
    pub(crate) async fn call(&self, address: SocketAddr, method: &str, path: &str) -> Result<Answer, String> {
        self.call_with(address, method, path, &[], "").await
    }

    pub(crate) async fn call_with(
        &self,
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, String> {
        let stream = self.connect(address).await.map_err(|e| e.to_string())?;
        send(stream, method, path, headers, body).await
    }
}

/// A request over TLS.
pub(crate) async fn send(
    stream: TlsStream<TcpStream>,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Answer, String> {
    let told = |e: hyper::Error| format!("{e:?}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    tokio::spawn(connection);
    let mut request = build(path.to_owned(), method, headers, body.as_bytes());
    request.headers_mut().insert("host", "localhost".parse().unwrap());
    if !body.is_empty() {
        request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    }
    Ok(collect(sender.send_request(request).await.map_err(told)?).await)
}

/// Reads a folder's file back.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
