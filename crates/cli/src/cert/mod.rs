//! Certificates for those who have no CA: a CA of their own, and the certificates that it signs.
//!
//! The keys are ECDSA with P-256, which every TLS library supports. They are written unencrypted, readable by
//! their owner only; but the CA's key of a cluster is sealed with a root key of the node's data.
//!
//! Map: `folder` the files of a CA, `sealed` its key under a root key, `pem` text of bytes, `read` the
//! contents of a certificate.

mod folder;
mod pem;
mod read;
mod sealed;

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, SanType,
};

pub(crate) use folder::{Files, Folder, pair_names};
pub(crate) use pem::pem;
pub(crate) use read::{CertificateInfo, read_certificate, read_certificates, read_der};

use crate::config::read_host;

/// Time before now at which a certificate becomes valid, because clocks differ.
const CLOCK_SLACK: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// A certificate and its private key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// The maker of a certificate. The server replaces only its own certificates, which carry a mark: the
/// organisation of the subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Maker {
    /// A person, with `sluice cert`.
    Person,
    /// `sluice serve --tls auto`.
    Server,
}

/// End of the name of the folder that `--tls auto` makes, behind that of the data directory.
pub(crate) const AUTO_SUFFIX: &str = "-tls";

/// The organisation in the subject of certificates made by [`Maker::Server`].
const SERVER_MARK: &str = "sluice serve --tls auto";

impl Maker {
    fn mark(self, params: &mut CertificateParams) {
        if self == Maker::Server {
            params.distinguished_name.push(DnType::OrganizationName, SERVER_MARK);
        }
    }
}

/// A CA that can sign certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// End of its validity; no certificate that it signs is valid longer.
    expires_at: SystemTime,
}

type Result<T> = std::result::Result<T, String>;

impl Authority {
    /// Creates a CA. Its name must differ from the names of others.
    pub(crate) fn create(name: &str, days: u32) -> Result<Pair> {
        let mut params = params(name, days, None)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.use_authority_key_identifier_extension = false;
        let key = KeyPair::generate().map_err(rcgen_error)?;
        let cert = params.self_signed(&key).map_err(rcgen_error)?;
        Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
    }

    /// Opens a CA that [`Authority::create`] has made.
    pub(crate) fn open(pair: &Pair) -> Result<Authority> {
        let seen = read_certificate(pair.cert.as_bytes())?;
        let key = KeyPair::from_pem(&pair.key).map_err(|e| format!("its private key cannot be read: {e}"))?;
        if !seen.is_ca {
            return Err("its certificate is not that of a CA".to_owned());
        }
        if seen.public_key != key.public_key_raw() {
            return Err("its private key is not that of its certificate".to_owned());
        }
        let only_name = "only a CA made by `sluice cert ca` can be used here";
        let name = seen.common_name.as_deref().ok_or(only_name)?;
        let mut params = params(name, 1, None)?;
        params.key_identifier_method = KeyIdMethod::PreSpecified(seen.key_id.ok_or(only_name)?);
        Ok(Authority { issuer: Issuer::new(params, key), expires_at: seen.not_after })
    }

    /// Makes a certificate for a server with these names and addresses.
    pub(crate) fn server(&self, names: &[String], days: u32, maker: Maker) -> Result<Pair> {
        let first = names.first().ok_or("a server has at least one name")?;
        let mut params = params(first, days, Some(self.expires_at))?;
        maker.mark(&mut params);
        params.subject_alt_names = names.iter().map(|name| host(name)).collect::<Result<_>>()?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// Makes a certificate for a client with its name and its scopes, as URIs.
    pub(crate) fn client(&self, name: &str, scopes: &[String], days: u32, maker: Maker) -> Result<Pair> {
        let mut params = params(name, days, Some(self.expires_at))?;
        maker.mark(&mut params);
        let identity = sluice_calls::access::client_uri(name)?;
        for text in std::iter::once(&identity).chain(scopes) {
            params.subject_alt_names.push(uri(text)?);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    /// Makes a certificate for a node of a cluster, which is server and client: with its identity, a URI, and
    /// the names and addresses at which clients reach it.
    pub(crate) fn node(&self, identity: &str, names: &[String], days: u32, maker: Maker) -> Result<Pair> {
        let first = names.first().ok_or("a node has at least one name")?;
        let mut params = params(first, days, Some(self.expires_at))?;
        maker.mark(&mut params);
        params.subject_alt_names = names.iter().map(|name| host(name)).collect::<Result<_>>()?;
        params.subject_alt_names.push(uri(identity)?);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(rcgen_error)?;
        let cert = params.signed_by(&key, &self.issuer).map_err(rcgen_error)?;
        Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
    }
}

fn params(name: &str, days: u32, no_longer_than: Option<SystemTime>) -> Result<CertificateParams> {
    let now = SystemTime::now();
    let until = now + DAY * days;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = (now - CLOCK_SLACK).into();
    params.not_after = no_longer_than.map_or(until, |end| until.min(end)).into();
    Ok(params)
}

/// Converts a name or address for a certificate.
fn host(name: &str) -> Result<SanType> {
    if let Some(address) = read_host(name)? {
        return Ok(SanType::IpAddress(address));
    }
    let name = name.try_into().map_err(|e| format!("{name:?} cannot be part of a certificate: {e}"))?;
    Ok(SanType::DnsName(name))
}

/// Converts a URI for a certificate.
fn uri(text: &str) -> Result<SanType> {
    let uri = text.try_into().map_err(|e| format!("{text:?} cannot be part of a certificate: {e}"))?;
    Ok(SanType::URI(uri))
}

fn rcgen_error(error: rcgen::Error) -> String {
    format!("no certificate could be made: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority() -> Authority {
        Authority::open(&Authority::create("test CA", 10).unwrap()).unwrap()
    }

    #[test]
    fn a_server_is_reached_by_names_and_addresses() {
        let names = ["localhost", "*.example.org", "127.0.0.1", "::1"].map(str::to_owned);
        let pair = authority().server(&names, 365, Maker::Person).unwrap();
        let seen = read_certificate(pair.cert.as_bytes()).unwrap();
        assert_eq!(seen.names, names);
        assert!(!seen.is_ca);
        let days = seen.not_after.duration_since(SystemTime::now()).unwrap().as_secs() / 86_400;
        assert!(days < 10, "no longer than its CA: {days}");
        for bad in ["", "a b", "ü", "a..b", "-.*"] {
            assert!(authority().server(&[bad.to_owned()], 1, Maker::Person).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_client_carries_its_name_and_scopes() {
        let scope = "sluice://ns/shop?perm=rw".to_owned();
        let pair = authority().client("billing", std::slice::from_ref(&scope), 1, Maker::Person).unwrap();
        let seen = read_certificate(pair.cert.as_bytes()).unwrap();
        assert_eq!(seen.names, ["sluice://client/billing".to_owned(), scope]);
        assert!(authority().client("a b", &[], 1, Maker::Person).is_err());
    }

    #[test]
    fn the_server_knows_what_it_has_made() {
        let names = ["localhost".to_owned()];
        for (maker, is_own) in [(Maker::Person, false), (Maker::Server, true)] {
            let pair = authority().server(&names, 1, maker).unwrap();
            assert_eq!(read_certificate(pair.cert.as_bytes()).unwrap().by_server, is_own);
        }
    }

    #[test]
    fn another_key_is_not_taken_for_a_ca() {
        let (one, other) = (Authority::create("a", 1).unwrap(), Authority::create("b", 1).unwrap());
        let error = Authority::open(&Pair { cert: one.cert, key: other.key }).err().unwrap();
        assert!(error.contains("not that of its certificate"), "{error}");
    }
}
