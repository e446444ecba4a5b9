//! The codes with which a stream or a connection ends (RFC 9113 §7).

use std::fmt;

/// Why a stream was reset or a connection closed, as RST_STREAM and GOAWAY carry it (RFC 9113 §7).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Ended without an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// The peer violated the protocol, and no other code is more specific.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// An internal error of this side.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// The peer sent more than flow control allowed, or opened a window beyond 2³¹-1.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// The peer did not acknowledge settings in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame came for a stream that the peer had ended.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has a size that its kind or the settings do not allow.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream was refused before anything was done for it: the request may be sent again.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(0x8);
    /// A header block could not be decoded: the two sides' tables differ from here on.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection of a CONNECT request was reset.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The transport does not meet the security requirements.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The request has to be made over HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// Name in the RFC; `None`: an unknown code, which counts as `INTERNAL_ERROR`.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error of the peer, and what it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Scope of the error: the connection or one stream.
    pub scope: Scope,
    /// Error code sent to the peer.
    pub code: ErrorCode,
    /// Description for logs and for the debug data of GOAWAY.
    pub what: &'static str,
}

/// The scope of an error (RFC 9113 §5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The whole connection: GOAWAY.
    Connection,
    /// One stream, by its id: RST_STREAM. The others go on.
    Stream(u32),
}

impl Fault {
    /// An error that ends the connection.
    pub const fn connection(code: ErrorCode, what: &'static str) -> Self {
        Self { scope: Scope::Connection, code, what }
    }

    /// An error that ends stream `id` alone.
    pub const fn stream(id: u32, code: ErrorCode, what: &'static str) -> Self {
        Self { scope: Scope::Stream(id), code, what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            Scope::Connection => write!(f, "{}: {}", self.code, self.what),
            Scope::Stream(id) => write!(f, "stream {id}: {}: {}", self.code, self.what),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9113_7_codes_have_their_names() {
        assert_eq!(ErrorCode::NO_ERROR.to_string(), "NO_ERROR");
        assert_eq!(ErrorCode::ENHANCE_YOUR_CALM.to_string(), "ENHANCE_YOUR_CALM");
        assert_eq!(ErrorCode::HTTP_1_1_REQUIRED.to_string(), "HTTP_1_1_REQUIRED");
        assert_eq!(ErrorCode(0xe).to_string(), "error code 0xe");
        assert_eq!(ErrorCode(u32::MAX).to_string(), "error code 0xffffffff");
    }
}
