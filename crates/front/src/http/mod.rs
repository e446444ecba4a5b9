//! The HTTP API: HTTP/1.1 and HTTP/2, over TLS or in clear text, JSON in and out, as `docs/api.md` describes it.
//!
//! The way of a request: `server` accepts, `connection` speaks HTTP/1.1 or HTTP/2 and ends who is idle or slow, `dispatch` finds the
//! route in the one table of `routes`, asks by `permit` whether the caller may, and calls its handler (`send`, `receive`,
//! `settle`, `raw`, `events`, `queues`, `messages`, `dead`, `namespaces`, `admin`, `tokens`, `prometheus`), which reads the body within the
//! bounds of `body`, decodes it with `json`, calls the node and writes the answer; `answers` counts the memory that they take until they are read,
//! `in_flight` holds them. `arrived` is what a request carries along; `acts` finishes those that
//! are administrative though their callers are gone. Sends, receives and settles over HTTP/2 that go well take a short way, `direct`.
//! `errors` turns errors into answers, `error_log` logs those of the server, `compression` makes some of them
//! smaller, `openapi` describes it all.
//!
//! Fault model: a client may send anything, at any speed, and vanish at any time. It can then lose its own connection, but no
//! message, and no more memory than `options` allows.

mod acts;
mod admin;
pub(crate) mod answers;
pub(crate) mod arrived;
pub(crate) mod body;
mod bulk;
pub(crate) mod call;
mod changes;
mod compression;
pub(crate) mod connection;
mod consumers;
mod content;
pub(crate) mod context;
mod dead;
mod direct;
pub(crate) mod dispatch;
mod document;
pub(crate) mod error_log;
pub(crate) mod errors;
pub(crate) mod events;
pub(crate) mod extend;
mod flows;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod groups;
mod hosts;
pub(crate) mod in_flight;
pub(crate) mod json;
mod keys;
mod limits;
mod messages;
mod metrics;
mod namespaces;
mod openapi;
mod options;
mod parameters;
pub(crate) mod permit;
mod prometheus;
mod query;
mod query_de;
mod queue_defaults;
mod queues;
mod raw;
pub(crate) mod receive;
mod respond;
mod results;
pub(crate) mod routes;
mod schedules;
pub(crate) mod send;
mod send_options;
mod server;
mod setting_kinds;
mod settings;
pub(crate) mod settle;
mod tokens;
mod well_formed;

pub use compression::Compression;
pub use hosts::Hosts;
pub use openapi::openapi;
pub use options::HttpOptions;
pub use receive::WEIGHT_MAX;
pub use send::MESSAGE_FIELDS;
pub use server::{Stopped, serve};
