//! Identity of a node, as its certificate names it.

use std::fmt;
use std::str::FromStr;

use sluice_replica::NodeId;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

const SCHEME: &str = "sluice://node/";

/// Number of a cluster, chosen at random when it is made; written as 16 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClusterId(pub u64);

/// A node of a cluster. Its certificate has it as the URI `sluice://node/CLUSTER/NODE` among its subject
/// alternative names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node in it.
    pub node: NodeId,
}

/// Reason for which a certificate names no node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoIdentity {
    /// The certificate cannot be read.
    Unreadable(String),
    /// The certificate has no URI that begins with `sluice://node/`.
    Missing,
    /// The URI has another form.
    Malformed(String),
    /// The certificate names more than one node.
    Several,
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.cluster, self.node.get())
    }
}

impl fmt::Display for NoIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoIdentity::Unreadable(error) => write!(f, "the certificate cannot be read: {error}"),
            NoIdentity::Missing => {
                write!(f, "the certificate names no node: expected the URI {SCHEME}CLUSTER/NODE in it")
            }
            NoIdentity::Malformed(uri) => write!(f, "{uri:?} names no node: expected {SCHEME}CLUSTER/NODE"),
            NoIdentity::Several => f.write_str("the certificate names more than one node"),
        }
    }
}

impl std::error::Error for NoIdentity {}

impl FromStr for ClusterId {
    type Err = ();

    fn from_str(text: &str) -> Result<ClusterId, ()> {
        let number = u64::from_str_radix(text, 16).map_err(|_| ())?;
        let id = ClusterId(number);
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

impl FromStr for Identity {
    type Err = NoIdentity;

    fn from_str(uri: &str) -> Result<Identity, NoIdentity> {
        let read = || {
            let (cluster, node) = uri.strip_prefix(SCHEME)?.split_once('/')?;
            let identity =
                Identity { cluster: cluster.parse().ok()?, node: NodeId::new(node.parse().ok()?)? };
            (identity.to_string() == uri).then_some(identity)
        };
        read().ok_or_else(|| NoIdentity::Malformed(uri.to_owned()))
    }
}

impl Identity {
    /// The node that a certificate names.
    ///
    /// # Errors
    ///
    /// DER that is no certificate, or a certificate that does not name exactly one node.
    pub fn of_certificate(der: &[u8]) -> Result<Identity, NoIdentity> {
        let unreadable = |error: x509_cert::der::Error| NoIdentity::Unreadable(error.to_string());
        let certificate = Certificate::from_der(der).map_err(unreadable)?;
        let names = certificate.tbs_certificate.get::<SubjectAltName>().map_err(unreadable)?;
        let names = names.map(|(_, names)| names.0).unwrap_or_default();
        let mut uris = names.iter().filter_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) => {
                Some(uri.as_str()).filter(|uri| uri.starts_with(SCHEME))
            }
            _ => None,
        });
        let uri = uris.next().ok_or(NoIdentity::Missing)?;
        if uris.next().is_some() {
            return Err(NoIdentity::Several);
        }
        uri.parse()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn certificate(uris: &[&str]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_node_reads_as_it_is_written() {
        let identity = Identity { cluster: ClusterId(0xab), node: NodeId::new(3).unwrap() };
        let uri = identity.to_string();
        assert_eq!(uri, "sluice://node/00000000000000ab/3");
        assert_eq!(uri.parse(), Ok(identity));
        let named = certificate(&["sluice://client/billing", &uri]);
        assert_eq!(Identity::of_certificate(&named), Ok(identity));
    }

    #[test]
    fn what_is_almost_a_node_is_none() {
        for rest in ["", "1", "00000000000000ab", "00000000000000ab/", "00000000000000ab/0", "ab/1"] {
            assert!(format!("{SCHEME}{rest}").parse::<Identity>().is_err(), "{rest}");
        }
        for rest in ["00000000000000AB/1", "00000000000000ab/+1", "00000000000000ab/01", "+0000000000000ab/1"]
        {
            assert!(format!("{SCHEME}{rest}").parse::<Identity>().is_err(), "{rest}");
        }
        assert_eq!(
            Identity::of_certificate(&certificate(&["sluice://ns/a?perm=r"])),
            Err(NoIdentity::Missing)
        );
        let two = certificate(&["sluice://node/00000000000000ab/1", "sluice://node/00000000000000ab/2"]);
        assert_eq!(Identity::of_certificate(&two), Err(NoIdentity::Several));
        assert!(matches!(Identity::of_certificate(b"rubbish"), Err(NoIdentity::Unreadable(_))));
    }
}
