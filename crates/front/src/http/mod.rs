//! The HTTP API: HTTP/1.1 and HTTP/2, over TLS or in clear text, JSON in and out, as `docs/api.md` describes it.
//!
//! The way of a request, once the network has its head: `dispatch` finds the route in the one table of `routes`, asks by `permit`
//! whether the caller may, and calls its handler (`send`, `receive`, `settle`, `raw`, `events`, `queues`, `messages`, `dead`,
//! `namespaces`, `admin`, `tokens`, `prometheus`), which decodes the body, calls the node and writes the answer. `compression` says
//! which answers are made smaller, `openapi` describes it all. Sends, receives and settles over HTTP/2 that go well take a short
//! way, `direct`.

mod admin;
mod bulk;
pub(crate) mod call;
mod changes;
mod compression;
mod consumers;
mod content;
mod dead;
mod direct;
pub(crate) mod dispatch;
mod document;
pub(crate) mod events;
pub(crate) mod extend;
mod flows;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod groups;
mod item_results;
mod keys;
mod limits;
mod messages;
mod namespaces;
mod openapi;
mod parameters;
pub(crate) mod permit;
mod prometheus;
mod query;
mod query_de;
mod queue_defaults;
mod queues;
mod raw;
pub(crate) mod receive;
mod results;
pub(crate) mod routes;
mod schedules;
pub(crate) mod send;
mod send_options;
mod setting_kinds;
mod settings;
pub(crate) mod settle;
mod tokens;

pub(crate) use direct::HotCalls;
pub use openapi::openapi;
pub use receive::WEIGHT_MAX;
pub use send::MESSAGE_FIELDS;

pub use crate::net::compression::Compression;
pub use crate::net::head::hosts::Hosts;
pub use crate::net::listener::Stopped;
pub use crate::net::options::HttpOptions;
pub use crate::serve::serve;
