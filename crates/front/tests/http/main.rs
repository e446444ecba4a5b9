//! The HTTP front through real sockets. Every JSON answer is held against the API description on the way.

#![allow(clippy::unwrap_used)]

mod access;
mod answers;
mod approvals;
mod attachments;
mod audit;
mod banned;
mod bounds;
mod changing;
mod client;
mod consumers;
mod description;
mod events;
mod flows;
mod forwarding;
mod hot_calls;
mod limits;
mod looking;
mod malformed;
mod memory;
mod mistakes;
mod moving;
mod one_queue;
mod policy;
mod results;
mod schedules;
mod schema;
mod shutdown;
mod slow_clients;
mod support;
mod tls;
mod tls_support;
mod versions;
mod waits;
