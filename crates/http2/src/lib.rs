//! HTTP/2 for servers (RFC 9113), with header compression (RFC 7541) and priorities (RFC 9218).
//!
//! The protocol is a pure state machine, [`Connection`]: it takes bytes and gives events, takes responses and
//! gives bytes. It has no sockets, no clock (whoever drives it passes the time, in microseconds), no locks
//! and no threads. Around it are a driver for transports of Tokio, [`drive`], and an adapter for services of
//! `http` and `tower-service`, [`adapter`].
//!
//! A service on a connection that was accepted, in clear text:
//!
//! ```
//! use std::sync::Arc;
//!
//! use http::{Request, Response};
//! use sluice_http2::adapter::{Adapter, RequestBody};
//! use sluice_http2::drive::{Driver, Plain};
//! use sluice_http2::emit::EmitMode;
//! use sluice_http2::{Connection, Limits};
//! use tokio::net::TcpStream;
//! use tower_service::Service;
//!
//! async fn serve<S>(io: TcpStream, service: S) -> std::io::Result<()>
//! where
//!     S: Service<Request<RequestBody>, Response = Response<String>> + Unpin,
//! {
//!     let limits = Arc::new(Limits::default());
//!     let adapter = Adapter::new(service, &limits);
//!     Driver::new(Plain::new(io), adapter, |now_us| Connection::new(limits, EmitMode::Auto, now_us)).await
//! }
//! ```
//!
//! The state machine alone, without any I/O:
//!
//! ```
//! use std::sync::Arc;
//!
//! use sluice_http2::emit::EmitMode;
//! use sluice_http2::frame::{PREFACE, write};
//! use sluice_http2::{Connection, Limits};
//!
//! let mut connection = Connection::new(Arc::new(Limits::default()), EmitMode::Auto, 0);
//! let mut input = PREFACE.to_vec();
//! write::settings(&mut input, &[]);
//! assert_eq!(connection.next_event(&mut input.as_slice(), 0), None);
//!
//! // What the server has to say so far: its settings, and the acknowledgement of the client's.
//! let bytes = connection.plan(0, usize::MAX).len();
//! assert!(bytes > 0);
//! connection.wrote(bytes);
//! ```
//!
//! Everything that a peer could make large or frequent has a limit, see [`Limits`]. What a request means is
//! not decided here; there is no client, no server push, and no HTTP/1.1.
//!
//! | module | |
//! |---|---|
//! | [`adapter`] | runs services of `http` and `tower` on a connection |
//! | [`connection`] | the state machine of one connection: streams, flow control, faults, endings |
//! | [`drive`] | drives a connection over a transport, with TLS or without |
//! | [`emit`] | what goes out: priorities, and the plan of each tick |
//! | [`error`] | the codes with which streams and connections end |
//! | [`frame`] | frames: reading them without a copy, writing them |
//! | `fuzzing` | whole sessions from arbitrary bytes, with the feature of that name |
//! | [`hpack`] | header blocks: decoding and encoding them |
//! | [`limits`] | everything that a peer could make large or frequent |
//! | `streams` | the streams of a connection, with all that each holds |

pub mod adapter;
pub mod connection;
pub mod drive;
pub mod emit;
pub mod error;
pub mod frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod hpack;
pub mod limits;
mod streams;

pub use connection::{Connection, Event, StreamKey};
pub use error::{ErrorCode, Fault};
pub use limits::Limits;

/// The examples of the README, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
