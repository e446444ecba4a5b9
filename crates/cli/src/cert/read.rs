//! Reading certificates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Decode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AuthorityKeyIdentifier, BasicConstraints, SubjectAltName, SubjectKeyIdentifier};

/// The object id of the organisation in a subject (RFC 5280, appendix A.1: id-at-organizationName).
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// The contents of a certificate, for people and `sluice cert`.
#[derive(Clone, Debug)]
pub(crate) struct CertificateInfo {
    pub(crate) subject: String,
    /// The subject, if its only part is a common name.
    pub(crate) common_name: Option<String>,
    /// True when `sluice serve --tls auto` made the certificate.
    pub(crate) by_server: bool,
    pub(crate) issuer: String,
    /// The serial number in hexadecimal, as revocation lists write it.
    pub(crate) serial: String,
    /// The names and addresses that the certificate covers.
    pub(crate) names: Vec<String>,
    pub(crate) not_after: SystemTime,
    /// The end of its validity as text.
    pub(crate) expires: String,
    pub(crate) is_ca: bool,
    pub(crate) public_key: Vec<u8>,
    pub(crate) key_id: Option<Vec<u8>>,
    /// The `key_id` of the CA that signed it.
    pub(crate) issuer_key_id: Option<Vec<u8>>,
}

/// Reads the first certificate of a PEM file.
pub(crate) fn read_certificate(pem: &[u8]) -> Result<CertificateInfo, String> {
    use sluice_front::tls::first_certificate;
    read_der(&first_certificate(pem)?)
}

/// Reads all certificates of a PEM file.
///
/// # Errors
/// There is none, or one cannot be read.
pub(crate) fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateInfo>, String> {
    let found = CertificateDer::pem_slice_iter(pem).map(|der| match der {
        Ok(der) => read_der(&der),
        Err(error) => Err(format!("no PEM of certificates: {error}")),
    });
    let found: Vec<CertificateInfo> = found.collect::<Result<_, _>>()?;
    if found.is_empty() { Err("no certificate in it".to_owned()) } else { Ok(found) }
}

/// Reads a certificate in DER.
pub(crate) fn read_der(der: &[u8]) -> Result<CertificateInfo, String> {
    let unreadable = |e: x509_cert::der::Error| format!("the certificate cannot be read: {e}");
    let certificate = Certificate::from_der(der).map_err(unreadable)?;
    let tbs = &certificate.tbs_certificate;
    let names = tbs.get::<SubjectAltName>().map_err(unreadable)?;
    let basic = tbs.get::<BasicConstraints>().map_err(unreadable)?;
    let key_id = tbs.get::<SubjectKeyIdentifier>().map_err(unreadable)?;
    let issuer_key_id = tbs.get::<AuthorityKeyIdentifier>().map_err(unreadable)?;
    let parts: Vec<&AttributeTypeAndValue> = tbs.subject.0.iter().flat_map(|set| set.0.iter()).collect();
    Ok(CertificateInfo {
        subject: tbs.subject.to_string(),
        common_name: if let [only] = parts.as_slice() { text(only) } else { None },
        by_server: parts
            .iter()
            .any(|part| part.oid == ORGANIZATION && text(part).as_deref() == Some(super::SERVER_MARK)),
        issuer: tbs.issuer.to_string(),
        serial: data_encoding::HEXLOWER.encode(tbs.serial_number.as_bytes()),
        names: names.map(|(_, names)| names.0.iter().filter_map(name_text).collect()).unwrap_or_default(),
        not_after: tbs.validity.not_after.to_system_time(),
        expires: tbs.validity.not_after.to_string(),
        is_ca: basic.is_some_and(|(_, basic)| basic.ca),
        public_key: tbs.subject_public_key_info.subject_public_key.raw_bytes().to_vec(),
        key_id: key_id.map(|(_, id)| id.0.as_bytes().to_vec()),
        issuer_key_id: issuer_key_id.and_then(|(_, id)| Some(id.key_identifier?.as_bytes().to_vec())),
    })
}

fn text(part: &AttributeTypeAndValue) -> Option<String> {
    let value = &part.value;
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|s| s.as_str().to_owned()),
        Tag::PrintableString => {
            value.decode_as::<PrintableStringRef<'_>>().ok().map(|s| s.as_str().to_owned())
        }
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok().map(|s| s.as_str().to_owned()),
        _ => None,
    }
}

fn name_text(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(text)
        | GeneralName::Rfc822Name(text)
        | GeneralName::UniformResourceIdentifier(text) => Some(text.as_str().to_owned()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).map(|b| IpAddr::V4(Ipv4Addr::from(b)));
            let v6 = || <[u8; 16]>::try_from(bytes).map(|b| IpAddr::V6(Ipv6Addr::from(b)));
            v4.or_else(|_| v6()).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
