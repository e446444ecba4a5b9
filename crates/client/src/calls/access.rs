//! Calls about tokens, the stored policy, the audit log and the identity of a client.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::access::{AuditPage, StoredPolicy, Token, TokenMade, TokenNew, WhoAmI};
use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::{not_understood, parse};

impl Client {
    /// The tokens by name.
    pub async fn tokens(&self) -> Result<Vec<Token>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            tokens: Vec<Token>,
        }
        Ok(self.get::<List>("/v1/tokens".to_owned()).await?.tokens)
    }

    /// Makes a token. Keep its text: nobody can show it again.
    pub async fn token_create(&self, new: &TokenNew) -> Result<TokenMade, ClientError> {
        let body = serde_json::to_string(new).map_err(|e| not_understood(e.to_string()))?;
        let call = self.call(Method::POST, "/v1/tokens".to_owned(), body);
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// Revokes a token, by its id or name.
    pub async fn token_revoke(&self, token: &str) -> Result<Token, ClientError> {
        let call = self.call(Method::DELETE, format!("/v1/tokens/{}", encoded(token)), "");
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// The stored policy.
    pub async fn policy(&self) -> Result<StoredPolicy, ClientError> {
        self.get("/v1/policy".to_owned()).await
    }

    /// Stores a policy, which counts on every node instead of their policy files. `replaces`: version of the
    /// policy that it replaces, empty for none; `None`: whatever is stored.
    pub async fn policy_set(&self, text: &str, replaces: Option<&str>) -> Result<StoredPolicy, ClientError> {
        let body = match replaces {
            Some(version) => json!({"policy": text, "version": version}),
            None => json!({"policy": text}),
        };
        let call = self.call(Method::PUT, "/v1/policy".to_owned(), body.to_string());
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Removes the stored policy, of a version or whatever is stored, and returns it: the policy file of each
    /// node counts again.
    pub async fn policy_remove(&self, version: Option<&str>) -> Result<StoredPolicy, ClientError> {
        let query = version.map_or_else(String::new, |version| format!("?version={}", encoded(version)));
        let call = self.call(Method::DELETE, format!("/v1/policy{query}"), "");
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// A page of the audit log, at most 1,000 entries; `cursor` is `next` of the page before.
    pub async fn audit(&self, cursor: Option<&str>, limit: u32) -> Result<AuditPage, ClientError> {
        let mut path = format!("/v1/admin/audit?limit={limit}");
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={}", encoded(cursor)));
        }
        self.get(path).await
    }

    /// Identity of this client, as the server sees it.
    pub async fn whoami(&self) -> Result<WhoAmI, ClientError> {
        self.get("/v1/whoami".to_owned()).await
    }
}
