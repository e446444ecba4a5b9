//! The identity in a client certificate. The handshake has checked its chain, its validity and its purpose.

use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::scope::{Scope, client_name};

/// The fields of a client certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientCertificate {
    /// The identity: the name in `sluice://client/NAME`, else the first other URI, DNS name or mail address,
    /// in this order.
    pub name: String,
    /// The scopes that it grants by itself.
    pub scopes: Vec<Scope>,
    /// Serial number in lower-case hexadecimal.
    pub serial: String,
    /// End of its validity, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

impl ClientCertificate {
    /// Reads it.
    ///
    /// # Errors
    /// Why it names nobody: a sentence for the client.
    pub fn read(der: &[u8]) -> Result<ClientCertificate, String> {
        let unreadable = |e: x509_cert::der::Error| format!("the client's certificate cannot be read: {e}");
        let certificate = Certificate::from_der(der).map_err(unreadable)?;
        let tbs = &certificate.tbs_certificate;
        let names =
            tbs.get::<SubjectAltName>().map_err(unreadable)?.map(|(_, names)| names.0).unwrap_or_default();
        let (mut scopes, mut own, mut uri, mut dns, mut mail) = (Vec::new(), None, None, None, None);
        for name in &names {
            match name {
                GeneralName::UniformResourceIdentifier(text) => match Scope::from_uri(text.as_str()) {
                    Some(scope) => {
                        scopes.push(scope.map_err(|e| format!("the client certificate's scope {e}"))?)
                    }
                    None => {
                        own = own.or(client_name(text.as_str()));
                        uri = uri.or(Some(text.as_str()));
                    }
                },
                GeneralName::DnsName(text) => dns = dns.or(Some(text.as_str())),
                GeneralName::Rfc822Name(text) => mail = mail.or(Some(text.as_str())),
                _ => {}
            }
        }
        let name = own.or(uri).or(dns).or(mail);
        let name = name.ok_or(
            "the client's certificate has no name that could be an identity: expected a URI, DNS or \
            mail name among its subject alternative names",
        )?;
        let expires_at = tbs.validity.not_after.to_unix_duration();
        Ok(ClientCertificate {
            name: name.to_owned(),
            scopes,
            serial: data_encoding::HEXLOWER.encode(tbs.serial_number.as_bytes()),
            expires_at_ms: u64::try_from(expires_at.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// A serial number as it is compared: hexadecimal in lower case, without separators and leading zeros; never
/// 0, which no certificate has (RFC 5280 §4.1.2.2).
///
/// # Errors
/// What would be right.
pub(super) fn normal_serial(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect::<String>().to_ascii_lowercase();
    let significant = digits.trim_start_matches('0');
    if digits.is_empty() || digits.len() > 64 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(format!("{text:?} is not a serial number: expected it as `sluice cert show` writes it"));
    }
    if significant.is_empty() {
        return Err(format!("{text:?} is no certificate's serial number: they are greater than 0"));
    }
    Ok(significant.to_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn certificate(names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().unwrap())
    }

    #[test]
    fn the_name_is_the_most_deliberate_one() {
        let dns = || SanType::DnsName("host.example.org".try_into().unwrap());
        let mail = || SanType::Rfc822Name("ann@example.org".try_into().unwrap());
        for (names, name) in [
            (vec![dns(), uri("spiffe://prod/a"), uri("sluice://client/billing")], "billing"),
            (vec![dns(), uri("spiffe://prod/a"), uri("spiffe://prod/b")], "spiffe://prod/a"),
            (vec![mail(), dns(), uri("sluice://ns/shop?perm=r")], "host.example.org"),
            (vec![mail()], "ann@example.org"),
        ] {
            assert_eq!(ClientCertificate::read(&certificate(names)).unwrap().name, name);
        }
        assert!(ClientCertificate::read(&certificate(Vec::new())).is_err());
    }

    #[test]
    fn serial_numbers_are_compared_by_what_they_are() {
        assert_eq!(normal_serial("00:5A:b0").as_deref(), Ok("5ab0"));
        for bad in ["", "0", "00:00", "xyz", "0x12", &"1".repeat(65)] {
            assert!(normal_serial(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn noise_never_panics() {
        let good = certificate(vec![uri("sluice://client/billing"), uri("sluice://ns/shop?perm=rw")]);
        assert_eq!(ClientCertificate::read(&good).unwrap().scopes.len(), 1);
        let mut random = crate::testing::Random(29);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            random.mutate(&mut bytes);
            let _ = ClientCertificate::read(&bytes);
        }
    }
}
