//! Errors of calls.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::tls_fault::TlsFault;

/// The error of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with an error. `code` is stable; see the table of codes in the server's
    /// documentation.
    Server {
        /// HTTP status.
        status: u16,
        /// Stable snake_case code, such as `queue_not_found`.
        code: String,
        /// Sentence that says what was wrong, with which value, and what would be right.
        message: String,
        /// Object with details, as documented for the code; `null`: none.
        details: Value,
        /// Time that the server asks to wait before the next try (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// No answer came from the server.
    Transport {
        /// Failure of the connection.
        kind: TransportKind,
        /// The address that was tried, as `host:port`.
        server: String,
        /// Number of tries.
        tried: u32,
        /// Message of the operating system or of the HTTP library.
        reason: String,
    },
    /// An answer came that this client does not understand.
    Protocol {
        /// HTTP status.
        status: u16,
        /// Part of the answer that was not understood.
        reason: String,
    },
    /// A certificate, key or token of [`Credentials`](crate::Credentials) cannot be used.
    Credentials {
        /// Reason of the refusal.
        reason: String,
    },
    /// The server's address is not one that this client can use.
    InvalidUrl {
        /// The URL as given.
        url: String,
        /// Reason of the refusal.
        reason: String,
    },
}

/// The failure of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportKind {
    /// The connection could not be made: nothing was sent.
    Connect,
    /// The TLS handshake failed: nothing was sent.
    Tls(TlsFault),
    /// The connection broke: whether the request took effect is not known.
    Broken,
    /// No answer came within the timeout: whether the request took effect is not known.
    Timeout,
}

impl ClientError {
    /// The error of work whose lock was lost before it was done.
    pub(crate) fn lost_lock() -> ClientError {
        let message = "the lock was lost before the work was done: it was broken, or not renewed in time";
        ClientError::refused(409, "lease_lost", message.to_owned())
    }

    /// A refusal that needs no server, as a server would tell it.
    pub(crate) fn refused(status: u16, code: &str, message: String) -> ClientError {
        let (code, details) = (code.to_owned(), Value::Null);
        ClientError::Server { status, code, message, details, retry_after: None }
    }

    /// Code of the server's error; `None`: the error is not the server's.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Server { code, .. } => Some(code),
            _ => None,
        }
    }

    /// True when the server refuses the request for what it asks: later it would refuse it too, unless what
    /// it is about changes. False when it may succeed by itself, or may have been carried out.
    pub fn is_refusal(&self) -> bool {
        // 429: a quota or a limit is used up, or the server is busy.
        matches!(self, ClientError::Server { status, .. } if (400..500).contains(status) && *status != 429)
    }

    /// True when the request may have been carried out all the same: its answer was lost.
    pub(crate) fn may_have_taken_effect(&self) -> bool {
        match self {
            ClientError::Transport { kind, .. } => {
                !matches!(kind, TransportKind::Connect | TransportKind::Tls(_))
            }
            ClientError::Server { status, .. } => *status >= 500,
            _ => false,
        }
    }

    /// True when this is [`ClientError::Transport`]: the server could not be reached, or stopped answering.
    pub fn is_transport(&self) -> bool {
        matches!(self, ClientError::Transport { .. })
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Server { code, message, .. } => write!(f, "{message} ({code})"),
            ClientError::Transport { kind, server, tried, reason } => {
                let what = match kind {
                    TransportKind::Connect => "cannot connect to",
                    TransportKind::Tls(_) => "cannot agree on TLS with",
                    TransportKind::Broken => "lost the connection to",
                    TransportKind::Timeout => "no answer in time from",
                };
                write!(f, "{what} {server}: {reason}")?;
                if *tried > 1 { write!(f, " (tried {tried} times)") } else { Ok(()) }
            }
            ClientError::Protocol { status, reason } => {
                write!(f, "the answer (status {status}) was not understood: {reason}")
            }
            ClientError::Credentials { reason } => f.write_str(reason),
            ClientError::InvalidUrl { url, reason } => write!(f, "{url:?} is not a server address: {reason}"),
        }
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_succeed_later_by_itself_is_no_refusal() {
        let server = |status| ClientError::refused(status, "code", String::new());
        assert!([400, 403, 404, 409, 412].iter().all(|status| server(*status).is_refusal()));
        assert!(![429, 500, 503, 507].iter().any(|status| server(*status).is_refusal()));
        let protocol = ClientError::Protocol { status: 404, reason: String::new() };
        assert!(!protocol.is_refusal());
    }
}
