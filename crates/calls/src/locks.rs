//! Locks: acquire, renew, release, break.

#[cfg(test)]
mod tests;
pub mod views;
pub mod watch;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::NamespaceId;
use sluice_engine::command::LockAcquire;
use sluice_engine::limits::{LOCK_HOLDERS_MAX, LOCK_TTL_MS_MAX};
use sluice_engine::locks::{LockGrant, LockMode, LockToken};
use sluice_node::Granted;

use crate::access::{Caller, Right};
use crate::call::{Body, Done, Unary};
use crate::digest::{Fields, request_digest};
use crate::documents::Document;
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::standing::Waited;
use crate::value::{Nothing, Within, Word, Words, request_id};

/// Longest wait for a lock, in milliseconds: a day.
pub const LOCK_WAIT_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// Time for which a lock is held without renewal where no other is asked for, in milliseconds.
pub const LOCK_TTL_MS_DEFAULT: u64 = 30_000;

const TOKEN_EXAMPLE: &str = "0000pi8i3g00400000026ff81enfpmr0";
const FENCING_EXAMPLE: &str = "7340032000001";

/// The ways in which a lock is held, without a number of holders.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// By one holder.
    #[default]
    Exclusive,
    /// By any number of holders that share it.
    Shared,
    /// By as many holders as each allows.
    Counting,
}

impl Words for Mode {
    const WORDS: &[(Mode, &'static str)] = &[
        (Mode::Exclusive, LockMode::NAMES[0]),
        (Mode::Shared, LockMode::NAMES[1]),
        (Mode::Counting, LockMode::NAMES[2]),
    ];
    const NAMES: &'static [&'static str] = LockMode::NAMES;
}

impl From<LockMode> for Word<Mode> {
    fn from(mode: LockMode) -> Word<Mode> {
        Word(match mode {
            LockMode::Exclusive => Mode::Exclusive,
            LockMode::Shared => Mode::Shared,
            LockMode::Counting { .. } => Mode::Counting,
        })
    }
}

type Ttl = Within<1, { LOCK_TTL_MS_MAX as u64 }>;
type Holders = Within<1, { LOCK_HOLDERS_MAX as u64 }>;

/// Declares locks to acquire: the fields that every such request has, and these.
macro_rules! acquire_request {
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            /// The key: 1 to 255 bytes of text without control characters.
            key: Option<String>,
            /// Several keys instead of one, at most 64.
            keys: Option<Vec<String>>,
            /// Name of who asks, for those who look.
            owner: Option<String>,
            /// `exclusive`, `shared`, or `counting` with `holders`; default `exclusive`.
            mode: Word<Mode>,
            /// Largest number of holders, this one among them: for `counting`.
            holders: Option<Holders>,
            /// Time after which the grant ends unless it is renewed, in milliseconds; default 30,000.
            ttl_ms: Option<Ttl>,
            /// True: it is granted only if nobody holds one of the keys or waits for it, whatever the mode.
            /// It does not wait.
            if_absent: Option<bool>,
            $($own)*
        }

        impl $name {
            pub(crate) fn keys(&self) -> Read<Vec<&str>> {
                match (&self.key, &self.keys) {
                    (Some(_), Some(_)) => Err(Fault::conflict("key", "keys")),
                    (Some(key), None) => Ok(vec![key]),
                    (None, Some(keys)) => Ok(keys.iter().map(String::as_str).collect()),
                    (None, None) => Err(Fault::missing("key", "a lock is that of a key: give key, or keys")),
                }
            }

            /// The claim, which waits for nothing and is no repeat.
            pub(crate) fn claim<'a>(
                &'a self,
                namespace: NamespaceId,
                keys: &'a [&'a str],
            ) -> Read<LockAcquire<'a>> {
                Ok(LockAcquire {
                    namespace,
                    keys,
                    owner: self.owner.as_deref().unwrap_or_default(),
                    mode: mode(self.mode.0, self.holders)?,
                    ttl_ms: self.ttl_ms.map_or(LOCK_TTL_MS_DEFAULT, Within::get) as u32,
                    wait_ms: 0,
                    if_absent: self.if_absent.unwrap_or_default(),
                    request: [0; 2],
                })
            }
        }
    };
}

acquire_request! {
    /// Locks to acquire: of one key, or of several together, all or none.
    #[schemars(rename = "LockAcquireRequest")]
    #[schemars(example = json!({
        "key": "orders/17", "owner": "worker-3", "ttl_ms": 30_000, "wait_ms": 5_000,
    }))]
    Acquire {
        /// Longest wait while others hold a lock or came before, in milliseconds; default 0.
        wait_ms: Option<Within<0, LOCK_WAIT_MS_MAX>>,
        /// Text that nobody else can guess, by which a repeat of this request is known: it gets the same
        /// grant, or waits on in its place.
        request_id: Option<String>,
        /// True: the answer has the document of the key as well, as it is once the lock is held.
        with_document: Option<bool>,
    }
}

acquire_request! {
    /// Locks to acquire with a transaction, if they are free.
    #[schemars(rename = "TransactionAcquire", example = json!({"key": "orders/17"}))]
    AcquireAtOnce {}
}

impl AcquireAtOnce {
    /// Name of the field that says which locks.
    pub(crate) fn field(&self) -> &'static str {
        if self.keys.is_some() { "keys" } else { "key" }
    }
}

fn mode(mode: Mode, holders: Option<Holders>) -> Read<LockMode> {
    match (mode, holders) {
        (Mode::Exclusive, None) => Ok(LockMode::Exclusive),
        (Mode::Shared, None) => Ok(LockMode::Shared),
        (Mode::Counting, Some(holders)) => Ok(LockMode::Counting { holders: holders.get() as u16 }),
        (Mode::Counting, None) => {
            Err(Fault::missing("holders", "a counting lock has a largest number of holders, 1 to 1,000"))
        }
        (_, Some(_)) => {
            Err(Fault::invalid("only a lock with mode counting has a number of holders").inside("holders"))
        }
    }
}

/// Adds a claim to those fields that make a request what it is; not how long it holds and waits.
pub(crate) fn put_claim(claim: &LockAcquire<'_>, fields: &mut Fields) {
    fields.text("mode", Some(claim.mode.name()));
    if let LockMode::Counting { holders } = claim.mode {
        fields.number("holders", Some(holders.into()));
    }
    if claim.if_absent {
        fields.number("if_absent", Some(1));
    }
    fields.text("owner", Some(claim.owner));
    claim.keys.iter().for_each(|key| fields.text("key", Some(key)));
}

/// A grant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockGrant")]
#[schemars(example = grant_example())]
pub struct Grant {
    /// Proof of the grant: renews and releases it.
    token: String,
    /// Number to give to other systems with each write, in decimal digits: later grants have larger ones.
    fencing_token: String,
    /// When the grant ends unless it is renewed, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
}

fn grant_example() -> Value {
    json!({"token": TOKEN_EXAMPLE, "fencing_token": FENCING_EXAMPLE, "expires_at_ms": AT_MS_EXAMPLE})
}

impl From<LockGrant> for Grant {
    fn from(grant: LockGrant) -> Grant {
        Grant {
            token: grant.token.to_string(),
            fencing_token: grant.token.number.to_string(),
            expires_at_ms: grant.until_us / 1_000,
        }
    }
}

impl Acquire {
    /// The digest by which a repeat of the request is known; zero: it is not.
    fn digest(&self, claim: &LockAcquire<'_>, caller: &Caller) -> Read<[u64; 2]> {
        let Some(id) = request_id(self.request_id.as_deref())? else { return Ok([0; 2]) };
        let mut fields = Fields::default();
        fields.text("id", Some(id));
        fields.number("namespace", Some(claim.namespace.0.into()));
        put_claim(claim, &mut fields);
        Ok(request_digest(caller, std::iter::once(fields.bytes())))
    }
}

/// A grant, and the document of its key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockAcquired", example = grant_example())]
pub struct Acquired {
    /// Proof of the grant: renews and releases it.
    token: String,
    /// Number to give to other systems with each write, in decimal digits: later grants have larger ones.
    fencing_token: String,
    /// When the grant ends unless it is renewed, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
    /// The document of the key, if it was asked for and there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Document>,
}

impl Acquired {
    /// The answer for a grant. When its document cannot be read, the grant goes back, unless the request is a
    /// repeat: then the caller may have it already.
    async fn with(permit: &Permit<'_>, granted: Granted) -> Result<Done<Acquired>, CallError> {
        let Granted { grant, document } = granted;
        let document = match document {
            None => None,
            Some(found) => match Document::granted(permit, *found).await {
                Ok(document) => Some(document),
                Err(error) => {
                    if grant.calls == 1 {
                        permit.node().lock_give_back(permit.namespace_id()?, grant)?;
                    }
                    return Err(error);
                }
            },
        };
        let Grant { token, fencing_token, expires_at_ms } = Grant::from(grant);
        Ok(Acquired { token, fencing_token, expires_at_ms, document }.into())
    }
}

impl Unary for Acquire {
    type Answer = Acquired;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Acquired>, CallError> {
        let keys = self.keys()?;
        let document = match (self.with_document.unwrap_or_default(), keys.as_slice()) {
            (false, _) => None,
            (true, [key]) => Some(*key),
            (true, _) => {
                let reason = "several keys have several documents: acquire one, or read them then";
                return Err(Fault::invalid(reason).inside("with_document").into());
            }
        };
        document.into_iter().try_for_each(|key| permit.allow_key(Right::Read, key))?;
        let claim = self.claim(permit.namespace_id()?, &keys)?;
        keys.iter().try_for_each(|key| permit.allow_key(Right::Coordinate, key))?;
        let acquire = LockAcquire { request: self.digest(&claim, permit.caller())?, ..claim };
        let wait_ms = self.wait_ms.map_or(0, Within::get);
        if claim.if_absent && wait_ms > 0 {
            return Err(Fault::conflict("wait_ms", "if_absent").inside("wait_ms").into());
        }
        let wait = Duration::from_millis(wait_ms);
        let acquiring = permit.node().lock_acquire(acquire, wait, document.is_some(), permit.stopping());
        if wait_ms == 0 {
            return Acquired::with(permit, acquiring.await?).await;
        }
        let names = || Waited::Keys(keys.iter().map(|key| Box::from(*key)).collect());
        let standing = permit.standing(Right::Coordinate, names);
        let granted = tokio::select! {
            biased;
            denied = standing.lost() => return Err(denied.into()),
            granted = acquiring => granted?,
        };
        Acquired::with(permit, granted).await
    }
}

/// A grant to renew: its time begins anew.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LockRenewRequest")]
#[schemars(example = json!({"token": TOKEN_EXAMPLE}))]
pub struct Renew {
    /// Token of the grant.
    #[schemars(required)]
    token: Option<String>,
    /// Time after which it ends unless it is renewed again, in milliseconds; default: as before.
    ttl_ms: Option<Ttl>,
}

impl Unary for Renew {
    type Answer = Grant;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Grant>, CallError> {
        let ttl_ms = self.ttl_ms.map_or(0, Within::get) as u32;
        let grant =
            permit.node().lock_renew(permit.namespace_id()?, token(self.token.as_deref())?, ttl_ms).await?;
        Ok(Grant::from(grant).into())
    }
}

/// A grant to release.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LockReleaseRequest")]
#[schemars(example = json!({"token": TOKEN_EXAMPLE}))]
pub struct Release {
    /// Token of the grant.
    #[schemars(required)]
    token: Option<String>,
}

impl Release {
    /// The token as it was given.
    pub(crate) fn token_text(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The token of the grant.
    pub(crate) fn token(&self) -> Result<LockToken, CallError> {
        token(self.token.as_deref())
    }
}

impl Unary for Release {
    type Answer = Nothing;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().lock_release(permit.namespace_id()?, self.token()?).await?;
        Ok(Nothing {}.into())
    }
}

fn token(given: Option<&str>) -> Result<LockToken, CallError> {
    let token = given.ok_or_else(|| Fault::missing("token", "a grant is known by its token"))?;
    Ok(token.parse::<LockToken>()?)
}

/// A lock to break: its holders lose it.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LockBreakRequest")]
pub struct Break {}

/// The holders of a lock that was broken.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockBroken")]
#[schemars(example = json!({"holders": 1}))]
pub struct Broken {
    /// Number of holders whose grants have ended.
    holders: u64,
}

impl Unary for Break {
    type Answer = Broken;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Broken>, CallError> {
        let holders = permit.node().lock_break(permit.namespace_id()?, permit.name()).await?;
        Ok(Broken { holders: holders.into() }.into())
    }
}
