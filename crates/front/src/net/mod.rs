//! The network: connections, and what every protocol over them shares. It knows no protocol above HTTP
//! itself: those are a [`service::Service`].
//!
//! | module | |
//! |---|---|
//! | `listener` | accepts connections, and ends them when the server stops |
//! | [`tls`] | TLS: certificates, handshakes, what is taken from clients |
//! | `connection` | the life of a connection: HTTP/1.1 by hyper, HTTP/2 by `sluice-http2` |
//! | `activity` | what a connection does: which are idle, which are slow |
//! | `turns` | which request of an HTTP/1.1 connection is next |
//! | `service` | what answers requests |
//! | `alpn` | protocols beside HTTP on the same port |
//! | `refusal` | the answer to a head of HTTP/1.1 that cannot be read |
//! | `head` | what the head of a request has to be |
//! | `arrived` | a request until it has its answer, and what is noted of it then |
//! | `in_flight` | counts requests until their answers have left our memory |
//! | `body` | bodies: reading those of requests within bounds, writing those of answers |
//! | `memory` | budgets of bytes: of bodies, and of answers that are not read yet |
//! | `compression` | compresses answers within bounds |
//! | [`nodes`], `links` | the other nodes of a cluster, and HTTP/2 connections to them |
//! | `passing` | requests that another node answers |
//! | `respond`, `errors` | answers: documents, and errors in JSON |
//! | `acts` | administrative requests, which are finished though their callers are gone |
//! | `options` | what an operator may set, and the bounds that follow |
//! | `context` | what all requests share, `metrics` and `error_log` among it |
//!
//! Fault model: a client may send anything, at any speed, and vanish at any time. It can then lose its own
//! connection, but no message, and no more memory than `options` allows.

pub(crate) mod activity;
pub(crate) mod acts;
pub(crate) mod admit;
pub(crate) mod alpn;
pub(crate) mod arrived;
pub(crate) mod body;
pub(crate) mod compression;
pub(crate) mod connection;
pub(crate) mod context;
pub(crate) mod error_log;
pub(crate) mod errors;
pub(crate) mod head;
pub(crate) mod in_flight;
pub(crate) mod links;
pub(crate) mod listener;
pub(crate) mod memory;
pub(crate) mod metrics;
pub mod nodes;
pub(crate) mod options;
pub(crate) mod passing;
mod refusal;
pub(crate) mod respond;
pub(crate) mod service;
pub mod tls;
pub(crate) mod turns;
