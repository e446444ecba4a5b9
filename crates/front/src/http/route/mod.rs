//! From the path of a request to a call: the one [`table`] of routes, what is asked before anything is read
//! ([`admit`], [`permit`]), and what a handler gets ([`call`]).

pub(crate) mod admit;
pub(crate) mod call;
pub(crate) mod permit;
pub(crate) mod table;
