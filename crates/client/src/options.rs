//! The options of a client: timeouts, retries, credentials.

use std::time::Duration;

use crate::credentials::Credentials;

/// The options of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Timeout of one try of a request, beyond the wait that the request itself asks for (default 30 s).
    pub request_timeout: Duration,
    /// Timeout of making a connection (default 5 s).
    pub connect_timeout: Duration,
    /// Time for which a request is repeated after a transient error or a broken connection (default 30 s).
    pub retry_for: Duration,
    /// Time for which a request is repeated while no connection can be made (default 10 s).
    pub connect_retry_for: Duration,
    /// Largest number of connections at once (default 256).
    pub connections_max: usize,
    /// True: frames of a session that wait for the connection are written as one piece (default true). False:
    /// each is a DATA frame of its own, which costs both sides more; for measuring the cost of single
    /// requests.
    pub gather_frames: bool,
    /// True: a send in a session that has no idempotency key gets one (default true). False: it has none,
    /// which costs the server less; for measuring.
    pub key_sends: bool,
    /// CA to trust, client certificate and token (default: the system's CAs, no certificate, no token).
    pub credentials: Credentials,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            retry_for: Duration::from_secs(30),
            connect_retry_for: Duration::from_secs(10),
            connections_max: 256,
            gather_frames: true,
            key_sends: true,
            credentials: Credentials::default(),
        }
    }
}
