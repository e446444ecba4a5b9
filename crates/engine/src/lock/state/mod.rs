//! State of locks, and its layout in a snapshot: a *claim* is what one caller asks for or holds, a *place*
//! is its part in one key, and a *lock* is a key with the places of its holders and of those that wait.

pub(crate) mod claim;
pub(crate) mod lock;
pub(crate) mod place;

use crate::store::slot::Slot;

pub(crate) type ClaimSlot = Slot<claim::Claim>;
pub(crate) type LockSlot = Slot<lock::Lock>;
pub(crate) type PlaceSlot = Slot<place::Place>;
