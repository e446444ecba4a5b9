//! The module of queues: messages, and all that may happen to them.

pub(crate) mod change;
pub(crate) mod consumer;
pub(crate) mod dead;
pub(crate) mod delivery;
pub(crate) mod expiry;
pub(crate) mod fair;
pub(crate) mod flow;
pub(crate) mod limit;
pub(crate) mod message;
pub(crate) mod ordering;
pub(crate) mod schedule;
pub(crate) mod send;
pub(crate) mod unique;
