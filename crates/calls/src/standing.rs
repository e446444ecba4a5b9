//! The standing of a caller that waits or reads a stream: the right is checked again whenever the rules
//! change, and the wait or stream ends when it is lost.

use std::sync::Arc;

use crate::access::{Caller, Denied, Peer, Right, Target, decide};

/// A caller's credential, and the right that it keeps needing.
#[derive(Debug)]
pub struct Standing {
    peer: Arc<Peer>,
    /// `None`: the server required no authentication.
    claim: Option<Box<Claim>>,
}

#[derive(Debug)]
struct Claim {
    authorization: Option<Box<[u8]>>,
    right: Right,
    namespace: Box<str>,
    waited: Waited,
}

/// The part of a namespace that a caller waits for.
#[derive(Clone, Debug)]
pub enum Waited {
    /// All of it.
    Whole,
    /// These queues.
    Queues(Box<[Box<str>]>),
    /// A message in some queue.
    Message,
    /// The keys that it may have.
    SomeKey,
    /// Locks of these keys.
    Keys(Box<[Box<str>]>),
}

impl Waited {
    /// The queues with these names.
    pub fn queues<'q>(names: impl Iterator<Item = &'q str>) -> Waited {
        Waited::Queues(names.map(Box::from).collect())
    }
}

impl Standing {
    /// The standing of a caller with this proof, or with the certificate of the connection.
    pub fn new(
        peer: &Arc<Peer>,
        authorization: Option<&[u8]>,
        right: Right,
        namespace: &str,
        waited: impl FnOnce() -> Waited,
    ) -> Standing {
        let claim = peer.is_asked().then(|| {
            let authorization = authorization.map(Box::from);
            Box::new(Claim { authorization, right, namespace: namespace.into(), waited: waited() })
        });
        Standing { peer: Arc::clone(peer), claim }
    }

    /// Checks that the caller still may have what they wait for; tells who they are by now.
    ///
    /// # Errors
    /// Why they may not.
    pub fn check(&self) -> Result<Caller, Denied> {
        let Some(claim) = &self.claim else {
            return match self.peer.is_asked() {
                false => Ok(Caller::Anybody),
                true => Err(Denied::unauthenticated(
                    "this server requires authentication from now on: repeat the request with credentials",
                )),
            };
        };
        let Claim { authorization, right, namespace, waited } = &**claim;
        let caller = self.peer.standing(authorization.as_deref())?;
        let may = |target| decide(&caller, *right, Some(namespace), target);
        match waited {
            Waited::Whole => may(Target::Namespace(namespace))?,
            Waited::Message => may(Target::SomeQueue(namespace))?,
            Waited::SomeKey => may(Target::SomeKey(namespace))?,
            Waited::Keys(keys) => keys.iter().try_for_each(|key| may(Target::Key(namespace, key)))?,
            Waited::Queues(queues) => {
                queues.iter().try_for_each(|queue| may(Target::Queue(namespace, queue)))?;
            }
        }
        Ok(caller)
    }

    /// Resolves, with the reason, when the caller may not have it any more.
    pub async fn lost(&self) -> Denied {
        // Before the look, so that no change is missed after it.
        let mut changes = self.peer.changes();
        loop {
            let caller = match self.check() {
                Ok(caller) => caller,
                Err(denied) => return denied,
            };
            tokio::select! {
                // Never an error: the peer holds the sender.
                _ = changes.changed() => {}
                () = caller.expired() => {}
            }
        }
    }
}
