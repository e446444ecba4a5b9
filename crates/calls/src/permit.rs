//! The sender of a request, and the permit of its call: without one no call reaches the node.

use std::fmt;
use std::sync::Arc;

use sluice_engine::command::SendItem;
use sluice_engine::item::SendOptions;
use sluice_engine::{Error, MessageId, NamespaceId};
use sluice_node::Node;

use crate::access::{Caller, Denied, Peer, Right, Target, check_kept, decide, is_kept};
use crate::error::CallError;
use crate::operation::{Operation, Scope, Subject, Trait};
use crate::room::AnswerRoom;
use crate::server::Calls;
use crate::standing::{Standing, Waited};

/// Name of the namespace of calls that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The sender of a request, with its connection and the memory for its answer.
#[derive(Clone, Copy)]
pub struct Asker<'c> {
    /// The server that is asked.
    pub calls: &'c Calls,
    /// The other end of the connection.
    pub peer: &'c Arc<Peer>,
    /// The authenticated caller.
    pub caller: &'c Caller,
    /// The proof that came with the request (RFC 9110 §11.6.2), for what goes on after its answer has begun.
    pub authorization: Option<&'c [u8]>,
    /// The memory for the answer.
    pub room: &'c dyn AnswerRoom,
    /// The path or method that is called, for the log.
    pub path: &'c str,
}

/// The name of a call: the operation, and the namespace and object that it is about.
#[derive(Clone, Copy, Debug)]
pub struct CallName<'c> {
    /// The operation.
    pub operation: Operation,
    /// The namespace that it names; `None`: the default one.
    pub namespace: Option<&'c str>,
    /// The queue, message id, limit, schedule, key or namespace that it names; empty if none.
    pub name: &'c str,
    /// True: the answer may be behind, of an operation with [`Trait::Stale`].
    pub is_stale: bool,
}

/// A request whose caller may do what it asks for, as far as its name tells. Made by [`Asker::permit`] alone;
/// each call takes one. What only the body tells (queues of a receive from several, of a receipt, of a reply)
/// the call checks by it.
///
/// ```
/// use sluice_calls::{Permit, Unary, limits};
///
/// async fn handle(permit: &Permit<'_>) {
///     let _ = limits::Delete {}.run(permit).await;
/// }
/// ```
///
/// Without one a call does not compile; one that is made by hand does not, either, nor does a way to the node
/// past all calls:
///
/// ```compile_fail,E0061
/// use sluice_calls::{Permit, Unary, limits};
///
/// async fn handle() {
///     let _ = limits::Delete {}.run().await;
/// }
/// ```
///
/// ```compile_fail,E0451
/// use sluice_calls::{Asker, CallName, Permit};
///
/// fn permit<'c>(asker: Asker<'c>, asked: CallName<'c>) -> Permit<'c> {
///     Permit { asker, asked, proposes: false }
/// }
/// ```
///
/// ```compile_fail,E0624
/// fn metrics(calls: &sluice_calls::Calls) {
///     let _ = calls.node().metrics();
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Permit<'c> {
    asker: Asker<'c>,
    asked: CallName<'c>,
    /// True: it is for messages that are held until a person approves them, and no others.
    proposes: bool,
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("asked", &self.asked).finish_non_exhaustive()
    }
}

/// Authenticates the sender of a request; operations that are public need none.
///
/// # Errors
/// `unauthenticated`, or `rate_limited`.
pub fn identify(
    peer: &Peer,
    operation: Operation,
    authorization: Option<&[u8]>,
    path: &str,
) -> Result<Caller, CallError> {
    if !peer.is_asked() {
        return Ok(Caller::Anybody);
    }
    if operation.is(Trait::Public) {
        return Ok(Caller::Nobody);
    }
    let caller = peer.caller(authorization, operation.is(Trait::Relieves));
    caller.map_err(|denied| refused(peer, path, denied))
}

/// Checks that a caller has shown who they are, if anybody has to.
///
/// # Errors
/// `unauthenticated`.
pub fn require_known(peer: &Peer, caller: &Caller, path: &str) -> Result<(), CallError> {
    caller.known().map_err(|denied| refused(peer, path, denied))
}

impl<'c> Asker<'c> {
    /// Checks that the caller may work in a namespace as a whole: nobody does in one that the server keeps
    /// for itself.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub fn allow_work(&self, namespace: &str) -> Result<(), CallError> {
        let decided = match is_kept(namespace) {
            true => check_kept(self.caller, Right::Receive, namespace),
            false => self.caller.known(),
        };
        decided.map_err(|denied| refused(self.peer, self.path, denied))
    }

    /// The permit of a call, as by [`Asker::permit`], or `None`; a refusal is neither logged nor counted,
    /// since the request is then handled another way.
    pub fn permitted(self, asked: CallName<'c>) -> Option<Permit<'c>> {
        let (namespace, target) = asked.target();
        decide(self.caller, asked.operation.right(), namespace, target).ok()?;
        let permit = Permit { asker: self, asked, proposes: false };
        permit.namespace_id().ok().map(|_| permit)
    }

    /// Checks that the caller may do what is asked for, as far as its name tells.
    ///
    /// # Errors
    /// `forbidden`, `unauthenticated`, or `rate_limited`.
    pub fn permit(self, asked: CallName<'c>) -> Result<Permit<'c>, CallError> {
        let (namespace, target) = asked.target();
        let decided = match decide(self.caller, asked.operation.right(), namespace, target) {
            Ok(()) => Ok(false),
            // What its messages have to be is checked when they are read.
            Err(_)
                if asked.may_propose() && decide(self.caller, Right::Propose, namespace, target).is_ok() =>
            {
                Ok(true)
            }
            Err(denied) => Err(denied),
        };
        let proposes = decided.map_err(|denied| refused(self.peer, self.path, denied))?;
        Ok(Permit { asker: self, asked, proposes })
    }
}

impl<'c> CallName<'c> {
    /// True for calls that put messages into the queue that they name.
    fn may_propose(&self) -> bool {
        self.operation.right() == Right::Send && self.operation.subject() == Subject::Queue
    }

    /// The namespace that it is about or in, and what the right is needed at.
    fn target(&self) -> (Option<&'c str>, Target<'c>) {
        let namespace = match self.operation.scope() {
            Scope::Namespaced => self.namespace.unwrap_or(DEFAULT_NAMESPACE),
            Scope::Namespace => self.name,
            Scope::Server => return (None, Target::Server),
        };
        let target = match self.operation.subject() {
            Subject::Server => Target::Server,
            Subject::Namespace => Target::Namespace(namespace),
            Subject::Queue => Target::Queue(namespace, self.name),
            Subject::SomeQueue => Target::SomeQueue(namespace),
            Subject::Key => Target::Key(namespace, self.name),
            Subject::SomeKey => Target::SomeKey(namespace),
        };
        (Some(namespace), target)
    }
}

fn refused(peer: &Peer, path: &str, denied: Denied) -> CallError {
    peer.refused(&denied, path);
    denied.into()
}

impl<'c> Permit<'c> {
    /// The operation that it is for.
    pub fn operation(&self) -> Operation {
        self.asked.operation
    }

    /// The queue, message id, limit, schedule or namespace that the call names; empty if none.
    pub fn name(&self) -> &'c str {
        self.asked.name
    }

    /// Name of the namespace that the call is in.
    pub fn namespace_name(&self) -> &'c str {
        self.asked.namespace.unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The same, unless it is the default one without being named.
    pub(crate) fn named_namespace(&self) -> Option<&'c str> {
        self.asked.namespace
    }

    /// The caller.
    pub fn caller(&self) -> &'c Caller {
        self.asker.caller
    }

    /// The connection over which they ask.
    pub(crate) fn peer(&self) -> &'c Peer {
        self.asker.peer
    }

    /// The path or method that is called.
    pub fn path(&self) -> &'c str {
        self.asker.path
    }

    /// The server.
    pub fn calls(&self) -> &'c Calls {
        self.asker.calls
    }

    /// Resolves when nothing is to be waited for any more: the server stops, or the node that has passed the
    /// call on.
    pub async fn stopping(&self) {
        if !self.asker.peer.is_answered_at_once() {
            self.calls().stopping().await;
        }
    }

    /// The node, whose reads are as old as the caller allows.
    pub(crate) fn node(&self) -> &'c Node {
        match self.asked.is_stale {
            true => self.asker.calls.stale_node(),
            false => self.asker.calls.node(),
        }
    }

    pub(crate) fn room(&self) -> &'c dyn AnswerRoom {
        self.asker.room
    }

    /// Number of the namespace that the call is in.
    pub(crate) fn namespace_id(&self) -> Result<NamespaceId, Error> {
        match self.asked.namespace {
            None => Ok(NamespaceId::DEFAULT),
            Some(name) => self.node().namespace_id(name),
        }
    }

    /// Checks the form of the message id that a change names, before its body is read.
    ///
    /// # Errors
    /// `invalid_message_id`.
    pub fn check_name(&self) -> Result<(), Error> {
        let operation = self.operation();
        match operation.is_query() || operation.http().captured() != Some("id") {
            true => Ok(()),
            false => self.name().parse::<MessageId>().map(drop),
        }
    }

    /// Parses an id and checks that it is one of the namespace: an id is no way around namespaces.
    pub(crate) fn message_id(&self, text: &str) -> Result<MessageId, Error> {
        let id: MessageId = text.parse()?;
        match id.namespace == self.namespace_id()? {
            true => Ok(id),
            false => Err(Error::MessageNotFound { id: id.to_string() }),
        }
    }

    /// The permit of the same request for another caller: who they are by now.
    pub(crate) fn as_caller(self, caller: &'c Caller) -> Permit<'c> {
        Permit { asker: Asker { caller, ..self.asker }, ..self }
    }

    /// The permit of the same call in another namespace.
    ///
    /// # Errors
    /// As of [`Asker::permit`].
    pub(crate) fn within<'n>(self, namespace: &'n str) -> Result<Permit<'n>, CallError>
    where
        'c: 'n,
    {
        match namespace == self.namespace_name() {
            true => Ok(self),
            false => self.asker.permit(CallName { namespace: Some(namespace), ..self.asked }),
        }
    }

    /// True if the caller has a right in every queue of the namespace.
    pub(crate) fn may_everywhere(&self, right: Right) -> bool {
        self.caller().may_everywhere(right, self.namespace_name())
    }

    /// True if the caller has a right in a queue of the namespace.
    pub fn may_queue(&self, right: Right, queue: &str) -> bool {
        self.caller().may(right, Target::Queue(self.namespace_name(), queue)).is_ok()
    }

    /// Checks a right in a queue that the request does not name.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) fn allow_queue(&self, right: Right, queue: &str) -> Result<(), CallError> {
        let target = Target::Queue(self.namespace_name(), queue);
        self.caller().may(right, target).map_err(|denied| self.refused(denied))
    }

    /// True if the permit is for messages that are held until a person approves them, and no others.
    pub(crate) fn proposes(&self) -> bool {
        self.proposes
    }

    /// Checks that the caller may send a message to a queue: any message, or one that a person has to
    /// approve before it is delivered.
    ///
    /// # Errors
    /// `forbidden`, `unauthenticated`, or `approval_needed`.
    pub(crate) fn allow_send(&self, queue: &str, item: &SendItem<'_>) -> Result<(), CallError> {
        let target = Target::Queue(self.namespace_name(), queue);
        let Err(denied) = self.caller().may(Right::Send, target) else { return Ok(()) };
        match self.caller().may(Right::Propose, target) {
            Err(_) => Err(self.refused(denied)),
            Ok(()) if is_proposal(item) => Ok(()),
            Ok(()) => Err(self.refused(Denied::approval_needed(self.caller().name(), target))),
        }
    }

    /// True if the caller has a right with a key of the namespace.
    pub(crate) fn may_key(&self, right: Right, key: &str) -> bool {
        self.caller().may(right, Target::Key(self.namespace_name(), key)).is_ok()
    }

    /// Checks a right with a key that the request does not name.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) fn allow_key(&self, right: Right, key: &str) -> Result<(), CallError> {
        let target = Target::Key(self.namespace_name(), key);
        self.caller().may(right, target).map_err(|denied| self.refused(denied))
    }

    /// Checks a right with some key of the namespace.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) fn allow_some_key(&self, right: Right) -> Result<(), CallError> {
        let target = Target::SomeKey(self.namespace_name());
        self.caller().may(right, target).map_err(|denied| self.refused(denied))
    }

    /// Checks a right with some queue of the namespace.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) fn allow_some_queue(&self, right: Right) -> Result<(), CallError> {
        let target = Target::SomeQueue(self.namespace_name());
        self.caller().may(right, target).map_err(|denied| self.refused(denied))
    }

    /// Checks that the caller may work in the namespace as a whole, as [`Asker::allow_work`] does.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) fn allow_work(&self) -> Result<(), CallError> {
        self.asker.allow_work(self.namespace_name())
    }

    /// Checks that the caller may do anything that a transaction does, before anything is looked up.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) fn allow_some_work(&self) -> Result<(), CallError> {
        self.require_known()?;
        self.allow_work()?;
        let sends = self.allow_some_queue(Right::Send).or_else(|_| self.allow_some_queue(Right::Receive));
        sends
            .or_else(|_| self.allow_some_key(Right::Read))
            .or_else(|_| self.allow_some_key(Right::Coordinate))
    }

    /// Checks a right with messages, by the queues that they are in now. Messages that are gone need none.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub(crate) async fn allow_messages(
        &self,
        right: Right,
        ids: impl Iterator<Item = MessageId>,
    ) -> Result<(), CallError> {
        if self.may_everywhere(right) {
            return Ok(());
        }
        let namespace = self.namespace_id()?;
        let ids: Vec<MessageId> = ids.filter(|id| id.namespace == namespace).collect();
        for queue in self.node().queues_of(namespace, &ids).await? {
            self.allow_queue(right, &queue)?;
        }
        Ok(())
    }

    /// Checks that the caller has shown who they are, if anybody has to.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub(crate) fn require_known(&self) -> Result<(), CallError> {
        require_known(self.asker.peer, self.caller(), self.path())
    }

    /// The caller's standing, for what goes on after this request could have been refused.
    pub fn standing(&self, right: Right, waited: impl FnOnce() -> Waited) -> Standing {
        Standing::new(self.asker.peer, self.asker.authorization, right, self.namespace_name(), waited)
    }

    fn refused(&self, denied: Denied) -> CallError {
        refused(self.asker.peer, self.path(), denied)
    }
}

/// True for a message that is held, and neither changes another one nor keeps it back: who approves has seen
/// what they approve, and nobody else waits for it.
fn is_proposal(item: &SendItem<'_>) -> bool {
    let stands_alone =
        |options: &SendOptions<'_>| options.unique.is_none() && options.ordering_key.is_empty();
    item.options.is_some_and(|options| options.hold && stands_alone(options))
}
