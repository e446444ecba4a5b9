//! Checks of a request's head, for every protocol: [`well_formed`], from a page of this server if it is from
//! a page ([`origin`]), and to one of this server's names ([`hosts`]).

pub(crate) mod hosts;
pub(crate) mod origin;
pub(crate) mod well_formed;
