//! Tokens, the audit log, and who a client is to its server.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a token is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenNew {
    /// The identity that it stands for.
    pub name: String,
    /// What it allows by itself, as `sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin`.
    pub scopes: Vec<String>,
    /// Ends after so many milliseconds; `None`: only when it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Names it; no secret.
    pub id: String,
    /// The identity that it stands for.
    pub name: String,
    /// What it allows by itself.
    pub scopes: Vec<String>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Who has made it.
    pub created_by: String,
    /// When it ends, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// About when it was used last, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at_ms: Option<u64>,
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenMade {
    /// Its text, which nobody can show again.
    pub token: String,
    /// The rest of it.
    #[serde(flatten)]
    pub about: Token,
}

/// Without the secret.
impl std::fmt::Debug for TokenMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMade").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AuditPage {
    /// The oldest first; the server's documentation has their fields.
    pub entries: Vec<Value>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<String>,
}

/// Who a client is to its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhoAmI {
    /// `anybody` where nobody is asked.
    pub name: String,
    /// `certificate` or `token`; `None`: nothing was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Rules and scopes that it has.
    #[serde(default)]
    pub grants: Vec<String>,
}
