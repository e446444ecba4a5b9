//! Tokens, the audit log, and who the caller is.

use std::borrow::Cow;

use schemars::{JsonSchema, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::access::{self, Grant, NewToken, Proof, Right, Secret};
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::schema::inline_schemas;
use crate::value::{PageSize, Shown, Whole, Within, Word, cursor, page_size, words};

/// Longest life of a token that ends, in milliseconds: a hundred years.
const TTL_MS_MAX: u64 = 100 * 366 * 86_400_000;

/// A scope for examples.
const SCOPE_EXAMPLE: &str = "sluice://ns/shop?perm=rw";

/// A scope, as its URI: `sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin`.
#[derive(Clone, PartialEq, Debug)]
pub struct Scope(access::Scope);

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "expected sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin";
        let uri = Cow::<str>::deserialize(deserializer)?;
        let scope = access::Scope::from_uri(&uri).unwrap_or_else(|| Err(expected.to_owned()));
        scope.and_then(access::Scope::expect_useful).map(Scope).map_err(de::Error::custom)
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

inline_schemas! {
    Scope: json_schema!({
        "type": "string",
        "description":
            "sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin; NAMESPACE may be a pattern",
    });
}

/// A token.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Token {
    /// Its text, which a client sends as `Authorization: Bearer TOKEN`; only in the answer that made the
    /// token.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "secret")]
    #[schemars(with = "Option<String>")]
    token: Option<Secret>,
    /// Its id in lists and for revocation; no secret.
    id: String,
    /// The identity that it stands for.
    name: String,
    /// Scopes of the token; rules of the policy may allow more.
    scopes: Vec<Scope>,
    /// When it was made, in milliseconds since the Unix epoch.
    created_at_ms: u64,
    /// The identity that made it.
    created_by: String,
    /// When it expires, in milliseconds since the Unix epoch; absent when it lasts until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    /// When it was last used, to the minute, in milliseconds since the Unix epoch; absent when it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at_ms: Option<u64>,
}

fn example() -> Value {
    json!({
        "id": "4f1d20c5a3b2e697", "name": "billing", "scopes": [SCOPE_EXAMPLE],
        "created_at_ms": AT_MS_EXAMPLE, "created_by": "ops",
    })
}

fn secret<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(|Secret(text)| text).serialize(serializer)
}

impl Whole for Token {
    const NAME: &'static str = "TokenMade";
    const FIELD: &'static str = "token";

    fn example() -> Value {
        json!("sluice_4f1d20c5a3b2e697_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    }
}

impl From<&access::Token> for Token {
    fn from(token: &access::Token) -> Token {
        Token {
            token: None,
            id: token.id.to_string(),
            name: token.name.to_string(),
            scopes: token.scopes.iter().cloned().map(Scope).collect(),
            created_at_ms: token.created_at_ms,
            created_by: token.created_by.clone(),
            expires_at_ms: token.expires_at_ms,
            last_used_at_ms: Some(token.last_used_ms()).filter(|at_ms| *at_ms > 0),
        }
    }
}

/// The tokens of the server.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TokenListRequest")]
pub struct List {}

/// All tokens, without their texts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TokenList")]
#[schemars(example = json!({"tokens": [example()]}))]
pub struct Tokens {
    /// By name.
    tokens: Vec<Token>,
}

impl Unary for List {
    type Answer = Tokens;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Tokens>, CallError> {
        let tokens = permit.calls().access().tokens();
        Ok(Tokens { tokens: tokens.iter().map(|token| Token::from(&**token)).collect() }.into())
    }
}

/// A token to make.
// No default of the whole: with one, the schema would require no field.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TokenNew")]
#[schemars(example = json!({"name": "billing", "scopes": [SCOPE_EXAMPLE], "ttl_ms": 86_400_000}))]
pub struct Create {
    /// The identity that it stands for: up to 128 letters, digits, `.`, `-`, `_` and `@`, not with `.` first.
    #[schemars(required)]
    name: Option<String>,
    /// Scopes of the token; rules of the policy may allow more.
    #[serde(default)]
    scopes: Vec<Scope>,
    /// Time until it expires, in milliseconds. Not together with `expires_at_ms`; without both it lasts until
    /// it is revoked.
    ttl_ms: Option<Within<1, TTL_MS_MAX>>,
    /// When it expires, in milliseconds since the Unix epoch.
    expires_at_ms: Option<Within<1, { u64::MAX }>>,
}

impl Create {
    fn check(self, now_ms: u64) -> Read<NewToken> {
        if self.ttl_ms.is_some() && self.expires_at_ms.is_some() {
            return Err(Fault::conflict("ttl_ms", "expires_at_ms"));
        }
        let missing = || Fault::missing("name", "the identity that the token stands for");
        let name = self.name.ok_or_else(missing)?;
        let ends_at_ms = self.ttl_ms.map(|ttl_ms| now_ms + ttl_ms.get());
        let expires_at_ms = self.expires_at_ms.map(Within::get).or(ends_at_ms);
        Ok(NewToken { name, scopes: self.scopes.into_iter().map(|scope| scope.0).collect(), expires_at_ms })
    }
}

impl Unary for Create {
    type Answer = Shown<Token>;
    const HOW: &'static [How] = &[How::Created];
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Token>>, CallError> {
        let (new, by) = (self.check(permit.node().clock().now_ms())?, permit.caller().name());
        let access = permit.calls().access();
        let (token, secret) = access.token_create(permit.node(), new, by).await?;
        access.spread(permit.node()).await;
        let answer = Token { token: Some(secret), ..Token::from(&*token) };
        Ok(Done::named(Shown(answer), How::Created, token.name.to_string()))
    }
}

/// A token to revoke, by its id or name.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TokenRevokeRequest")]
pub struct Revoke {}

impl Unary for Revoke {
    type Answer = Token;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Token>, CallError> {
        let access = permit.calls().access();
        let token = access.token_revoke(permit.node(), permit.name()).await?;
        access.spread(permit.node()).await;
        Ok(Token::from(&*token).into())
    }
}

/// A page of the audit log.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "AuditRequest")]
pub struct ReadAudit {
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most entries of the page.
    limit: Option<PageSize>,
}

/// Entries of the audit log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({"entries": [{
    "at_ms": AT_MS_EXAMPLE, "who": "ops", "proof": "token 4f1d20c5a3b2e697", "address": "192.0.2.7",
    "operation": "queue_purge", "target": "/v1/queues/emails/purge", "outcome": "200",
    "request_id": "000065f0c1a20001",
}]}))]
pub struct Audit {
    /// The oldest first.
    #[schemars(with = "Vec<Map<String, Value>>")]
    entries: Vec<Value>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for ReadAudit {
    type Answer = Audit;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Audit>, CallError> {
        let cursor = cursor(self.cursor.as_deref())?;
        let read = permit.calls().access().audit(permit.node(), cursor, page_size(self.limit));
        let (entries, next) = read.await?;
        let entries = entries.into_iter().map(|entry| entry.0).collect();
        Ok(Audit { entries, next: next.map(|next| next.to_string()) }.into())
    }
}

/// The caller.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "WhoAmIRequest")]
pub struct WhoAmI {}

/// Identity of the caller to the server, and what they may do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhoAmI")]
#[schemars(example = json!({
    "name": "billing", "proof": "token", "grants": [SCOPE_EXAMPLE],
    "rights": [{
        "may": ["send", "receive", "result", "coordinate", "read"], "namespaces": ["shop"], "queues": ["*"],
        "keys": ["*"],
    }],
}))]
pub struct Who {
    /// Name of the identity; `anybody` where callers need not authenticate.
    name: String,
    /// Proof of the caller's identity; absent where the server asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Word<ProofKind>>,
    /// Rules of the policy and scopes that allow the caller something; absent where nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    grants: Option<Vec<String>>,
    /// Rights by these, in the same order; absent where nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    rights: Option<Vec<Rights>>,
}

/// Rights by a rule or a scope. The names that they count for are patterns, in which `*` stands for any text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rights {
    /// Names of the rights.
    may: Vec<Word<Right>>,
    /// Patterns of the namespaces.
    namespaces: Vec<String>,
    /// Patterns of their queues. What concerns a whole namespace needs all of them.
    queues: Vec<String>,
    /// Patterns of the keys of their locks and documents.
    keys: Vec<String>,
}

words! {
    Right:
        "send" = Right::Send,
        "propose" = Right::Propose,
        "receive" = Right::Receive,
        "result" = Right::Result,
        "coordinate" = Right::Coordinate,
        "read" = Right::Read,
        "observe" = Right::Observe,
        "operate" = Right::Operate,
        "admin" = Right::Admin;
}

impl From<&Grant> for Rights {
    fn from(grant: &Grant) -> Rights {
        Rights {
            may: grant.rights().map(Word).collect(),
            namespaces: grant.namespaces.texts(),
            queues: grant.queues.texts(),
            keys: grant.keys.texts(),
        }
    }
}

/// A kind of proof of an identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofKind {
    /// A client certificate.
    Certificate,
    /// A token.
    Token,
}

words! {
    ProofKind: "certificate" = ProofKind::Certificate, "token" = ProofKind::Token;
}

impl From<&Proof> for ProofKind {
    fn from(proof: &Proof) -> ProofKind {
        match proof {
            Proof::Certificate(_) => ProofKind::Certificate,
            Proof::Token(_) => ProofKind::Token,
        }
    }
}

impl Unary for WhoAmI {
    type Answer = Who;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Who>, CallError> {
        permit.require_known()?;
        let (caller, identity) = (permit.caller(), permit.caller().identity());
        let who = Who {
            name: caller.name().to_owned(),
            proof: identity.map(|identity| Word(identity.proof().into())),
            grants: identity.map(|identity| identity.grants().map(str::to_owned).collect()),
            rights: identity.map(|identity| identity.grants.iter().map(|grant| (&**grant).into()).collect()),
        };
        Ok(who.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[test]
    fn a_token_is_read_and_mistakes_are_named() {
        let read = |body| from_value::<Create>(body).unwrap().check(1_000);
        let new = read(json!({"name": "ci", "scopes": ["sluice://ns/shop?perm=rw"], "expires_at_ms": 9}));
        let new = new.unwrap();
        assert_eq!((new.name.as_str(), new.scopes.len(), new.expires_at_ms), ("ci", 1, Some(9)));
        let new = read(json!({"name": "ci", "ttl_ms": 5})).unwrap();
        assert_eq!(new.expires_at_ms, Some(1_005));
        for (body, code, field) in [
            (json!({"scopes": []}), "missing_field", "name"),
            (json!({"name": "a", "ttl_ms": 1, "expires_at_ms": 2}), "conflicting_fields", ""),
        ] {
            let fault = read(body).unwrap_err();
            assert_eq!((fault.code, fault.field.as_str()), (code, field), "{}", fault.reason);
        }
        for body in [
            json!({"name": "a", "scopes": ["x"]}),
            json!({"name": "a", "scopes": ["sluice://ns/a?perm=z"]}),
            json!({"name": "a", "scopes": ["sluice://ns/$sys?perm=r"]}),
            json!({"name": "a", "ttl_ms": 0}),
        ] {
            assert!(from_value::<Create>(body.clone()).is_err(), "{body}");
        }
    }

    #[test]
    fn the_schema_requires_a_name_alone() {
        let schema = schemars::schema_for!(Create);
        assert_eq!(schema.get("required"), Some(&json!(["name"])));
    }

    #[tokio::test]
    async fn a_token_shows_its_text_once() {
        let server = Open::new();
        let body = json!({"name": "ops", "scopes": ["sluice://ns/*?perm=admin"]});
        let create = server.permit(Operation::TokenCreate, "");
        let done = from_value::<Create>(body).unwrap().run(&create).await.unwrap();
        assert!(done.created() && done.noted.made.as_deref() == Some("ops"));
        assert!(!format!("{done:?}").contains("sluice_"));
        let made = to_value(done.answer).unwrap();
        assert!(made["token"].as_str().unwrap().starts_with("sluice_"), "{made}");
        assert_eq!(
            (&made["created_by"], &made["scopes"]),
            (&json!("anybody"), &json!(["sluice://ns/*?perm=admin"]))
        );

        let list = server.permit(Operation::TokenList, "");
        let listed = to_value(List {}.run(&list).await.unwrap().answer).unwrap();
        assert_eq!((&listed["tokens"][0]["id"], listed["tokens"][0].get("token")), (&made["id"], None));
        let who = server.permit(Operation::WhoAmI, "");
        assert_eq!(to_value(WhoAmI {}.run(&who).await.unwrap().answer).unwrap(), json!({"name": "anybody"}));
        let audit = server.permit(Operation::Audit, "");
        let read = ReadAudit::default().run(&audit).await.unwrap().answer;
        assert_eq!(to_value(read).unwrap(), json!({"entries": []}));
    }
}
