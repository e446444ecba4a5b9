//! The client of a connection, and the callers of its requests.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{SetOnce, watch};

use super::clients::Clients;
use super::identity::{Caller, Denied, Identity, Proof};
use super::policy::Policy;
use super::tokens::id_of;
use super::{Access, ClientCertificate, ConnectionSlot, Rules};

/// Within so many milliseconds, further uses of a token are not noted.
const LAST_USED_COARSE_MS: u64 = 60_000;

/// The other end of a connection: where it is, and the certificate that it has shown; or a client of another
/// node of the cluster, which has passed on its request.
pub struct Peer {
    access: Access,
    slot: ConnectionSlot,
    certificate: Option<Shown>,
    role: Role,
    seen: Mutex<Option<Seen>>,
    /// Set when its address is turned away for what it has failed in.
    turned_away: SetOnce<()>,
}

/// The certificate that a client has shown.
struct Shown {
    der: Box<[u8]>,
    read: Result<ClientCertificate, String>,
}

/// Whom the requests of a peer are from.
enum Role {
    /// From itself.
    Client,
    /// From clients of this node of the cluster, for which it speaks.
    Node(Clients<Peer>),
    /// From itself, passed on by a node.
    Forwarded(Forwarded),
}

/// The way in which a node passes a request on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Forwarded {
    /// True: for the last time. False: by a node that may have taken this one for the leader.
    pub is_last: bool,
    /// True: by a node that stops, so that the request is answered without a wait.
    pub at_once: bool,
}

/// The identity of the connection's certificate by the rules of one generation.
struct Seen {
    generation: u64,
    rules: Arc<Rules>,
    /// Identity of the certificate; `None`: there is no certificate.
    by_certificate: Option<Result<Arc<Identity>, String>>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Peer {
    /// A client whose connection has this slot and, if it presented one, this certificate in DER.
    pub fn new(access: &Access, slot: ConnectionSlot, certificate: Option<&[u8]>) -> Peer {
        Peer::in_role(access, slot, certificate, Role::Client)
    }

    /// Another node of the cluster, which speaks for its clients.
    pub fn node(access: &Access, slot: ConnectionSlot) -> Peer {
        Peer::in_role(access, slot, None, Role::Node(Clients::default()))
    }

    fn in_role(access: &Access, slot: ConnectionSlot, certificate: Option<&[u8]>, role: Role) -> Peer {
        let shown = |der: &[u8]| Shown { der: der.into(), read: ClientCertificate::read(der) };
        Peer {
            access: access.clone(),
            slot,
            certificate: certificate.map(shown),
            role,
            seen: Mutex::default(),
            turned_away: SetOnce::new(),
        }
    }

    /// True for another node of the cluster.
    pub fn is_node(&self) -> bool {
        matches!(self.role, Role::Node(_))
    }

    /// True for a client whose requests another node has passed on.
    pub fn is_forwarded(&self) -> bool {
        self.forwarded().is_some()
    }

    /// True for a client whose requests are not passed on any more.
    pub fn is_forwarded_last(&self) -> bool {
        self.forwarded().is_some_and(|forwarded| forwarded.is_last)
    }

    /// True for a client whose requests are answered without a wait.
    pub fn is_answered_at_once(&self) -> bool {
        self.forwarded().is_some_and(|forwarded| forwarded.at_once)
    }

    fn forwarded(&self) -> Option<Forwarded> {
        match self.role {
            Role::Forwarded(forwarded) => Some(forwarded),
            Role::Client | Role::Node(_) => None,
        }
    }

    /// The client with this address and certificate in DER, for which this node of the cluster speaks in this
    /// way. `None`: this peer speaks for nobody.
    pub fn client(
        &self,
        address: IpAddr,
        certificate: Option<&[u8]>,
        forwarded: Forwarded,
    ) -> Option<Arc<Peer>> {
        let Role::Node(clients) = &self.role else { return None };
        let is_it = |peer: &Peer| peer.certificate() == certificate && peer.forwarded() == Some(forwarded);
        let new = || self.new_client(address, certificate, Role::Forwarded(forwarded));
        Some(clients.find(address, Peer::is_turned_away, is_it, new))
    }

    fn new_client(&self, address: IpAddr, certificate: Option<&[u8]>, role: Role) -> Peer {
        let slot = self.slot.of_client(address);
        let is_banned = slot.is_err();
        let slot = slot.unwrap_or_else(|_| self.slot.of_banned(address));
        let client = Peer::in_role(&self.access, slot, certificate, role);
        if is_banned {
            // Never set before.
            let _ = client.turned_away.set(());
        }
        client
    }

    /// The certificate that the client has shown, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.certificate.as_ref().map(|shown| &*shown.der)
    }

    /// The client's address.
    pub fn address(&self) -> IpAddr {
        self.slot.address()
    }

    /// True if the server requires authentication: it does from its first identity on.
    pub fn is_asked(&self) -> bool {
        self.access.asks()
    }

    /// Authenticates a request: by the value of its `Authorization` field if it has one, else by the
    /// connection's certificate. Counts as one request of the identity's rate, which hardly ever refuses one
    /// that `relieves` (settles, extends).
    ///
    /// # Errors
    /// `unauthenticated` when what was shown is wrong, expired or revoked; `rate_limited`.
    pub fn caller(&self, authorization: Option<&[u8]>, relieves: bool) -> Result<Caller, Denied> {
        let caller = self.standing(authorization)?;
        caller.asks_once_more(relieves)?;
        Ok(caller)
    }

    /// Authenticates the caller of something that goes on, as [`Peer::caller`] does, without counting a
    /// request.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn standing(&self, authorization: Option<&[u8]>) -> Result<Caller, Denied> {
        if !self.is_asked() {
            return Ok(Caller::Anybody);
        }
        if self.is_turned_away() {
            let message = "too many have failed to show who they are from this address: the connection ends";
            return Err(Denied::unauthenticated(message));
        }
        Ok(self.find(authorization)?.map_or(Caller::Nobody, Caller::Known))
    }

    /// Notes that this peer was refused: in the log, and against its address if it has not shown who it is.
    pub fn refused(&self, denied: &Denied, what: &str) {
        if denied.code == "unauthenticated" && self.slot.failed() {
            // Set before, where several failed at once.
            let _ = self.turned_away.set(());
        }
        if denied.code != "rate_limited" && self.access.shared.denials.take(false).is_ok() {
            tracing::warn!(address = %self.address(), code = denied.code, "{what}: {}", denied.message);
        }
    }

    /// Told of each change of what counts.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.access.shared.changes.subscribe()
    }

    /// Resolves when its address is turned away for what came over this connection, which has to end then.
    pub async fn turned_away(&self) {
        self.turned_away.wait().await;
    }

    /// True once its address is turned away.
    pub fn is_turned_away(&self) -> bool {
        self.turned_away.get().is_some()
    }

    fn find(&self, authorization: Option<&[u8]>) -> Result<Option<Arc<Identity>>, Denied> {
        let found = match authorization {
            Some(value) => Some(self.by_token(bearer(value)?)?),
            None => self.by_certificate()?,
        };
        match found {
            Some(identity) if identity.left().is_some_and(|left| left.is_zero()) => {
                let (name, kind) = (&*identity.name, identity.proof.kind());
                let expired =
                    format!("the {kind} of {name:?} has expired: ask an administrator for a new one");
                Err(Denied::unauthenticated(expired))
            }
            found => Ok(found),
        }
    }

    fn by_token(&self, text: &[u8]) -> Result<Arc<Identity>, Denied> {
        let unknown = || Denied::unauthenticated("the token is not one of this server's, or was revoked");
        let id = id_of(text).ok_or_else(|| {
            Denied::unauthenticated("that is no token: expected one as `sluice token create` prints it")
        })?;
        let rules = self.with_seen(|seen| Arc::clone(&seen.rules));
        let known = rules.tokens.get(id).filter(|known| known.token.is(text)).ok_or_else(unknown)?;
        let (now_ms, used_ms) = (known.identity.clock.now_ms(), &known.token.last_used_ms);
        if now_ms.saturating_sub(used_ms.load(Ordering::Relaxed)) > LAST_USED_COARSE_MS {
            used_ms.store(now_ms, Ordering::Relaxed);
        }
        Ok(Arc::clone(&known.identity))
    }

    fn by_certificate(&self) -> Result<Option<Arc<Identity>>, Denied> {
        let found = self.with_seen(|seen| seen.by_certificate.clone());
        found.transpose().map_err(Denied::unauthenticated)
    }

    /// Looks at what was found out, by the rules of now.
    fn with_seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *seen {
            Some(seen) if seen.generation == self.access.generation() => look(seen),
            slot => look(slot.insert(self.find_out())),
        }
    }

    fn find_out(&self) -> Seen {
        let (generation, rules) = self.access.rules();
        let by_certificate = self.shown_by(&rules.policy);
        Seen { generation, rules, by_certificate }
    }

    /// Identity of the certificate by a policy; `None`: there is no certificate.
    fn shown_by(&self, policy: &Policy) -> Option<Result<Arc<Identity>, String>> {
        self.certificate.as_ref().map(|shown| {
            let certificate = shown.read.as_ref().map_err(String::clone)?;
            if policy.revokes(&certificate.serial) {
                return Err(format!(
                    "the client certificate with serial number {} is revoked",
                    certificate.serial
                ));
            }
            Ok(Arc::new(self.access.identity_of_certificate(policy, certificate)))
        })
    }

    /// The caller of a request as they would be by another policy.
    ///
    /// # Errors
    /// A sentence that says why they would be nobody.
    pub(super) fn caller_by(&self, policy: &Policy, caller: &Caller) -> Result<Caller, String> {
        let Some(identity) = caller.identity() else { return Ok(caller.clone()) };
        let found = match identity.proof() {
            Proof::Certificate(_) => self.shown_by(policy).transpose()?,
            Proof::Token(id) => {
                let (_, rules) = self.access.rules();
                let known = rules.tokens.get(id);
                known.map(|known| Arc::new(self.access.identity_of_token(policy, &known.token)))
            }
        };
        Ok(found.map_or(Caller::Nobody, Caller::Known))
    }
}

/// The token in an `Authorization` field (RFC 6750 §2.1).
fn bearer(value: &[u8]) -> Result<&[u8], Denied> {
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => Ok(token.trim_ascii()),
        _ => {
            Err(Denied::unauthenticated("the Authorization field is not understood: expected `Bearer TOKEN`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;
    use crate::access::{AccessOptions, Guard, GuardOptions};

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI("sluice://client/billing".try_into().unwrap())];
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn asking() -> Access {
        Access::new(AccessOptions { certificates: true, ..AccessOptions::default() }).unwrap()
    }

    fn guard() -> Arc<Guard> {
        Arc::new(Guard::new(GuardOptions { failures_max: 2, ..GuardOptions::default() }))
    }

    #[test]
    fn a_client_of_a_node_is_known_by_its_own_certificate_and_address() {
        let (access, guard) = (asking(), guard());
        let node = Peer::node(&access, guard.enter([192, 0, 2, 9].into()).unwrap());
        let shown = certificate();
        let client_of = |shown, forwarded| node.client([192, 0, 2, 1].into(), shown, forwarded).unwrap();
        let first = Forwarded::default();
        let client = client_of(Some(&*shown), first);
        assert!(node.is_node() && !node.is_forwarded() && client.is_forwarded() && !client.is_node());
        assert_eq!(client.address(), IpAddr::from([192, 0, 2, 1]));
        assert_eq!(client.caller(None, false).unwrap().name(), "billing");
        assert!(Arc::ptr_eq(&client, &client_of(Some(&shown), first)));
        let last = client_of(Some(&shown), Forwarded { is_last: true, ..first });
        assert!(last.is_forwarded_last() && last.is_forwarded() && !client.is_forwarded_last());
        let at_once = client_of(Some(&shown), Forwarded { at_once: true, ..first });
        assert!(
            at_once.is_answered_at_once() && !client.is_answered_at_once() && !at_once.is_forwarded_last()
        );
        let without = client_of(None, first);
        assert!(matches!(without.caller(None, false), Ok(Caller::Nobody)));
        assert!(client.client([192, 0, 2, 2].into(), None, first).is_none(), "a client speaks for nobody");
        let unreadable = client_of(Some(b""), first);
        assert_eq!(unreadable.caller(None, false).unwrap_err().code, "unauthenticated");
    }

    #[test]
    fn the_failures_of_a_client_are_not_those_of_its_node() {
        let (access, guard) = (asking(), guard());
        let node = Peer::node(&access, guard.enter([192, 0, 2, 9].into()).unwrap());
        let client = || node.client([192, 0, 2, 1].into(), None, Forwarded::default()).unwrap();
        for _ in 0..2 {
            client().refused(&Denied::unauthenticated("wrong"), "a test");
        }
        assert!(client().is_turned_away());
        assert!(!node.is_turned_away());
        assert!(guard.enter([192, 0, 2, 1].into()).is_err());
        assert!(guard.enter([192, 0, 2, 9].into()).is_ok());
    }
}
