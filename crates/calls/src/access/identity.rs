//! The caller of a request, and the decision on what it may do.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use sluice_node::AgreedClock;
use tokio::time::sleep;

use super::pattern::Patterns;
use super::rate::Limiter;
use super::right::{Right, Roles};
use super::scope::Scope;

/// The part of the server at which a right is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// The server as a whole.
    Server,
    /// A namespace with everything in it.
    Namespace(&'a str),
    /// At least one queue of a namespace; each queue is checked once it is known.
    SomeQueue(&'a str),
    /// A queue of a namespace.
    Queue(&'a str, &'a str),
    /// At least one key of a namespace; each key is checked once it is known.
    SomeKey(&'a str),
    /// A key of a namespace.
    Key(&'a str, &'a str),
}

/// The roles that a rule or scope grants in namespaces and queues.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The rule's name in the policy file, or the scope.
    pub(crate) rule: Arc<str>,
    pub(crate) roles: Roles,
    pub(crate) namespaces: Patterns,
    pub(crate) queues: Patterns,
    pub(crate) keys: Patterns,
}

/// The credential by which a caller was authenticated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// A client certificate, with this serial number.
    Certificate(Arc<str>),
    /// A token, with this id.
    Token(Arc<str>),
}

impl Proof {
    /// Name of the kind of credential.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Proof::Certificate(_) => "certificate",
            Proof::Token(_) => "token",
        }
    }
}

/// An authenticated caller.
#[derive(Debug)]
pub struct Identity {
    pub(crate) name: Arc<str>,
    pub(crate) proof: Proof,
    pub(crate) grants: Vec<Arc<Grant>>,
    /// End of the credential's validity, in milliseconds since the Unix epoch; `u64::MAX`: none.
    pub(crate) expires_at_ms: u64,
    /// Clock by which that comes.
    pub(crate) clock: AgreedClock,
    pub(crate) limiter: Option<Arc<Limiter>>,
}

/// The caller of a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Any caller: no identity exists on this server, so nobody has to authenticate.
    Anybody,
    /// A caller without credentials on a server that requires them.
    Nobody,
    /// An identity.
    Known(Arc<Identity>),
}

/// The reason for refusing a request: one of the codes of [`crate::codes`], and a sentence for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    /// `unauthenticated`, `forbidden`, `approval_needed` or `rate_limited`.
    pub code: &'static str,
    /// The request, and the reason for refusing it.
    pub message: String,
    /// For `rate_limited`: time after which the caller may retry.
    pub retry_after_ms: Option<u64>,
}

impl Caller {
    /// Checks that the caller has a right at a target.
    ///
    /// # Errors
    /// `unauthenticated` for nobody, `forbidden` for an identity without the right.
    pub fn may(&self, right: Right, target: Target<'_>) -> Result<(), Denied> {
        match self {
            _ if right == Right::Open => Ok(()),
            Caller::Anybody => Ok(()),
            Caller::Known(identity) if identity.has(right, target) => Ok(()),
            Caller::Known(identity) => Err(identity.denied(right, target)),
            Caller::Nobody => self.known(),
        }
    }

    /// Checks that the caller is authenticated, if the server requires it.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn known(&self) -> Result<(), Denied> {
        match self {
            Caller::Anybody | Caller::Known(_) => Ok(()),
            Caller::Nobody => Err(Denied::unauthenticated(
                "this server requires authentication: use a client certificate, or send `Authorization: Bearer TOKEN` with a \
                 token of `sluice token create`",
            )),
        }
    }

    /// True if the caller has the right in every queue of the namespace; if not, each queue has to be
    /// checked.
    pub fn may_everywhere(&self, right: Right, namespace: &str) -> bool {
        self.may(right, Target::Namespace(namespace)).is_ok()
    }

    /// True if the identity's rate leaves room for a request at this moment; counts none.
    pub fn may_ask_once_more(&self, relieves: bool) -> bool {
        let Caller::Known(identity) = self else { return true };
        identity.limiter.as_ref().is_none_or(|limiter| limiter.has_room(relieves))
    }

    /// Counts one request of the identity's rate, for which one that `relieves` is hardly refused.
    ///
    /// # Errors
    /// `rate_limited`.
    pub fn asks_once_more(&self, relieves: bool) -> Result<(), Denied> {
        let Caller::Known(identity) = self else { return Ok(()) };
        match identity.limiter.as_ref().map(|limiter| limiter.take(relieves)) {
            Some(Err(retry_after_ms)) => Err(Denied {
                code: "rate_limited",
                message: format!("{:?} asks too often: retry in {retry_after_ms} ms", &*identity.name),
                retry_after_ms: Some(retry_after_ms),
            }),
            _ => Ok(()),
        }
    }

    /// True when both are the same caller, by the same rules; false when that is not known.
    pub fn is_as(&self, other: &Caller) -> bool {
        match (self, other) {
            (Caller::Anybody, Caller::Anybody) | (Caller::Nobody, Caller::Nobody) => true,
            (Caller::Known(one), Caller::Known(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Resolves when what they have shown has expired.
    pub async fn expired(&self) {
        match self {
            Caller::Known(identity) => match identity.left() {
                Some(left) => sleep(left).await,
                None => pending().await,
            },
            Caller::Anybody | Caller::Nobody => pending().await,
        }
    }

    /// Their name for logs and the audit log.
    pub fn name(&self) -> &str {
        match self {
            Caller::Anybody => "anybody",
            Caller::Nobody => "nobody",
            Caller::Known(identity) => &identity.name,
        }
    }

    /// The identity, if they have one.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Caller::Known(identity) => Some(identity),
            _ => None,
        }
    }
}

impl Identity {
    /// The identity's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Time for which the credential is still valid; `None`: it does not expire.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left_ms = || self.expires_at_ms.saturating_sub(self.clock.now_ms());
        (self.expires_at_ms != u64::MAX).then(|| Duration::from_millis(left_ms()))
    }

    /// The rules and scopes that grant it something, as text.
    pub fn grants(&self) -> impl Iterator<Item = &str> {
        self.grants.iter().map(|grant| &*grant.rule)
    }

    /// The credential.
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// True if a grant gives this right at the target.
    fn has(&self, right: Right, target: Target<'_>) -> bool {
        self.grants.iter().any(|grant| grant.allows(right, target))
    }

    fn denied(&self, right: Right, target: Target<'_>) -> Denied {
        let rules: Vec<&str> = self.grants.iter().map(|grant| &*grant.rule).collect();
        let rules = match rules.as_slice() {
            [] => "no rule and no scope names it".to_owned(),
            rules => format!("its rights are {}", rules.join(", ")),
        };
        Denied {
            code: "forbidden",
            message: format!("{:?} may not {} {target}: {rules}", &*self.name, right.verb()),
            retry_after_ms: None,
        }
    }
}

impl Grant {
    pub(super) fn of_scope(scope: &Scope) -> Grant {
        Grant {
            rule: scope.to_string().into(),
            roles: scope.roles(),
            namespaces: scope.namespaces().clone(),
            queues: Patterns::any(),
            keys: Patterns::any(),
        }
    }

    /// The rights that it gives, without that to what everybody may do.
    pub(crate) fn rights(&self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(|right| *right != Right::Open && self.roles.allow(*right))
    }

    fn allows(&self, right: Right, target: Target<'_>) -> bool {
        self.roles.allow(right)
            && match target {
                Target::Server => self.namespaces.fit_all() && self.queues.fit_all() && self.keys.fit_all(),
                Target::Namespace(namespace) => self.namespaces.fit(namespace) && self.queues.fit_all(),
                Target::SomeQueue(namespace) | Target::SomeKey(namespace) => self.namespaces.fit(namespace),
                Target::Queue(namespace, queue) => self.namespaces.fit(namespace) && self.queues.fit(queue),
                Target::Key(namespace, key) => self.namespaces.fit(namespace) && self.keys.fit(key),
            }
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Server => f.write_str("on this server as a whole"),
            Target::Namespace(namespace) => write!(f, "in all of namespace {namespace:?}"),
            Target::SomeQueue(namespace) | Target::SomeKey(namespace) => {
                write!(f, "in namespace {namespace:?}")
            }
            Target::Key(namespace, key) => write!(f, "with key {key:?} of namespace {namespace:?}"),
            Target::Queue(namespace, queue) => write!(f, "in queue {queue:?} of namespace {namespace:?}"),
        }
    }
}

impl Denied {
    /// The denial `unauthenticated`, with a sentence for the caller.
    pub fn unauthenticated(message: impl Into<String>) -> Denied {
        Denied { code: "unauthenticated", message: message.into(), retry_after_ms: None }
    }

    /// The denial of a message that `name` may not send there without a person's approval.
    pub(crate) fn approval_needed(name: &str, target: Target<'_>) -> Denied {
        let message = format!(
            "{name:?} may only propose messages {target}: send it with `hold`, and without `unique` and \
             `ordering_key`; it is delivered when a person has approved it"
        );
        Denied { code: "approval_needed", message, retry_after_ms: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::right::Role;

    fn caller(grants: &[(&[Role], &str, &str)]) -> Caller {
        let grants = grants.iter().enumerate().map(|(at, (roles, namespace, queue))| {
            Arc::new(Grant {
                rule: format!("rule {at}").into(),
                roles: Roles::of(roles),
                namespaces: Patterns::new(&[namespace]).unwrap(),
                queues: Patterns::new(&[queue]).unwrap(),
                keys: Patterns::new(&[queue]).unwrap(),
            })
        });
        Caller::Known(Arc::new(Identity {
            name: "billing".into(),
            proof: Proof::Token("t".into()),
            grants: grants.collect(),
            expires_at_ms: u64::MAX,
            clock: AgreedClock::default(),
            limiter: None,
        }))
    }

    #[test]
    fn a_right_counts_where_its_rule_says() {
        let caller = caller(&[(&[Role::Producer], "shop", "orders.*"), (&[Role::Observer], "*", "*")]);
        let may = |right, target| caller.may(right, target).is_ok();
        assert!(may(Right::Send, Target::Queue("shop", "orders.new")));
        assert!(!may(Right::Send, Target::Queue("shop", "invoices")));
        assert!(!may(Right::Send, Target::Queue("other", "orders.new")));
        assert!(may(Right::Send, Target::SomeQueue("shop")) && !may(Right::Send, Target::SomeQueue("other")));
        assert!(!may(Right::Send, Target::Namespace("shop")) && !caller.may_everywhere(Right::Send, "shop"));
        assert!(may(Right::Observe, Target::Server) && !may(Right::Admin, Target::Server));
        assert!(!may(Right::Receive, Target::Queue("shop", "orders.new")));
        let caller = self::caller(&[(&[Role::Coordinator], "shop", "orders/*")]);
        let may = |target| caller.may(Right::Coordinate, target).is_ok();
        assert!(may(Target::SomeKey("shop")) && may(Target::Key("shop", "orders/17")));
        assert!(!may(Target::SomeKey("other")) && !may(Target::Key("shop", "stock/17")));
        assert!(!may(Target::Server));
    }

    #[test]
    fn a_denial_says_who_what_and_which_rule() {
        let denied =
            caller(&[(&[Role::Producer], "shop", "*")]).may(Right::Receive, Target::Queue("shop", "q"));
        let denied = denied.unwrap_err();
        assert_eq!(denied.code, "forbidden");
        for part in ["\"billing\"", "receive", "\"q\"", "\"shop\"", "rule 0"] {
            assert!(denied.message.contains(part), "{part}: {}", denied.message);
        }
        assert!(caller(&[]).may(Right::Send, Target::Server).unwrap_err().message.contains("no rule"));
    }

    #[test]
    fn nobody_may_only_what_is_open_and_anybody_everything() {
        assert_eq!(Caller::Nobody.may(Right::Send, Target::Server).unwrap_err().code, "unauthenticated");
        assert!(Caller::Nobody.may(Right::Open, Target::Server).is_ok());
        assert!(Caller::Anybody.may(Right::Admin, Target::Server).is_ok());
    }
}
