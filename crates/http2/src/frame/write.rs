//! From frames to bytes: each function appends one frame.

use super::{FrameHeader, Setting, flag, kind};
use crate::error::ErrorCode;

/// Appends the header of a frame whose payload of `length` bytes is to follow.
#[inline]
pub fn header(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    debug_assert!(length < 1 << 24);
    out.extend_from_slice(&FrameHeader { length: length as u32, kind, flags, stream }.to_bytes());
}

/// Appends SETTINGS.
pub fn settings(out: &mut Vec<u8>, settings: &[Setting]) {
    header(out, settings.len() * 6, kind::SETTINGS, 0, 0);
    for (id, value) in settings.iter().map(|setting| setting.to_wire()) {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of the peer's SETTINGS.
pub fn settings_ack(out: &mut Vec<u8>) {
    header(out, 0, kind::SETTINGS, flag::ACK, 0);
}

/// Appends PING, or the answer to one.
pub fn ping(out: &mut Vec<u8>, ack: bool, payload: [u8; 8]) {
    header(out, 8, kind::PING, if ack { flag::ACK } else { 0 }, 0);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY; `debug` tells people what was wrong.
pub fn go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode, debug: &str) {
    header(out, 8 + debug.len(), kind::GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}

/// Appends RST_STREAM.
pub fn reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    header(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE for a stream, or for the connection as stream 0.
pub fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    header(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    /// The one frame in `bytes`.
    fn read(bytes: &[u8]) -> Frame<'_> {
        let header = FrameHeader::parse(bytes).expect("a header");
        Frame::parse(header, &bytes[FrameHeader::BYTES..]).expect("a frame")
    }

    #[test]
    fn rfc9113_6_what_is_written_reads_the_same() {
        let mut out = Vec::new();
        settings(&mut out, &[Setting::MaxConcurrentStreams(7), Setting::EnableConnectProtocol(true)]);
        let Frame::Settings(payload) = read(&out) else { panic!("SETTINGS") };
        let read_back: Vec<_> = payload.iter().map(|setting| setting.expect("right")).collect();
        assert_eq!(read_back, [Setting::MaxConcurrentStreams(7), Setting::EnableConnectProtocol(true)]);

        let written = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        assert_eq!(read(&written(&settings_ack)), Frame::SettingsAck);
        let frame = written(&|out| ping(out, true, *b"12345678"));
        assert_eq!(read(&frame), Frame::Ping { ack: true, payload: *b"12345678" });
        let frame = written(&|out| go_away(out, 9, ErrorCode::NO_ERROR, "bye"));
        assert_eq!(read(&frame), Frame::GoAway { last_stream: 9, code: ErrorCode::NO_ERROR });
        let frame = written(&|out| reset(out, 9, ErrorCode::CANCEL));
        assert_eq!(read(&frame), Frame::Reset { stream: 9, code: ErrorCode::CANCEL });
        let frame = written(&|out| window_update(out, 9, 77));
        assert_eq!(read(&frame), Frame::WindowUpdate { stream: 9, increment: 77 });
    }
}
