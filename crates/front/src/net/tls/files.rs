//! The reader of PEM files for rustls.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::{TlsError, TlsFiles};

/// Largest file that is read: a chain is some kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The bytes of the files.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// The contents of the files.
pub(super) struct Read {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) client_cas: Option<RootCertStore>,
    /// End of the server's certificate.
    pub(super) expires_at: SystemTime,
}

impl Contents {
    pub(super) fn read(files: &TlsFiles) -> Result<Contents, TlsError> {
        Ok(Contents {
            cert: read("certificate", &files.cert)?,
            key: read("private key", &files.key)?,
            client_ca: files.client_ca.as_deref().map(|path| read("CA of clients", path)).transpose()?,
        })
    }

    pub(super) fn parse(&self, files: &TlsFiles) -> Result<Read, TlsError> {
        let chain = certificates(&files.cert, &self.cert)?;
        let mut expires_at = None;
        for certificate in &chain {
            let until = valid_until(&files.cert, certificate)?;
            expires_at.get_or_insert(until);
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|e| {
            let expected = "expected a PEM block `PRIVATE KEY` that is not encrypted";
            TlsError(format!("{} holds no private key: {e}; {expected}", files.key.display()))
        })?;
        let client_cas = match (&files.client_ca, &self.client_ca) {
            (Some(path), Some(pem)) => Some(roots(path, pem)?),
            _ => None,
        };
        Ok(Read { chain, key, client_cas, expires_at: expires_at.unwrap_or(UNIX_EPOCH) })
    }
}

/// A certificate and a key that rustls does not take together.
pub(super) fn unusable_pair(files: &TlsFiles, error: &rustls::Error) -> TlsError {
    let (cert, key) = (files.cert.display(), files.key.display());
    match error {
        rustls::Error::InconsistentKeys(_) => TlsError(format!(
            "the private key in {key} is not that of the first certificate in {cert}: give the key that it was made \
             with, and the server's own certificate first"
        )),
        other => TlsError(format!("the certificate in {cert} cannot be used with the key in {key}: {other}")),
    }
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let told = |e: std::io::Error| TlsError(format!("cannot read the {what} {}: {e}", path.display()));
    let bytes = std::fs::metadata(path).map_err(told)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(TlsError(format!(
            "the {what} {} has {bytes} bytes, more than {FILE_BYTES_MAX}: is it a PEM file?",
            path.display()
        )));
    }
    std::fs::read(path).map_err(told)
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|e| TlsError(format!("{} is no PEM file: {e}", path.display())))?;
    if found.is_empty() {
        let expected = "expected a PEM block `CERTIFICATE`";
        return Err(TlsError(format!("{} holds no certificate: {expected}", path.display())));
    }
    Ok(found)
}

/// The end of a certificate that is valid now.
fn valid_until(path: &Path, der: &[u8]) -> Result<SystemTime, TlsError> {
    let certificate = Certificate::from_der(der)
        .map_err(|e| TlsError(format!("{} holds a certificate that cannot be read: {e}", path.display())))?;
    let validity = certificate.tbs_certificate.validity;
    let subject = certificate.tbs_certificate.subject;
    let now = SystemTime::now();
    if now > validity.not_after.to_system_time() {
        return Err(TlsError(format!(
            "the certificate {subject} in {} has expired at {}: renew it",
            path.display(),
            validity.not_after
        )));
    }
    if now < validity.not_before.to_system_time() {
        return Err(TlsError(format!(
            "the certificate {subject} in {} is not valid before {}: is this machine's clock right?",
            path.display(),
            validity.not_before
        )));
    }
    Ok(validity.not_after.to_system_time())
}

fn roots(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        valid_until(path, &certificate)?;
        roots.add(certificate).map_err(|e| {
            TlsError(format!("{} holds a certificate that is none of a CA: {e}", path.display()))
        })?;
    }
    Ok(roots)
}
