//! Certificates for people who have none: a CA of their own, and what it signs.
//!
//! ECDSA with P-256, which every TLS library has. Keys are written unencrypted and readable by their owner
//! alone.
//!
//! Map: `folder` the files of a CA and their names, `read` what is in a certificate.

mod folder;
mod read;

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, SanType,
};

pub(crate) use folder::{Files, Folder, pair_names};
pub(crate) use read::see;

use crate::config::read_host;

/// A certificate is valid from a little before it was made on, since clocks differ.
const CLOCK_SLACK: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// A certificate and its private key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// The party that has a certificate made. The server replaces its own only, so these carry a mark: the
/// organisation of the subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Maker {
    /// Somebody, with `sluice cert`.
    Person,
    /// `sluice serve --tls auto`.
    Server,
}

/// The organisation in the subject of what [`Maker::Server`] has made.
const SERVER_MARK: &str = "sluice serve --tls auto";

impl Maker {
    fn mark(self, params: &mut CertificateParams) {
        if self == Maker::Server {
            params.distinguished_name.push(DnType::OrganizationName, SERVER_MARK);
        }
    }
}

/// A CA that can sign.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// When it ends: nothing that it signs is valid longer.
    expires_at: SystemTime,
}

type Result<T> = std::result::Result<T, String>;

impl Authority {
    /// Makes a CA; its name only has to differ from that of others.
    pub(crate) fn create(name: &str, days: u32) -> Result<Pair> {
        let mut params = params(name, days, None)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.use_authority_key_identifier_extension = false;
        let key = KeyPair::generate().map_err(told)?;
        let cert = params.self_signed(&key).map_err(told)?;
        Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
    }

    /// A CA that [`Authority::create`] has made.
    pub(crate) fn open(pair: &Pair) -> Result<Authority> {
        let seen = see(pair.cert.as_bytes())?;
        let key = KeyPair::from_pem(&pair.key).map_err(|e| format!("its private key cannot be read: {e}"))?;
        if !seen.is_ca {
            return Err("its certificate is none of a CA".to_owned());
        }
        if seen.public_key != key.public_key_raw() {
            return Err("its private key is not that of its certificate".to_owned());
        }
        let only_name = "only a CA that `sluice cert ca` has made can be used here";
        let name = seen.common_name.as_deref().ok_or(only_name)?;
        let mut params = params(name, 1, None)?;
        params.key_identifier_method = KeyIdMethod::PreSpecified(seen.key_id.ok_or(only_name)?);
        Ok(Authority { issuer: Issuer::new(params, key), expires_at: seen.not_after })
    }

    /// A certificate for a server that is reached by these names and addresses.
    pub(crate) fn server(&self, names: &[String], days: u32, maker: Maker) -> Result<Pair> {
        let first = names.first().ok_or("a server has at least one name")?;
        let mut params = params(first, days, Some(self.expires_at))?;
        maker.mark(&mut params);
        params.subject_alt_names = names.iter().map(|name| host(name)).collect::<Result<_>>()?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client: its name, and scopes as URIs.
    pub(crate) fn client(&self, name: &str, scopes: &[String], days: u32, maker: Maker) -> Result<Pair> {
        let mut params = params(name, days, Some(self.expires_at))?;
        maker.mark(&mut params);
        let identity = sluice_calls::access::client_uri(name)?;
        for uri in std::iter::once(&identity).chain(scopes) {
            let uri =
                uri.as_str().try_into().map_err(|e| format!("{uri:?} cannot stand in a certificate: {e}"))?;
            params.subject_alt_names.push(SanType::URI(uri));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(told)?;
        let cert = params.signed_by(&key, &self.issuer).map_err(told)?;
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

/// A name or address that a client connects to.
fn host(name: &str) -> Result<SanType> {
    if let Some(address) = read_host(name)? {
        return Ok(SanType::IpAddress(address));
    }
    let name = name.try_into().map_err(|e| format!("{name:?} cannot stand in a certificate: {e}"))?;
    Ok(SanType::DnsName(name))
}

fn told(error: rcgen::Error) -> String {
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
        let seen = see(pair.cert.as_bytes()).unwrap();
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
        let seen = see(pair.cert.as_bytes()).unwrap();
        assert_eq!(seen.names, ["sluice://client/billing".to_owned(), scope]);
        assert!(authority().client("a b", &[], 1, Maker::Person).is_err());
    }

    #[test]
    fn the_server_knows_what_it_has_made() {
        let names = ["localhost".to_owned()];
        for (maker, is_own) in [(Maker::Person, false), (Maker::Server, true)] {
            let pair = authority().server(&names, 1, maker).unwrap();
            assert_eq!(see(pair.cert.as_bytes()).unwrap().by_server, is_own);
        }
    }

    #[test]
    fn another_key_is_not_taken_for_a_ca() {
        let (one, other) = (Authority::create("a", 1).unwrap(), Authority::create("b", 1).unwrap());
        let error = Authority::open(&Pair { cert: one.cert, key: other.key }).err().unwrap();
        assert!(error.contains("not that of its certificate"), "{error}");
    }
}
