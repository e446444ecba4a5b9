//! Tokens in namespace `$sys`: each is a value of the list `tokens`, with its last use as a tag.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_node::Node;

use super::identity::{Caller, Target};
use super::notes::Note;
use super::right::Right;
use super::scope::{Scope, check_name};
use super::tokens::{NewToken, Secret, Token};
use super::{Access, KnownToken, Rules};
use crate::system::{Entry, OnceKey, SystemList, Version};

const TOKENS: SystemList = SystemList("tokens");
const USED: &str = "used:";
/// Most tokens of a server.
const TOKENS_MAX: usize = 10_000;
/// Most scopes of a token.
const SCOPES_MAX: usize = 100;
/// Tokens whose last use is written down at a time.
const USES_AT_ONCE: usize = 100;

/// Time of the last use of a token, in milliseconds since the Unix epoch; 0: it was not used.
fn used(token: &Token) -> u64 {
    token.last_used_ms.load(Ordering::Relaxed)
}

/// The error of a change of tokens or of the stored policy.
#[derive(Clone, PartialEq, Debug)]
pub enum AccessError {
    /// A code of [`crate::codes`] of the front's own, and a sentence.
    Own(&'static str, String),
    /// An error of the engine or the node.
    Engine(Error),
}

impl From<Error> for AccessError {
    fn from(error: Error) -> AccessError {
        AccessError::Engine(error)
    }
}

impl Access {
    /// Reads the tokens that the journal has. From the first time on, credentials end by the node's clock.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`.
    pub async fn load_tokens(&self, node: &Node) -> Result<(), Error> {
        self.shared.clock.get_or_init(|| node.clock().clone());
        let (mut tokens, mut unreadable) = (Vec::new(), Vec::new());
        for entry in TOKENS.all(node).await? {
            match read(&entry) {
                Some(token) => tokens.push(Arc::new(token)),
                None => unreadable.push(entry.id),
            }
        }
        self.replace(|rules| {
            let known = std::mem::replace(&mut rules.unreadable, unreadable);
            for id in rules.unreadable.iter().filter(|id| !known.contains(id)) {
                tracing::error!("the token in message {id} cannot be read: it admits nobody until it can");
            }
            for token in &tokens {
                if let Some(known) = rules.tokens.get(&token.id) {
                    // A use that is not written down yet.
                    token.last_used_ms.fetch_max(used(&known.token), Ordering::Relaxed);
                }
            }
            rules.tokens = tokens.into_iter().map(|token| self.known(rules, token)).collect();
        });
        Ok(())
    }

    /// Reads the tokens again if some were made or revoked through another node of the cluster, or could not
    /// be read: what a node lacks behind the state of another comes with the log, or from a peer.
    ///
    /// # Errors
    /// As [`Access::load_tokens`].
    pub async fn refresh_tokens(&self, node: &Node) -> Result<(), Error> {
        let mut seen = self.shared.token_changes.lock().await;
        self.look_again(node, &mut seen).await
    }

    async fn look_again(&self, node: &Node, seen: &mut Version) -> Result<(), Error> {
        let version = TOKENS.version(node).await?;
        let is_whole = self.rules().1.unreadable.is_empty();
        if *seen != version || !is_whole {
            self.load_tokens(node).await?;
            *seen = version;
        }
        Ok(())
    }

    /// The tokens, by name.
    pub fn tokens(&self) -> Vec<Arc<Token>> {
        let (_, rules) = self.rules();
        let mut tokens: Vec<Arc<Token>> =
            rules.tokens.values().map(|known| Arc::clone(&known.token)).collect();
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        tokens
    }

    /// Makes a token, durably. Its text is in the answer and nowhere else.
    ///
    /// # Errors
    /// `invalid_argument`, `token_exists`, `limit_exceeded`; `admin_needed` when it would be the first
    /// identity and nobody could make another; what the engine says.
    pub async fn token_create(
        &self,
        node: &Node,
        new: NewToken,
        by: &str,
    ) -> Result<(Arc<Token>, Secret), AccessError> {
        let mut seen = self.shared.token_changes.lock().await;
        // A leader may be new.
        self.look_again(node, &mut seen).await?;
        let now_ms = node.clock().now_ms();
        self.check(&new, now_ms)?;
        let (token, secret) = Token::make(new, by, now_ms)
            .ok_or_else(|| Error::Internal { reason: "the system gives no random numbers".to_owned() })?;
        TOKENS.add(node, &written(&token), OnceKey::default()).await?;
        let token = Arc::new(token);
        self.replace(|rules| {
            let (id, known) = self.known(rules, Arc::clone(&token));
            rules.tokens.insert(id, known);
        });
        Ok((token, secret))
    }

    /// Takes a token away, by its id or name, for open connections too.
    ///
    /// # Errors
    /// `token_not_found`; `admin_needed` when nobody would be left to make another; what the engine says.
    pub async fn token_revoke(&self, node: &Node, which: &str) -> Result<Arc<Token>, AccessError> {
        let mut seen = self.shared.token_changes.lock().await;
        self.look_again(node, &mut seen).await?;
        let tokens = self.tokens();
        let token =
            tokens.iter().find(|token| &*token.id == which || &*token.name == which).ok_or_else(|| {
                let which: String = which.chars().take(128).collect();
                AccessError::Own(
                    "token_not_found",
                    format!("there is no token {which:?}: `sluice token list` shows them"),
                )
            })?;
        let others = tokens.iter().any(|other| other.id != token.id && self.administrates(other));
        if self.administrates(token) && !others && !self.others_administrate() {
            return Err(admin_needed("this is the last token that can create others"));
        }
        for entry in TOKENS.all(node).await? {
            if read(&entry).is_some_and(|found| found.id == token.id) {
                entry.remove(node).await?;
            }
        }
        self.replace(|rules| {
            rules.tokens.remove(&token.id);
        });
        Ok(Arc::clone(token))
    }

    /// Writes down when tokens were last used, for those that were used since; in a cluster the leader of
    /// shard 0 does so for all nodes.
    ///
    /// # Errors
    /// What the engine says; what is not written down is so the next time.
    pub async fn note_uses(&self, node: &Node) -> Result<(), Error> {
        let tokens: Vec<_> = self.tokens().into_iter().filter(|token| used(token) > 0).collect();
        if tokens.is_empty() {
            return Ok(());
        }
        let writes = node.first_leader_elsewhere().is_none();
        let entries = if writes { TOKENS.all(node).await? } else { TOKENS.all(&node.stale()).await? };
        let (mut written, mut passed) = (0, Vec::new());
        for entry in entries {
            let Some(before) = read(&entry) else { continue };
            let Some(token) = tokens.iter().find(|token| token.id == before.id) else { continue };
            if used(token) <= used(&before) {
                continue;
            }
            if !writes {
                passed.push((token.id.to_string(), used(token)));
            } else if written < USES_AT_ONCE {
                written += 1;
                entry.set_tags(node, &[&format!("{USED}{}", used(token))]).await?;
            }
        }
        if passed.is_empty() { Ok(()) } else { self.note(node, &Note::Uses(passed)).await }
    }

    /// Takes up when tokens were used on another node.
    pub(super) fn were_used(&self, uses: &[(String, u64)]) {
        let (_, rules) = self.rules();
        for (id, at_ms) in uses {
            if let Some(known) = rules.tokens.get(id.as_str()) {
                known.token.last_used_ms.fetch_max(*at_ms, Ordering::Relaxed);
            }
        }
    }

    fn known(&self, rules: &Rules, token: Arc<Token>) -> (Arc<str>, KnownToken) {
        let identity = Arc::new(self.identity_of_token(&rules.policy, &token));
        (Arc::clone(&token.id), KnownToken { token, identity })
    }

    fn check(&self, new: &NewToken, now_ms: u64) -> Result<(), AccessError> {
        let invalid = |field: &str, reason| Error::InvalidArgument { field: field.to_owned(), reason };
        check_name(&new.name).map_err(|reason| invalid("name", reason))?;
        if new.scopes.len() > SCOPES_MAX {
            return Err(invalid("scopes", format!("{} are more than {SCOPES_MAX}", new.scopes.len())).into());
        }
        if new.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            return Err(invalid("expires_at_ms", "it is over already".to_owned()).into());
        }
        let tokens = self.tokens();
        if let Some(other) = tokens.iter().find(|token| *token.name == new.name) {
            let message =
                format!("there is a token {:?} already, with id {}: revoke it first", new.name, other.id);
            return Err(AccessError::Own("token_exists", message));
        }
        if tokens.len() >= TOKENS_MAX {
            let message = format!("there are {TOKENS_MAX} tokens, the maximum: revoke some");
            return Err(AccessError::Own("limit_exceeded", message));
        }
        let lasts = new.expires_at_ms.is_none() && new.scopes.iter().any(scope_administrates);
        if !self.asks() && !lasts {
            return Err(admin_needed(
                "this would be the first identity, after which all callers must authenticate",
            ));
        }
        Ok(())
    }

    /// True if a token's holder may create others, without expiry.
    fn administrates(&self, token: &Token) -> bool {
        let (_, rules) = self.rules();
        let identity = Arc::new(self.identity_of_token(&rules.policy, token));
        token.expires_at_ms.is_none() && Caller::Known(identity).may(Right::Admin, Target::Server).is_ok()
    }

    /// True if a caller may do so by certificate, without a token.
    fn others_administrate(&self) -> bool {
        self.shared.options.certificates
    }
}

fn scope_administrates(scope: &Scope) -> bool {
    scope.roles().allow(Right::Admin) && scope.namespaces().fit_all()
}

pub(super) fn admin_needed(because: &str) -> AccessError {
    let message = format!(
        "{because}: create one first with scope sluice://ns/*?perm=admin (--scope '*=admin') and no expiry"
    );
    AccessError::Own("admin_needed", message)
}

fn written(token: &Token) -> Value {
    json!({
        "id": &*token.id,
        "name": &*token.name,
        "sha256": HEXLOWER.encode(&token.hash),
        "scopes": token.scopes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "created_at_ms": token.created_at_ms,
        "created_by": token.created_by,
        "expires_at_ms": token.expires_at_ms,
    })
}

fn read(entry: &Entry) -> Option<Token> {
    let value = entry.value.as_ref()?;
    let text = |name: &str| value.get(name)?.as_str();
    let hash = HEXLOWER.decode(text("sha256")?.as_bytes()).ok()?;
    let scopes = value.get("scopes")?.as_array()?.iter();
    let scopes: Option<Vec<Scope>> = scopes.map(|scope| Scope::from_uri(scope.as_str()?)?.ok()).collect();
    let expires_at_ms = match value.get("expires_at_ms")? {
        Value::Null => None,
        at_ms => Some(at_ms.as_u64()?),
    };
    let used_ms = entry.tags.iter().find_map(|tag| tag.strip_prefix(USED)?.parse().ok());
    Some(Token {
        id: text("id")?.into(),
        name: text("name")?.into(),
        scopes: scopes?,
        created_at_ms: value.get("created_at_ms")?.as_u64()?,
        created_by: text("created_by")?.to_owned(),
        expires_at_ms,
        last_used_ms: AtomicU64::new(used_ms.unwrap_or(0)),
        hash: hash.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use sluice_engine::MessageId;

    use super::*;
    use crate::testing::node;

    #[tokio::test]
    async fn what_one_node_makes_or_revokes_every_node_knows() {
        let (node, here, there) = (node(), Access::default(), Access::default());
        there.refresh_tokens(&node.stale()).await.unwrap();
        let scopes = vec![Scope::new("*", "admin").unwrap()];
        let new = NewToken { name: "ops".to_owned(), scopes, expires_at_ms: None };
        let (token, _) = here.token_create(&node, new.clone(), "").await.unwrap();
        assert!(there.tokens().is_empty());
        there.refresh_tokens(&node.stale()).await.unwrap();
        assert_eq!(there.tokens().len(), 1);
        here.token_create(&node, NewToken { name: "other".to_owned(), ..new }, "").await.unwrap();
        here.token_revoke(&node, &token.id).await.unwrap();
        there.refresh_tokens(&node.stale()).await.unwrap();
        assert_eq!(there.tokens().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["other"]);
        there.refresh_tokens(&node.stale()).await.unwrap();
        assert_eq!(there.tokens().len(), 1);
    }

    #[tokio::test]
    async fn what_could_not_be_read_is_read_again() {
        let (node, access) = (node(), Access::default());
        let id = TOKENS.add(&node, &json!({}), OnceKey::default()).await.unwrap();
        access.refresh_tokens(&node.stale()).await.unwrap();
        assert_eq!(access.rules().1.unreadable, [id]);
        // As if one more had been unreadable, and had come from a peer: the list itself is as it was.
        access.replace(|rules| rules.unreadable.push(MessageId { sequence: id.sequence + 1, ..id }));
        access.refresh_tokens(&node.stale()).await.unwrap();
        assert_eq!(access.rules().1.unreadable, [id]);
    }
}
