//! The calls of Sluice: what can be asked of a server, in types, without any protocol's bytes.
//!
//! What lives here: the operations, who may do them, the errors they answer with, and the handle to the node.
//! What does not: bytes of a protocol, connections and heads of requests (`front`), and any rule about queues
//! and messages (`engine`).
//!
//! Map: [`operation`] the table of operations; [`permit`], [`access`] and [`standing`] authorisation;
//! `leading` the node that answers a call; [`call`] the trait of a call with one answer and the codec of a
//! protocol, [`unary`] the list of these calls; one module for each topic of calls ([`queues`],
//! [`messages`], [`schedules`], …); [`hot`] the calls that move messages, [`digest`] the fingerprint of a
//! send that tells a repeat from a misuse of its idempotency key; [`value`], [`settings`] and [`payload`]
//! the types of fields, `schema` their schemas; [`error`], [`fault`] and [`codes`] errors, faults in
//! requests, and the status of each code in every protocol, [`near`] suggestions for unknown names;
//! [`neighbour`] the server as other nodes ask it, `view` its view of its shards, [`passed`] requests that it
//! passes on to them; [`server`] the server behind all calls, [`room`] the memory for their answers; `system`
//! the lists that a server keeps, [`roster`] those of a cluster.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod attachments;
pub mod bulk;
pub mod call;
pub mod changes;
pub mod cluster;
pub mod cluster_limits;
pub mod codes;
pub mod consumers;
pub mod dead;
pub mod digest;
pub mod documents;
pub mod error;
pub mod events;
pub mod fault;
mod figure_feeds;
pub mod figures;
pub mod finalize;
pub mod flows;
pub mod groups;
pub mod health;
pub mod hot;
pub mod keys;
mod leading;
pub mod limits;
pub mod locks;
pub mod membership;
pub mod messages;
pub mod namespaces;
pub mod near;
pub mod neighbour;
mod open_transactions;
pub mod operation;
pub mod passed;
pub mod payload;
pub mod permit;
pub mod policy;
pub mod pushes;
pub mod queue_defaults;
pub mod queues;
pub mod results;
pub mod room;
pub mod roster;
pub mod schedules;
mod schema;
pub mod server;
pub mod settings;
pub mod standing;
pub mod statistics;
pub mod status;
mod system;
pub mod test_time;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used)] // Only tests call it.
pub mod testing;
pub mod time;
pub mod tokens;
pub mod transactions;
pub mod unary;
pub mod value;
mod view;
mod wording;

pub use call::{Codec, Done, Noted, Unary};
pub use error::CallError;
pub use fault::{Fault, Read};
pub use leading::LEADER_WAIT_MAX;
pub use operation::Operation;
pub use permit::{Asker, CallName, Permit};
pub use server::Calls;
