//! Access control: authentication of callers, and the decision on what they may do, for every protocol.
//!
//! While the server has no identity, every caller may do everything; such a server listens on the loopback
//! address only. From the first identity on (a policy rule, a token, or client certificates) everything is
//! denied that no rule and no scope grants. This stays so until the process ends, also when that identity is
//! removed.
//!
//! A front makes a [`Peer`] of each connection, asks it for the [`Caller`] of each request, and that for the
//! [`Right`] that the request needs at its [`Target`]. An identity is looked up once per connection, and
//! again when the rules have a new generation.
//!
//! Map: `right` rights and roles, `scope` what certificates and tokens allow by themselves, `pattern` names
//! with `*`, `policy` the policy file, `certificate` who a client certificate is for, `tokens` what a token
//! is, `identity` the decision, `peer` who is at the other end of a connection, `clients` for whom another
//! node of the cluster speaks over one, `rate` how often they may ask, `guard` who may connect, `store`
//! tokens in namespace `$sys`, `stored_policy` the policy there, `audit` who has done what, `entries` its
//! queue, `refusals` who was refused, and how often, `notes` the way of all that to the leader of shard 0,
//! `following` the way of tokens and policy to all nodes.

mod audit;
mod certificate;
mod clients;
mod entries;
mod following;
mod guard;
mod identity;
mod kept;
mod notes;
mod pattern;
mod peer;
mod policy;
mod rate;
mod refusals;
mod right;
mod scope;
mod store;
mod stored_policy;
mod tokens;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use sluice_engine::MessageId;
use sluice_node::AgreedClock;
use tokio::sync::watch;

use crate::system::Version;
use rate::Limiter;
use refusals::Refusals;

pub use audit::{AUDIT_PAGE_MAX, Act, AuditEntry};
pub use certificate::ClientCertificate;
pub use guard::{ConnectionSlot, Guard, GuardOptions, Turned};
pub(crate) use identity::Grant;
pub use identity::{Caller, Denied, Identity, Proof, Target};
pub use kept::{check_kept, decide, is_kept};
pub use pattern::Patterns;
pub use peer::{Forwarded, Peer};
pub use policy::{Mistake, POLICY_BYTES_MAX, Policy};
pub use rate::RequestRate;
pub use right::{Right, Role};
pub use scope::{Scope, client_uri};
pub use store::AccessError;
pub use stored_policy::{PolicyChange, StoredPolicy};
pub use tokens::{NewToken, Secret, Token};

/// Namespace that the server keeps for itself: tokens, the policy and the audit log lie there.
const SYS: &str = "$sys";
/// Consequence for the policy file, as the end of a sentence.
const STORED_COUNTS: &str =
    "the stored policy counts instead: `sluice policy show` prints it, `sluice policy set FILE` replaces it";
/// Identities whose counts of requests are kept before those are dropped that nobody uses.
const LIMITERS_KEPT: usize = 1_024;

/// The settings of access control.
#[derive(Clone, Debug, Default)]
pub struct AccessOptions {
    /// The policy file, which counts while no policy is stored.
    pub policy: Option<PathBuf>,
    /// True if clients may present certificates: then the server requires authentication from the start.
    pub certificates: bool,
    /// Request rate of identities for which the policy has none; `None`: unlimited.
    pub rate: Option<RequestRate>,
}

/// The access control of a server; clones share it.
#[derive(Clone)]
pub struct Access {
    shared: Arc<Shared>,
}

struct Shared {
    options: AccessOptions,
    rules: RwLock<Arc<Rules>>,
    /// Counts the changes of `rules`.
    generation: AtomicU64,
    /// Told of each, for those who wait.
    changes: watch::Sender<()>,
    /// True once callers have to authenticate; never false again.
    asks: AtomicBool,
    limiters: Mutex<HashMap<Arc<str>, Arc<Limiter>>>,
    /// Text of the policy file as it was last read, valid or not.
    policy_seen: Mutex<Option<String>>,
    /// Tokens are made, revoked and read again one after the other; the state in which they were read last.
    token_changes: tokio::sync::Mutex<Version>,
    /// The same for the policy that is stored.
    policy_changes: tokio::sync::Mutex<Version>,
    /// Keeps denials from filling the log.
    denials: Limiter,
    /// Keeps them from filling the audit log.
    refusals: Refusals,
    /// Clock of the node; unset until its tokens were read.
    clock: OnceLock<AgreedClock>,
}

/// The rules in force.
#[derive(Clone, Debug, Default)]
struct Rules {
    /// The policy in force: the one that is stored, else that of the file.
    policy: Arc<Policy>,
    /// The policy of the file.
    file: Arc<Policy>,
    stored: Option<Arc<StoredPolicy>>,
    tokens: HashMap<Arc<str>, KnownToken>,
    /// Messages with tokens that cannot be read: they admit nobody, and still there are identities.
    unreadable: Vec<MessageId>,
}

/// A token, and its identity by the rules in force.
#[derive(Clone, Debug)]
struct KnownToken {
    token: Arc<Token>,
    identity: Arc<Identity>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Default for Access {
    /// Access control without a policy: open until there is a token.
    fn default() -> Access {
        Access::with(AccessOptions::default(), Policy::default(), None)
    }
}

impl Access {
    /// Reads the policy file. What is stored comes with [`Access::load_tokens`] and [`Access::load_policy`].
    ///
    /// # Errors
    /// What is wrong with the policy file: a text with a line for each mistake.
    pub fn new(options: AccessOptions) -> Result<Access, String> {
        let (policy, text) = match &options.policy {
            None => (Policy::default(), None),
            Some(path) => {
                let text = read_policy(path)?;
                (parse_policy(path, &text)?, Some(text))
            }
        };
        Ok(Access::with(options, policy, text))
    }

    fn with(options: AccessOptions, policy: Policy, policy_text: Option<String>) -> Access {
        let access = Access {
            shared: Arc::new(Shared {
                options,
                rules: RwLock::default(),
                generation: AtomicU64::new(0),
                changes: watch::Sender::new(()),
                asks: AtomicBool::new(false),
                limiters: Mutex::default(),
                policy_seen: Mutex::new(policy_text),
                token_changes: tokio::sync::Mutex::default(),
                policy_changes: tokio::sync::Mutex::default(),
                denials: Limiter::new(RequestRate { per_s: 10, burst: 100 }),
                refusals: Refusals::default(),
                clock: OnceLock::new(),
            }),
        };
        access.replace(|rules| rules.file = Arc::new(policy));
        access
    }

    /// Clock by which credentials end and acts are dated: that of the node, once its tokens were read.
    fn clock(&self) -> AgreedClock {
        self.shared.clock.get().cloned().unwrap_or_default()
    }

    /// True if callers have to authenticate.
    pub fn asks(&self) -> bool {
        self.shared.asks.load(Ordering::Acquire)
    }

    /// Looks whether the policy file has changed, and takes it up: for open connections too. Tells whether a
    /// new one is in force by that, which it is not while a policy is stored.
    ///
    /// # Errors
    /// As [`Access::new`], and that certificates which were revoked are not named any more by a `[revoked]`;
    /// once for each change. What was in use stays in use.
    pub fn reload(&self) -> Result<bool, String> {
        let Some(path) = &self.shared.options.policy else { return Ok(false) };
        let text = read_policy(path)?;
        let mut seen = self.shared.policy_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&text) {
            return Ok(false);
        }
        let parsed = parse_policy(path, &text);
        *seen = Some(text);
        let policy = parsed?;
        let (_, rules) = self.rules();
        let checked = rules.file.check_next(&policy);
        checked.map_err(|reason| format!("the policy file {} {reason}", path.display()))?;
        self.replace(|rules| rules.file = Arc::new(policy));
        if rules.stored.is_some() {
            tracing::warn!("the policy file {} has changed, and {STORED_COUNTS}", path.display());
            return Ok(false);
        }
        if self.asks() && !self.knows_somebody(&self.rules().1) {
            tracing::error!(
                "the policy file {} gives nobody anything any more, and there is neither a token nor a client CA: every \
                 request is refused until the policy has a rule",
                path.display()
            );
        }
        Ok(true)
    }

    /// The rules of now, and their generation.
    fn rules(&self) -> (u64, Arc<Rules>) {
        let rules = self.shared.rules.read().unwrap_or_else(PoisonError::into_inner);
        (self.generation(), Arc::clone(&rules))
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Changes the rules, and whom each token stands for with them.
    fn replace(&self, change: impl FnOnce(&mut Rules)) {
        let mut current = self.shared.rules.write().unwrap_or_else(PoisonError::into_inner);
        let mut rules = Rules::clone(&current);
        change(&mut rules);
        rules.policy = Arc::clone(rules.stored.as_ref().map_or(&rules.file, |stored| &stored.policy));
        let policy = Arc::clone(&rules.policy);
        for known in rules.tokens.values_mut() {
            known.identity = Arc::new(self.identity_of_token(&policy, &known.token));
        }
        let known = self.knows_somebody(&rules);
        *current = Arc::new(rules);
        // Never back: whoever empties a policy does not mean to let everybody in.
        self.shared.asks.fetch_or(known, Ordering::Release);
        self.shared.generation.fetch_add(1, Ordering::Release);
        self.shared.changes.send_replace(());
    }

    /// True if there is an identity.
    fn knows_somebody(&self, rules: &Rules) -> bool {
        self.shared.options.certificates
            || rules.policy.has_rules()
            || !rules.tokens.is_empty()
            || !rules.unreadable.is_empty()
    }

    fn identity_of_token(&self, policy: &Policy, token: &Token) -> Identity {
        let proof = Proof::Token(Arc::clone(&token.id));
        self.identity(policy, &token.name, proof, &token.scopes, token.expires_at_ms.unwrap_or(u64::MAX))
    }

    fn identity_of_certificate(&self, policy: &Policy, certificate: &ClientCertificate) -> Identity {
        let proof = Proof::Certificate(certificate.serial.as_str().into());
        self.identity(policy, &certificate.name, proof, &certificate.scopes, certificate.expires_at_ms)
    }

    fn identity(
        &self,
        policy: &Policy,
        name: &str,
        proof: Proof,
        scopes: &[Scope],
        expires_at_ms: u64,
    ) -> Identity {
        let of_scopes = scopes.iter().map(|scope| Arc::new(Grant::of_scope(scope)));
        let rate = policy.rate_of(name).or(self.shared.options.rate);
        let name: Arc<str> = name.into();
        Identity {
            proof,
            grants: of_scopes.chain(policy.grants_of(&name)).collect(),
            expires_at_ms,
            clock: self.clock(),
            limiter: rate.map(|rate| self.limiter(&name, rate)),
            name,
        }
    }

    /// One count for all connections of an identity.
    fn limiter(&self, name: &Arc<str>, rate: RequestRate) -> Arc<Limiter> {
        let mut limiters = self.shared.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.get(name).filter(|limiter| limiter.rate() == rate) {
            return Arc::clone(limiter);
        }
        if limiters.len() >= LIMITERS_KEPT {
            limiters.retain(|_, limiter| Arc::strong_count(limiter) > 1);
        }
        let limiter = Arc::new(Limiter::new(rate));
        limiters.insert(Arc::clone(name), Arc::clone(&limiter));
        limiter
    }
}

fn read_policy(path: &std::path::Path) -> Result<String, String> {
    let told = |e: &dyn fmt::Display| format!("cannot read the policy file {}: {e}", path.display());
    let bytes = std::fs::metadata(path).map_err(|e| told(&e))?.len();
    if bytes > POLICY_BYTES_MAX as u64 {
        return Err(told(&format!("it has {bytes} bytes, more than {POLICY_BYTES_MAX}")));
    }
    std::fs::read_to_string(path).map_err(|e| told(&e))
}

fn parse_policy(path: &std::path::Path, text: &str) -> Result<Policy, String> {
    Policy::parse(text)
        .map_err(|mistakes| format!("the policy file {} {}", path.display(), cannot_be_used(&mistakes)))
}

/// All mistakes of a policy, as the end of a sentence whose subject is the policy.
fn cannot_be_used(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(|mistake| format!("\n  - {mistake}")).collect();
    format!("cannot be used:{}", lines.concat())
}
