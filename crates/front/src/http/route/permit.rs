//! Asking the access module: who calls, and whether they may.

use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Peer, Right};
use sluice_engine::{Error, MessageId};

use super::call::Call;
use super::table::{Captured, Operation, Route};
use crate::hot::permission::{Asking, Scope, Standing, decide, refused, require_known};

/// Who sends this request.
pub(crate) fn identify(peer: &Peer, head: &Parts, route: &Route) -> Result<Caller, CallError> {
    if !peer.is_asked() {
        return Ok(Caller::Anybody);
    }
    if route.operation.is_public() {
        return Ok(Caller::Nobody);
    }
    let authorization = head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let caller = peer.caller(authorization, route.operation.relieves());
    caller.map_err(|denied| refused(peer, head.uri.path(), denied))
}

/// Whether they may do this, as far as the path tells.
pub(crate) fn permit(
    peer: &Peer,
    head: &Parts,
    caller: &Caller,
    route: &Route,
    captured: &Captured<'_>,
) -> Result<(), CallError> {
    let decided = decide(caller, route.right, route.namespace(captured), route.target(captured));
    decided.map_err(|denied| refused(peer, head.uri.path(), denied))
}

impl Operation {
    /// Whether it is for everybody, whoever they are: nobody is even asked.
    fn is_public(self) -> bool {
        matches!(self, Operation::Health | Operation::Ready | Operation::OpenApi | Operation::Docs)
    }
}

impl<'c> Call<'c> {
    /// Who waits for an answer of this call.
    pub(crate) fn standing(&self, right: Right, scope: impl FnOnce() -> Scope) -> Standing {
        let authorization = self.head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        Standing::new(self.peer, authorization, right, self.namespace_name(), scope)
    }

    /// Who asks for what else the call names.
    pub(crate) fn asking(&self) -> Asking<'c> {
        let (peer, caller, what) = (self.peer, self.caller, self.head.uri.path());
        Asking { peer, caller, namespace: self.namespace_name(), what }
    }

    /// Whether the caller may do this in every queue of the namespace.
    pub(crate) fn may_everywhere(&self, right: Right) -> bool {
        self.caller.may_everywhere(right, self.namespace_name())
    }

    /// Whether the caller may do this in a queue that is not the one of the path.
    pub(crate) fn allow_queue(&self, right: Right, queue: &str) -> Result<(), CallError> {
        self.asking().allow_queue(right, queue)
    }

    /// Whether the caller may do this with messages: see [`Asking::allow_messages`].
    pub(crate) async fn allow_messages(
        &self,
        right: Right,
        ids: impl Iterator<Item = MessageId>,
    ) -> Result<(), CallError> {
        self.asking().allow_messages(self.node(), self.namespace_id()?, right, ids).await
    }

    /// Whether the caller may send to the queue that dead letters of `queue` move to, if they do.
    pub(crate) async fn allow_dead_letters(&self, queue: &str) -> Result<(), CallError> {
        if self.may_everywhere(Right::Send) {
            return Ok(());
        }
        match self.node().queue(self.namespace_id()?, queue).await {
            Ok(view) if view.settings.dead_letter_queue.is_empty() => Ok(()),
            Ok(view) => self.allow_queue(Right::Send, &view.settings.dead_letter_queue),
            // Nothing is moved from a queue that is not there.
            Err(Error::QueueNotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the caller has shown who they are, if anybody has to.
    pub(crate) fn require_caller(&self) -> Result<(), CallError> {
        require_known(self.peer, self.head.uri.path(), self.caller)
    }
}
