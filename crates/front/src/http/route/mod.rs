//! Routing: the [`table`] of routes, and the [`call`] that a handler gets.

pub(crate) mod call;
pub(crate) mod table;
