//! The payload of SETTINGS (RFC 9113 §6.5).

use super::{MAX_31_BITS, PAYLOAD_BYTES_MAX};
use crate::error::{ErrorCode, Fault};

/// A setting with a valid value (RFC 9113 §6.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// The most bytes of the table with which the other side may compress headers.
    HeaderTableSize(u32),
    /// SETTINGS_ENABLE_PUSH: whether the peer accepts pushes.
    EnablePush(bool),
    /// The most streams that the other side may have open.
    MaxConcurrentStreams(u32),
    /// Bytes that may be sent on a new stream: at most 2³¹-1.
    InitialWindowSize(u32),
    /// The largest payload of a frame: 16,384 to 2²⁴-1 bytes.
    MaxFrameSize(u32),
    /// The most bytes of a header list, counted as RFC 9113 §10.5.1 does.
    MaxHeaderListSize(u32),
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL: whether extended CONNECT is supported (RFC 8441 §3).
    EnableConnectProtocol(bool),
    /// SETTINGS_NO_RFC7540_PRIORITIES: whether the priorities of RFC 7540 are ignored (RFC 9218 §2.1).
    NoRfc7540Priorities(bool),
}

impl Setting {
    /// The identifier and the value, as they are sent.
    pub fn to_wire(self) -> (u16, u32) {
        match self {
            Self::HeaderTableSize(bytes) => (0x1, bytes),
            Self::EnablePush(on) => (0x2, on.into()),
            Self::MaxConcurrentStreams(streams) => (0x3, streams),
            Self::InitialWindowSize(bytes) => (0x4, bytes),
            Self::MaxFrameSize(bytes) => (0x5, bytes),
            Self::MaxHeaderListSize(bytes) => (0x6, bytes),
            Self::EnableConnectProtocol(on) => (0x8, on.into()),
            Self::NoRfc7540Priorities(on) => (0x9, on.into()),
        }
    }

    /// Reads one; nothing for an id that is not known, which has to be passed over.
    fn from_wire(id: u16, value: u32) -> Result<Option<Self>, Fault> {
        let switch = |what| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what)),
        };
        Ok(Some(match id {
            0x1 => Self::HeaderTableSize(value),
            0x2 => Self::EnablePush(switch("SETTINGS_ENABLE_PUSH is neither 0 nor 1")?),
            0x3 => Self::MaxConcurrentStreams(value),
            0x4 if value > MAX_31_BITS => {
                return Err(Fault::connection(
                    ErrorCode::FLOW_CONTROL_ERROR,
                    "SETTINGS_INITIAL_WINDOW_SIZE is above 2147483647",
                ));
            }
            0x4 => Self::InitialWindowSize(value),
            0x5 if !(PAYLOAD_BYTES_MAX..1 << 24).contains(&value) => {
                return Err(Fault::connection(
                    ErrorCode::PROTOCOL_ERROR,
                    "SETTINGS_MAX_FRAME_SIZE is not within 16384 and 16777215",
                ));
            }
            0x5 => Self::MaxFrameSize(value),
            0x6 => Self::MaxHeaderListSize(value),
            0x8 => {
                Self::EnableConnectProtocol(switch("SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1")?)
            }
            0x9 => Self::NoRfc7540Priorities(switch("SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1")?),
            _ => return Ok(None),
        }))
    }
}

/// The settings of one frame, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingsPayload<'a>(&'a [u8]);

impl<'a> SettingsPayload<'a> {
    /// Reads a payload whose size was checked to be a multiple of six.
    pub(super) fn new(payload: &'a [u8]) -> Self {
        debug_assert!(payload.len().is_multiple_of(6));
        Self(payload)
    }

    /// The known settings. The first with an invalid value ends the iteration with an error of the
    /// connection.
    pub fn iter(self) -> impl Iterator<Item = Result<Setting, Fault>> + use<'a> {
        self.0.as_chunks::<6>().0.iter().filter_map(|&[i0, i1, v0, v1, v2, v3]| {
            Setting::from_wire(u16::from_be_bytes([i0, i1]), u32::from_be_bytes([v0, v1, v2, v3])).transpose()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: u16, value: u32) -> Option<Result<Setting, Fault>> {
        let mut payload = id.to_be_bytes().to_vec();
        payload.extend(value.to_be_bytes());
        SettingsPayload::new(&payload).iter().next()
    }

    #[test]
    fn rfc9113_6_5_2_settings_go_there_and_back() {
        for setting in [
            Setting::HeaderTableSize(0),
            Setting::EnablePush(true),
            Setting::MaxConcurrentStreams(u32::MAX),
            Setting::InitialWindowSize(MAX_31_BITS),
            Setting::MaxFrameSize(PAYLOAD_BYTES_MAX),
            Setting::MaxFrameSize((1 << 24) - 1),
            Setting::MaxHeaderListSize(1),
            Setting::EnableConnectProtocol(true),
            Setting::NoRfc7540Priorities(false),
        ] {
            let (id, value) = setting.to_wire();
            assert_eq!(read(id, value), Some(Ok(setting)));
        }
    }

    #[test]
    fn rfc9113_6_5_2_values_that_may_not_be_end_the_connection() {
        for (id, value, code) in [
            (0x2, 2, ErrorCode::PROTOCOL_ERROR),
            (0x4, 1 << 31, ErrorCode::FLOW_CONTROL_ERROR),
            (0x5, 16_383, ErrorCode::PROTOCOL_ERROR),
            (0x5, 1 << 24, ErrorCode::PROTOCOL_ERROR),
            (0x8, 2, ErrorCode::PROTOCOL_ERROR),
            (0x9, 2, ErrorCode::PROTOCOL_ERROR),
        ] {
            let fault = read(id, value).expect("known").expect_err("out of range");
            assert_eq!((fault.scope, fault.code), (crate::error::Scope::Connection, code), "{id:#x} {value}");
        }
    }

    #[test]
    fn rfc9113_6_5_2_unknown_settings_are_passed_over() {
        assert_eq!(read(0x7, 1), None);
        assert_eq!(read(0xffff, u32::MAX), None);
    }
}
