//! From the path of a request to a call: the [`table`] of routes, and what a handler gets ([`call`]).

pub(crate) mod call;
pub(crate) mod table;
