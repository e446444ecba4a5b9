//! Tokens, the stored policy, the audit log, and the identity of a client.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings of a new token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenNew {
    /// Name of the identity that the token authenticates.
    pub name: String,
    /// Scopes that it grants, as `sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin`.
    pub scopes: Vec<String>,
    /// Lifetime in milliseconds; `None`: until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Id of the token, which is no secret.
    pub id: String,
    /// Name of the identity that the token authenticates.
    pub name: String,
    /// Scopes that it grants.
    pub scopes: Vec<String>,
    /// Time of its creation, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Name of the identity that made it.
    pub created_by: String,
    /// End of its lifetime, in milliseconds since the Unix epoch; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// Approximate time of its last use, in milliseconds since the Unix epoch; `None`: it was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at_ms: Option<u64>,
}

/// A new token with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenMade {
    /// Secret text of the token. The server stores only a hash of it and cannot show it again.
    pub token: String,
    /// The token without its secret.
    #[serde(flatten)]
    pub about: Token,
}

/// Without the secret.
impl std::fmt::Debug for TokenMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMade").field("about", &self.about).finish_non_exhaustive()
    }
}

/// The policy that a server or cluster stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// Text, as in a policy file; empty in answers to changes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Version: no other policy has the same.
    pub version: String,
    /// Time at which it was set, in milliseconds since the Unix epoch.
    pub set_at_ms: u64,
    /// Name of the identity that has set it.
    pub set_by: String,
}

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AuditPage {
    /// Entries, oldest first; `docs/api.md` describes their fields.
    pub entries: Vec<Value>,
    /// Cursor of the next page; `None`: this is the last page.
    pub next: Option<String>,
}

/// The identity of a client, as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhoAmI {
    /// Name of the identity; `anybody` on a server without authentication.
    pub name: String,
    /// Credential that proved it, `certificate` or `token`; `None`: the client showed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Rules and scopes that apply to it.
    #[serde(default)]
    pub grants: Vec<String>,
    /// Rights by each of them, in the same order.
    #[serde(default)]
    pub rights: Vec<Rights>,
}

/// Rights that a rule or a scope gives, in names that fit its patterns: `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Names of the rights, such as `send` and `observe`.
    pub may: Vec<String>,
    /// Patterns of the namespaces.
    pub namespaces: Vec<String>,
    /// Patterns of their queues.
    pub queues: Vec<String>,
    /// Patterns of the keys of their locks and documents.
    pub keys: Vec<String>,
}
