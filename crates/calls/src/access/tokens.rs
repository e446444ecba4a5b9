//! Tokens: `sluice_<id>_<secret>`, of which only a hash is kept.
//!
//! The secret has 256 random bits, so a plain SHA-256 cannot be searched backwards; a slow hash would only
//! slow the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use super::scope::Scope;

const PREFIX: &str = "sluice_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
/// Length of a token's text.
const TEXT_BYTES: usize = PREFIX.len() + 2 * ID_BYTES + 1 + 43;

/// A token, without its secret.
pub struct Token {
    /// Names it in lists and for revocation; no secret.
    pub id: Arc<str>,
    /// The identity that it stands for.
    pub name: Arc<str>,
    /// The scopes that it grants by itself.
    pub scopes: Vec<Scope>,
    /// Time of its creation, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Name of the caller that created it.
    pub created_by: String,
    /// Expiry, in milliseconds since the Unix epoch; `None`: valid until it is revoked.
    pub expires_at_ms: Option<u64>,
    /// About when it was used last, in milliseconds since the Unix epoch; 0: never.
    pub(super) last_used_ms: AtomicU64,
    pub(super) hash: [u8; 32],
}

/// The text of a token that was just made: shown once, kept nowhere.
pub struct Secret(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The request for a token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The identity that it stands for; only one token has it.
    pub name: String,
    /// The scopes that it grants by itself; policy rules may grant more.
    pub scopes: Vec<Scope>,
    /// Expiry, in milliseconds since the Unix epoch; `None`: valid until it is revoked.
    pub expires_at_ms: Option<u64>,
}

impl Token {
    /// Makes one. `None`: the system gives no random numbers.
    pub(super) fn make(new: NewToken, created_by: &str, now_ms: u64) -> Option<(Token, Secret)> {
        let mut random = [0; ID_BYTES + SECRET_BYTES];
        SystemRandom::new().fill(&mut random).ok()?;
        let (id, secret) = random.split_at(ID_BYTES);
        let id = HEXLOWER.encode(id);
        let text = format!("{PREFIX}{id}_{}", BASE64URL_NOPAD.encode(secret));
        let token = Token {
            id: id.into(),
            name: new.name.into(),
            scopes: new.scopes,
            created_at_ms: now_ms,
            created_by: created_by.to_owned(),
            expires_at_ms: new.expires_at_ms,
            last_used_ms: AtomicU64::new(0),
            hash: hash(text.as_bytes()),
        };
        Some((token, Secret(text)))
    }

    /// Checks a token's text in constant time.
    pub(super) fn is(&self, text: &[u8]) -> bool {
        hash(text).ct_eq(&self.hash).into()
    }

    /// About when it was used last, in milliseconds since the Unix epoch; 0: never.
    pub fn last_used_ms(&self) -> u64 {
        self.last_used_ms.load(Ordering::Relaxed)
    }
}

/// The id in a token's text; `None`: this is no token.
pub(super) fn id_of(text: &[u8]) -> Option<&str> {
    let rest =
        std::str::from_utf8(text).ok().filter(|text| text.len() == TEXT_BYTES)?.strip_prefix(PREFIX)?;
    rest.split_once('_').map(|(id, _)| id).filter(|id| id.len() == 2 * ID_BYTES)
}

fn hash(text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (Token, String) {
        let new = NewToken { name: "ci".to_owned(), scopes: Vec::new(), expires_at_ms: None };
        let (token, Secret(text)) = Token::make(new, "ops", 7).unwrap();
        (token, text)
    }

    #[test]
    fn a_token_is_known_by_its_text_and_by_no_other() {
        let (token, text) = made();
        assert_eq!(id_of(text.as_bytes()), Some(&*token.id));
        assert!(token.is(text.as_bytes()));
        for bit in 0..text.len() * 8 {
            let mut other = text.clone().into_bytes();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!token.is(&other), "bit {bit}");
        }
        assert!(!token.is(made().1.as_bytes()));
    }

    #[test]
    fn what_is_no_token_has_no_id() {
        for text in ["", "sluice_", "sluice_0123456789abcdef_", &"x".repeat(TEXT_BYTES), &made().1[1..]] {
            assert_eq!(id_of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn nothing_that_is_printed_has_the_secret() {
        let new = NewToken { name: "ci".to_owned(), scopes: Vec::new(), expires_at_ms: None };
        let (token, secret) = Token::make(new, "ops", 7).unwrap();
        let printed = format!("{token:?} {secret:?}");
        assert!(!printed.contains(&secret.0[TEXT_BYTES - 43..]), "{printed}");
    }
}
