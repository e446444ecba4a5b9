//! The memory that requests take, in bytes: [`bodies`] what clients send, [`answers`] what they have not read
//! yet; each within a bound, the second by a [`budget`] of the server and one of each connection.

pub(crate) mod answers;
pub(crate) mod bodies;
pub(crate) mod budget;
