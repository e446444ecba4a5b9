//! The settings of the server, and the bounds that follow from the engine's limits.

use std::sync::Arc;
use std::time::Duration;

use sluice_calls::access::{Guard, GuardOptions, POLICY_BYTES_MAX};
use sluice_engine::limits::{DOCUMENT_BYTES_MAX, Limits};
use sluice_http2::Limits as Http2Limits;
use sluice_telemetry::Exports;

use super::alpn::AlpnHandler;
use super::compression::Compression;
use super::head::hosts::Hosts;
use super::nodes::Nodes;
use super::tls::Tls;

/// Bounds and times of the HTTP front. All bounds are inclusive.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Most connections at once; more are answered 503 and closed (default 4,096).
    pub connections_max: usize,
    /// Most requests at once, waiting receives included; more are answered 429 (default 16,384).
    pub requests_max: usize,
    /// Most bytes of request bodies in memory at once; more is answered 429 (default 256 MiB).
    pub bodies_bytes_max: usize,
    /// Longest time for the head of a request (default 10 s).
    pub head_timeout: Duration,
    /// Maximum time for a request's body, plus one second for each 128 KiB received (default 30 s).
    pub body_timeout: Duration,
    /// Most bytes of answers in memory at once, until clients have read them; beyond it, what answers with
    /// messages or lists is refused with 429 before it is done (default 256 MiB).
    pub answers_bytes_max: usize,
    /// Memory for unread answers of one connection, in bytes (default 64 MiB).
    pub connection_answers_bytes_max: usize,
    /// Longest time in which a client reads nothing of an answer that is ready (default 30 s).
    pub write_timeout: Duration,
    /// Time without input after which an HTTP/2 connection gets a PING, and the maximum time for its answer
    /// (default 20 s).
    pub ping_interval: Duration,
    /// Longest time of a connection without a request (default 75 s).
    pub idle_timeout: Duration,
    /// Grace period of requests in flight after the shutdown signal (default 10 s).
    pub shutdown_grace: Duration,
    /// After so long without an event a stream of them shows that it is still there, and whether its reader
    /// still may look is asked again (default 15 s).
    pub event_pause: Duration,
    /// Most queues that have figures of their own in `/metrics` (default 500).
    pub metrics_queues_max: usize,
    /// The kinds of answers that may be compressed (default: those without contents of messages).
    pub compression: Compression,
    /// TLS of the listener; `None`: clear text.
    pub tls: Option<Arc<Tls>>,
    /// Protocol beside HTTP, if [`Tls::load`] was given its name.
    pub further: Option<Arc<dyn AlpnHandler>>,
    /// The other nodes of the cluster; `None`: there are none.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Names by which it may be called while callers need not authenticate (default: any).
    pub hosts: Hosts,
    /// Limits of connections by address.
    pub guard: Arc<Guard>,
    /// Blocks that the process has taken from its allocator, for `/metrics`; `None`: nobody counts them.
    pub allocations: Option<fn() -> u64>,
    /// Export of figures, and the counts of all exports; `None`: nothing is exported.
    pub telemetry: Option<Exports>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            connections_max: 4_096,
            requests_max: 16_384,
            bodies_bytes_max: 256 << 20,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            answers_bytes_max: 256 << 20,
            connection_answers_bytes_max: 64 << 20,
            write_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(75),
            shutdown_grace: Duration::from_secs(10),
            event_pause: Duration::from_secs(15),
            metrics_queues_max: 500,
            compression: Compression::default(),
            tls: None,
            further: None,
            nodes: None,
            hosts: Hosts::any(),
            guard: Arc::new(Guard::new(GuardOptions::default())),
            allocations: None,
            telemetry: None,
        }
    }
}

/// Largest head of a request, in bytes (HTTP/1.1: with the read buffer that it shares).
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most header fields of a request.
pub(crate) const HEAD_FIELDS_MAX: usize = 100;
/// Bytes that the system keeps of an answer before it takes more: with its usual buffers of megabytes, a slow
/// client could not be told from one that does not read at all.
pub(crate) const SEND_BUFFER_BYTES: u32 = 128 << 10;
/// Concurrent streams of one HTTP/2 connection.
pub(crate) const STREAMS_MAX: u32 = 256;
/// Largest body of a request that carries neither messages nor receipts, in bytes.
pub(crate) const SMALL_BODY_BYTES_MAX: usize = 64 << 10;
/// Largest body with a policy, in bytes: most of its characters stand in JSON as they are.
pub(crate) const POLICY_BODY_BYTES_MAX: usize = 2 * POLICY_BYTES_MAX;

/// Largest body with a document, in bytes: its content as base64, or as text of which few characters are
/// escaped.
pub(crate) const DOCUMENT_BODY_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;

/// Largest bodies, as the engine's limits allow them in JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// A send: everything as base64, and the fields of each message beside it.
    pub(crate) send: usize,
    /// A list of receipts or ids with their texts.
    pub(crate) items: usize,
    /// A raw payload.
    pub(crate) raw: usize,
}

impl BodyLimits {
    /// A list of receipts with results or checkpoints.
    pub(crate) fn contents(&self) -> usize {
        self.send.max(self.items)
    }

    pub(crate) fn new(limits: &Limits) -> BodyLimits {
        let items = limits.batch_items as usize;
        let bytes = limits.batch_bytes as usize;
        BodyLimits {
            send: bytes + bytes / 3 + items * 256 + SMALL_BODY_BYTES_MAX,
            items: items * 512 + SMALL_BODY_BYTES_MAX,
            raw: limits.payload_bytes as usize,
        }
    }
}

/// The limits of a connection of HTTP/2.
pub(crate) fn http2_limits(options: &HttpOptions) -> Http2Limits {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Http2Limits {
        streams: STREAMS_MAX,
        header_list_bytes: HEAD_BYTES_MAX as u32,
        header_block_bytes: HEAD_BYTES_MAX as u32,
        preface_us: us(options.head_timeout),
        frame_us: us(options.head_timeout),
        // As good as any sign of life.
        settings_ack_us: us(options.ping_interval),
        // Whoever reads a body has a deadline for it, and an answer when it is over: this one is for bodies
        // that nobody reads.
        body_stall_us: us(options.body_timeout).saturating_mul(2),
        read_stall_us: us(options.write_timeout),
        keep_alive_us: us(options.ping_interval),
        idle_us: us(options.idle_timeout),
        ..Http2Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_valid_and_bound_a_connections_memory_as_the_docs_say() {
        let limits = http2_limits(&HttpOptions::default());
        assert_eq!(limits.validate(), Ok(()));
        assert!(limits.connection_bytes_max() < 10 << 20, "{}", limits.connection_bytes_max());
    }
}
