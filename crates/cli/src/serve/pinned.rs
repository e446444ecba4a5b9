//! Trust in a server by the fingerprint of its CA, which nothing else makes known.

use sluice_calls::roster::join_token::fingerprint;
use sluice_peers::tls::Trust;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{Error, RootCertStore};

/// The CA with this SHA-256, which a server has to show.
#[derive(Debug)]
pub(super) struct PinnedCa(pub(super) [u8; 32]);

impl Trust for PinnedCa {
    fn roots(&self, shown: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        let other = "the server is no node of the cluster for which the join token was made";
        let ca = shown.iter().find(|certificate| fingerprint(certificate) == self.0);
        let ca = ca.ok_or_else(|| Error::General(other.to_owned()))?;
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone().into_owned())?;
        Ok(roots)
    }
}
