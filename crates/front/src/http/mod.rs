//! The HTTP API: JSON in and out over HTTP/1.1 and HTTP/2, as `docs/api.md` describes it.
//!
//! The way of a request, once the network has its head: `dispatch` finds the operation by `route`, gets the
//! permit of the call, and runs it: as a typed call, a hot call, or in a handler of its own.
//!
//! | module | |
//! |---|---|
//! | `codec` | JSON and parameters that several calls have in common |
//! | `route` | the table of routes, what is asked before anything is read, and what a handler gets |
//! | `direct`, `hot` | send, receive, settle, extend: from the bytes of HTTP/2, and from any request |
//! | `raw`, `raw_options` | sends and receives whose payload is the body |
//! | `events` | streams of events |
//! | `figures` | the figures of the server: the page for Prometheus, and their export |
//! | `handlers` | backup, and what has a body of its own |
//! | `openapi` | the description of the API |
//! | `console` | the files of the web console, and the cookie of who has signed in |
//! | `compression` | which answers are compressed |
//! | `dispatch` | from a request to its answer |
//! | `methods` | the answer to a method that a path does not have |
//! | `typed` | calls with one request and one answer, by their types |

mod codec;
mod compression;
mod console;
pub(crate) mod direct;
pub(crate) mod dispatch;
mod events;
pub(crate) mod figures;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handlers;
mod hot;
mod lines;
mod methods;
mod openapi;
mod raw;
mod raw_options;
pub(crate) mod route;
mod typed;

pub use sluice_calls::hot::receive::WEIGHT_MAX;

pub use crate::hot::send::MESSAGE_FIELDS;
pub use crate::net::compression::Compression;
pub use crate::net::head::hosts::Hosts;
pub use crate::net::listener::Stopped;
pub use crate::net::options::HttpOptions;
pub use openapi::openapi;
