//! Who asks, and whether they may: as often as a call goes on or names something else.

use std::sync::Arc;

use http::HeaderValue;
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Denied, Peer, Right, Target, is_kept};
use sluice_engine::{MessageId, NamespaceId};
use sluice_node::Node;

/// Name of the namespace that callers get who name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// Whether a caller may do this: what the server keeps for itself has a rule of its own.
pub(crate) fn decide(
    caller: &Caller,
    right: Right,
    namespace: Option<&str>,
    target: Target<'_>,
) -> Result<(), Denied> {
    match namespace.filter(|namespace| is_kept(namespace)) {
        Some(namespace) => keep(caller, right, namespace),
        None => caller.may(right, target),
    }
}

/// Who waits for something, or gets an answer without end: they get it only for as long as they might ask for
/// it again.
#[derive(Debug)]
pub(crate) struct Standing {
    peer: Arc<Peer>,
    /// What they have shown and asked for; `None`: nobody was asked who they are.
    asked: Option<Box<AskedFor>>,
}

#[derive(Debug)]
struct AskedFor {
    authorization: Option<HeaderValue>,
    right: Right,
    namespace: Box<str>,
    scope: Scope,
}

/// What in a namespace somebody waits for.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// All of it.
    Whole,
    /// These queues.
    Queues(Box<[Box<str>]>),
    /// A message in some queue.
    Message,
}

impl Scope {
    pub(crate) fn queues<'q>(names: impl Iterator<Item = &'q str>) -> Scope {
        Scope::Queues(names.map(Box::from).collect())
    }
}

impl Standing {
    /// Of whoever has shown `authorization`, or the certificate of the connection.
    pub(crate) fn new(
        peer: &Arc<Peer>,
        authorization: Option<&[u8]>,
        right: Right,
        namespace: &str,
        scope: impl FnOnce() -> Scope,
    ) -> Standing {
        let asked = peer.is_asked().then(|| {
            let authorization = authorization.and_then(|value| HeaderValue::from_bytes(value).ok());
            Box::new(AskedFor { authorization, right, namespace: namespace.into(), scope: scope() })
        });
        Standing { peer: Arc::clone(peer), asked }
    }

    /// Who they are by now, if they still may have it.
    pub(crate) fn check(&self) -> Result<Caller, Denied> {
        let Some(asked) = &self.asked else {
            return match self.peer.is_asked() {
                false => Ok(Caller::Anybody),
                true => Err(Denied::unauthenticated("from now on this server asks who you are: ask again")),
            };
        };
        let AskedFor { authorization, right, namespace, scope } = &**asked;
        let caller = self.peer.standing(authorization.as_ref().map(HeaderValue::as_bytes))?;
        let may = |target| decide(&caller, *right, Some(namespace), target);
        match scope {
            Scope::Whole => may(Target::Namespace(namespace))?,
            Scope::Message => may(Target::SomeQueue(namespace))?,
            Scope::Queues(queues) => {
                queues.iter().try_for_each(|queue| may(Target::Queue(namespace, queue)))?;
            }
        }
        Ok(caller)
    }

    /// Resolves, with the reason, when they may not have it any more.
    pub(crate) async fn lost(&self) -> Denied {
        // Before the look, so that no change is missed after it.
        let mut changes = self.peer.changes();
        loop {
            let caller = match self.check() {
                Ok(caller) => caller,
                Err(denied) => return denied,
            };
            tokio::select! {
                // Never an error: who waits knows the sender.
                _ = changes.changed() => {}
                () = caller.expired() => {}
            }
        }
    }
}

/// Whether they have shown who they are, if anybody has to.
pub(crate) fn require_known(peer: &Peer, what: &str, caller: &Caller) -> Result<(), CallError> {
    caller.known().map_err(|denied| refused(peer, what, denied))
}

/// What the server keeps for itself is looked at by those who look after the server, and changed by nobody.
fn keep(caller: &Caller, right: Right, namespace: &str) -> Result<(), Denied> {
    caller.may(Right::Admin, Target::Server)?;
    match right {
        Right::Observe | Right::Result => Ok(()),
        _ => Err(Denied {
            code: "forbidden",
            message: format!(
                "the server keeps namespace {namespace:?} for itself: nobody else may change it"
            ),
            retry_after_ms: None,
        }),
    }
}

/// The error of a call that was denied, which is also noted for the log and for bans.
pub(crate) fn refused(peer: &Peer, what: &str, denied: Denied) -> CallError {
    peer.refused(&denied, what);
    denied.into()
}

/// Who asks for something in a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) caller: &'a Caller,
    /// Name of the namespace.
    pub(crate) namespace: &'a str,
    /// By which call, for the log.
    pub(crate) what: &'a str,
}

impl Asking<'_> {
    /// Whether the caller may do this in a queue.
    pub(crate) fn allow_queue(&self, right: Right, queue: &str) -> Result<(), CallError> {
        let target = Target::Queue(self.namespace, queue);
        self.caller.may(right, target).map_err(|denied| refused(self.peer, self.what, denied))
    }

    /// Whether the caller may do this with messages, by the queues that they are in now. What is not there,
    /// nobody can do anything with.
    pub(crate) async fn allow_messages(
        &self,
        node: &Node,
        namespace: NamespaceId,
        right: Right,
        ids: impl Iterator<Item = MessageId>,
    ) -> Result<(), CallError> {
        if self.caller.may_everywhere(right, self.namespace) {
            return Ok(());
        }
        let ids: Vec<MessageId> = ids.filter(|id| id.namespace == namespace).collect();
        for queue in node.queues_of(namespace, &ids).await? {
            self.allow_queue(right, &queue)?;
        }
        Ok(())
    }

    /// Whether the caller may work in the namespace as a whole: nobody does in that which the server keeps
    /// for itself.
    pub(crate) fn allow_work(&self) -> Result<(), CallError> {
        let decided = match is_kept(self.namespace) {
            true => keep(self.caller, Right::Receive, self.namespace),
            false => self.caller.known(),
        };
        decided.map_err(|denied| refused(self.peer, self.what, denied))
    }
}
