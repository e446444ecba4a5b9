//! Limits: how many messages may be in flight, and how fast they may be delivered, overall and per limit key.
//!
//! - `set`: limits come, change and go, and queues take and leave them.
//! - `gate`: whether a message may go on, and what a delivery and its end do to the figures.
//! - `lines`: the lines in which messages of one queue and key stand, and which of them go on when there is
//!   room.
//! - `wake`: what happens when a place was freed or a time has come.
//! - `view`: what can be read.
//!
//! An overall limit is looked at when a queue is asked for a message: one that is used up gives none. So its
//! messages stay ready, and a place that is freed wakes all queues which share it.
//!
//! A limit per key lets as many messages of a key into the ready ones of a queue as might begin now; the
//! others are blocked, and wait on the key's line in the order in which they came, whatever their priority.
//! Each queue has a line of its own, so that a queue which nobody empties keeps no places of a key from the
//! others. Two queues may therefore have more ready messages of one key than may begin: what turns out to be
//! too much goes back to the front of its line when it is met.
//!
//! Rates count what deliveries cost, and a delivery begins as long as anything is left, however much it
//! costs: it then leaves debt, as do costs that its holder reports, and the next one waits until that is paid
//! off. So a limit spends at most what it allows, and the cost of one delivery, and what was reported. A
//! message that costs nothing waits in the same line as the others, for nothing passes a limit that is used
//! up.
//!
//! A line without messages is idle: it stays with its key for a while, so that the next message finds both.
//! Nobody is told of a key whose lines are all idle, unless its rate remembers deliveries.
//!
//! What keys have spent is reckoned anew for other rules when the look through all keys comes to them, or
//! when they are used before. Until then the limit keeps the rates that were in force meanwhile.
//!
//! Lines follow their queue from limit to limit, with what is in flight: at once those that are used, the
//! others in slices.

/// The behaviour version since which messages and reports have costs.
pub(crate) const COSTS_SINCE: u16 = 14;

/// The behaviour version since which what was spent stays so under another rate, and a queue that has left
/// its limit spends nothing there.
pub(crate) const SPENT_STAYS_SINCE: u16 = 17;

pub(crate) mod gate;
pub(crate) mod lines;
pub(crate) mod recount;
pub(crate) mod set;
pub(crate) mod view;
pub(crate) mod wake;
