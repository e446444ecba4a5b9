//! Join tokens: `sluice_join_<fingerprint>_<id>_<secret>`, of which only a hash is kept.
//!
//! The fingerprint is the SHA-256 of the certificate of the cluster's CA, in DER: who joins trusts no other
//! CA, and so gives the secret to nobody but the cluster.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

const PREFIX: &str = "sluice_join_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
const HASH_BYTES: usize = 32;

/// A join token without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinToken {
    /// Names it; no secret.
    pub id: String,
    /// End of its validity, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
    /// Number of the node in whose place it lets a machine come.
    pub replaces: Option<u64>,
    /// SHA-256 of its text.
    pub(super) hash: [u8; HASH_BYTES],
}

/// The text of a join token that was just made: shown once, kept nowhere.
pub struct JoinSecret(pub String);

impl fmt::Debug for JoinSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinSecret")
    }
}

/// Parts of a token's text that are no secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    /// SHA-256 of the CA's certificate.
    pub fingerprint: [u8; HASH_BYTES],
    /// Id of the token.
    pub id: String,
}

impl JoinToken {
    /// A token of the cluster whose CA has this fingerprint. `None`: the system gives no random numbers.
    pub(super) fn make(
        ca: &[u8; HASH_BYTES],
        expires_at_ms: u64,
        replaces: Option<u64>,
    ) -> Option<(JoinToken, JoinSecret)> {
        let mut random = [0; ID_BYTES + SECRET_BYTES];
        SystemRandom::new().fill(&mut random).ok()?;
        let (id, secret) = random.split_at(ID_BYTES);
        let id = HEXLOWER.encode(id);
        let (ca, secret) = (HEXLOWER.encode(ca), BASE64URL_NOPAD.encode(secret));
        let text = format!("{PREFIX}{ca}_{id}_{secret}");
        Some((
            JoinToken { id, expires_at_ms, replaces, hash: fingerprint(text.as_bytes()) },
            JoinSecret(text),
        ))
    }

    /// Checks a token's text in constant time.
    pub(super) fn is(&self, text: &str) -> bool {
        fingerprint(text.as_bytes()).ct_eq(&self.hash).into()
    }
}

/// Reads the parts of a token's text.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parts(text: &str) -> Result<Parts, String> {
    let expected = || "that is no join token: expected one as `sluice cluster add` prints it".to_owned();
    let rest = text.strip_prefix(PREFIX).ok_or_else(expected)?;
    let mut each = rest.splitn(3, '_');
    let mut part = || each.next().ok_or_else(expected);
    let (fingerprint, id, secret) = (part()?, part()?, part()?);
    let fingerprint = HEXLOWER.decode(fingerprint.as_bytes()).map_err(|_| expected())?;
    let is_secret = BASE64URL_NOPAD.decode(secret.as_bytes()).is_ok_and(|it| it.len() == SECRET_BYTES);
    let is_id = HEXLOWER.decode(id.as_bytes()).is_ok_and(|id| id.len() == ID_BYTES);
    if !is_secret || !is_id {
        return Err(expected());
    }
    Ok(Parts { fingerprint: fingerprint.try_into().map_err(|_| expected())?, id: id.to_owned() })
}

/// SHA-256 of a certificate, in DER, or of the text of a token.
pub fn fingerprint(of: &[u8]) -> [u8; HASH_BYTES] {
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(digest(&SHA256, of).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_its_cluster_and_its_id_and_is_known_by_its_whole_text() {
        let (token, JoinSecret(text)) = JoinToken::make(&[7; 32], 1, None).unwrap();
        assert_eq!(parts(&text).unwrap(), Parts { fingerprint: [7; 32], id: token.id.clone() });
        assert!(token.is(&text));
        let (_, JoinSecret(other)) = JoinToken::make(&[7; 32], 1, None).unwrap();
        assert!(!token.is(&other) && !token.is(&text[..text.len() - 1]));
    }

    #[test]
    fn text_that_is_no_token_is_told_so() {
        let (_, JoinSecret(text)) = JoinToken::make(&[7; 32], 1, None).unwrap();
        let cut = &text[..text.len() - 1];
        for bad in
            ["", "sluice_join_", "sluice_0123456789abcdef_x", cut, "sluice_join_00_00_00", "sluice_join_é"]
        {
            assert!(parts(bad).unwrap_err().contains("sluice cluster add"), "{bad}");
        }
    }
}
