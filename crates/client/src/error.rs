//! What can go wrong in a call.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::tls_fault::TlsFault;

/// Why a call failed.
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
        /// A sentence that says what was wrong, and what would be right.
        message: String,
        /// More about it, when there is more; `null` otherwise.
        details: Value,
        /// How long the server asked to wait before the next try.
        retry_after: Option<Duration>,
    },
    /// No answer came.
    Transport {
        /// What happened to the connection.
        kind: TransportKind,
        /// The address that was tried, as `host:port`.
        server: String,
        /// How often it was tried.
        tried: u32,
        /// What the operating system or the HTTP library said.
        reason: String,
    },
    /// An answer came that this client does not understand.
    Protocol {
        /// HTTP status.
        status: u16,
        /// What was not understood.
        reason: String,
    },
    /// The certificates, keys or tokens given to this client are not usable.
    Credentials {
        /// What is wrong with them.
        reason: String,
    },
    /// The server's address is not one that this client can use.
    InvalidUrl {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportKind {
    /// None could be made: nothing was sent.
    Connect,
    /// One was made, and TLS could not be agreed on: nothing was sent.
    Tls(TlsFault),
    /// It broke: whether the request took effect is not known.
    Broken,
    /// No answer within the time allowed: whether the request took effect is not known.
    Timeout,
}

impl ClientError {
    /// The server's error code, if the server answered.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Server { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the request may have been carried out all the same: its answer was lost.
    pub(crate) fn may_have_taken_effect(&self) -> bool {
        match self {
            ClientError::Transport { kind, .. } => {
                !matches!(kind, TransportKind::Connect | TransportKind::Tls(_))
            }
            ClientError::Server { status, .. } => *status >= 500,
            _ => false,
        }
    }

    /// Whether the server could not be reached, or stopped answering.
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
