//! Locks: how they are asked for, and by what their holders are known.

use crate::id::NamespaceId;
pub use crate::id::{LockTicket, LockToken};

/// The ways in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LockMode {
    /// By one holder.
    #[default]
    Exclusive,
    /// By any number of holders that share it, up to [`crate::limits::LOCK_HOLDERS_MAX`].
    Shared,
    /// By as many holders as this one allows.
    Counting {
        /// Largest number of holders, this one among them: 1 to [`crate::limits::LOCK_HOLDERS_MAX`].
        holders: u16,
    },
}

impl LockMode {
    /// The names used in every API, in the order of declaration.
    pub const NAMES: &[&str] = &["exclusive", "shared", "counting"];

    /// The name used in every API.
    pub fn name(self) -> &'static str {
        LockMode::NAMES[match self {
            LockMode::Exclusive => 0,
            LockMode::Shared => 1,
            LockMode::Counting { .. } => 2,
        }]
    }
}

/// Asks for locks of one or several keys, all or none.
///
/// It is granted when no other waits for one of the keys and their holders leave room. Else it waits in the
/// line of each key, behind all that came before, and holds none of them meanwhile. Two that wait for some
/// keys in common stand in the same order in all of their lines, so they never wait for each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LockAcquire<'a> {
    /// Namespace of the keys.
    pub namespace: NamespaceId,
    /// Keys, each once; at most [`crate::limits::LOCK_KEYS_MAX`].
    pub keys: &'a [&'a str],
    /// Name of who asks, for those who look; may be empty, and need not be its alone.
    pub owner: &'a str,
    /// Way in which it will hold them.
    pub mode: LockMode,
    /// Time for which it holds them unless it renews, in milliseconds.
    pub ttl_ms: u32,
    /// Time for which it waits unless it says that it still does, in milliseconds; 0: it does not wait.
    pub wait_ms: u32,
    /// True: it is granted only if nobody holds one of the keys or waits for it, whatever the mode; it does
    /// not wait.
    pub if_absent: bool,
    /// Digest of the request: one with the same digest that waits or holds is this one. Zero: none is.
    pub request: [u64; 2],
}

/// A grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockGrant {
    /// Its token.
    pub token: LockToken,
    /// When it ends unless it is renewed, in microseconds since the Unix epoch.
    pub until_us: u64,
    /// Number of times that it was asked for by the same request; wraps around.
    pub calls: u16,
}

impl LockGrant {
    /// Its claim.
    pub fn claim(&self) -> LockTicket {
        LockTicket { number: self.token.number, slot: self.token.slot }
    }
}

/// The end of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockNotice {
    /// The claim.
    pub ticket: LockTicket,
    /// Its grant, which ends within [`crate::limits::LOCK_TAKE_MS`] unless it is renewed, since nobody may be
    /// there to take it; `None`: it waits no more.
    pub grant: Option<LockGrant>,
}

/// A lock as those see it who look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockView {
    /// Its key.
    pub key: String,
    /// Holders in the order of their grants, as many as were asked for.
    pub holders: Vec<LockHolderView>,
    /// Number of holders.
    pub holder_count: u32,
    /// Waiting claims in their order, as many as were asked for.
    pub waiters: Vec<LockWaiterView>,
    /// Number of those that wait.
    pub waiter_count: u32,
}

/// A holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockHolderView {
    /// Name that it gave; may be empty.
    pub owner: String,
    /// Way in which it holds the lock.
    pub mode: LockMode,
    /// Fencing token as a number: it proves nothing.
    pub number: u64,
    /// When its grant ends unless it is renewed, in microseconds since the Unix epoch.
    pub until_us: u64,
    /// Number of keys that the grant is for.
    pub keys: u32,
}

/// A claim that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWaiterView {
    /// Name that it gave; may be empty.
    pub owner: String,
    /// Way in which it will hold the lock.
    pub mode: LockMode,
    /// Number of keys that it waits for.
    pub keys: u32,
}
