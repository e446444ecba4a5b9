//! The rules of the hot calls (send, receive, settle and extend) that hold in every protocol: who may
//! ([`permission`]), and what the node is asked ([`send`], [`receive`], [`settle`]). No bytes of a protocol.

pub(crate) mod permission;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod settle;
