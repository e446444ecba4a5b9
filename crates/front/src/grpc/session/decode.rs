//! Frames of a client as the engine takes them. A plain one is taken as it is; one with any of the fields
//! that have rules of their own goes through the decoders of the hot calls, which know them.

use std::str::{FromStr, from_utf8};

use bytes::Bytes;
use prost::Message as _;
use sluice_calls::{CallError, Fault, Read};
use sluice_engine::Limits;
use sluice_engine::id::Receipt;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::{ClientFrame, Extension, SendMany, Settlement};

use super::plain::Plain;
use crate::grpc::bounds::{TooLong, check_frame};
use crate::grpc::rows::{check_known, read_rows};
use crate::grpc::schema::schema;
use crate::grpc::source::MessageSource;
use crate::grpc::wire::INVALID;

/// The contents of a frame.
pub(super) enum Said<'f> {
    Plain(Plain<'f>),
    Other(Frame),
}

/// The number of a frame, and what it says; or why nothing is made of it.
pub(super) fn read_frame<'f>(bytes: &'f Bytes, limits: &Limits) -> Result<(u64, Read<Said<'f>>), CallError> {
    if let Some((number, plain)) = Plain::read(bytes, limits) {
        return Ok((number, Ok(Said::Plain(plain))));
    }
    if let Some(TooLong { number, fault }) = check_frame(bytes, limits)? {
        return Ok((number, Err(fault)));
    }
    let decoded =
        ClientFrame::decode_lists(bytes.clone()).map_err(|error| Fault::new(INVALID, error.to_string()))?;
    // What is decoded is shorter when it leaves something out.
    let checked = match decoded.encoded_len() == bytes.len() {
        true => Ok(()),
        false => check_known(schema().named("ClientFrame"), bytes),
    };
    let ClientFrame { number, frame } = decoded;
    match frame {
        Some(frame) => Ok((number, checked.map(|()| Said::Other(frame)))),
        None => Err(Fault::new(INVALID, format!("frame {number} holds nothing that is known here")).into()),
    }
}

/// A text of a frame.
pub(super) fn text<'b>(bytes: &'b Bytes, field: &str) -> Read<&'b str> {
    from_utf8(bytes).map_err(|_| Fault::invalid("the text is not UTF-8").inside(field))
}

/// A receipt of a frame.
pub(super) fn receipt(bytes: &Bytes) -> Result<Receipt, sluice_engine::Error> {
    match from_utf8(bytes) {
        Ok(text) => Receipt::from_str(text),
        Err(_) => Receipt::from_str(&String::from_utf8_lossy(bytes)),
    }
}

/// A source for the decoders of the hot calls, of the bytes of a message with this name.
pub(in crate::grpc) fn source<'b>(name: &str, bytes: &'b [u8]) -> Read<MessageSource<'b>> {
    let message = schema().named(name);
    Ok(MessageSource::new(message, read_rows(message, bytes)?, bytes))
}

/// The bytes of the messages of a send, without its queue and key.
pub(in crate::grpc) fn messages_of(send: &SendMany) -> Vec<u8> {
    // A clone of bytes is a clone of their handle.
    SendMany { messages: send.messages.clone(), ..SendMany::default() }.encode_to_vec()
}

/// True if a settlement is an ack without further fields.
pub(super) fn is_plain_ack(settlement: &Settlement) -> bool {
    let Settlement { receipt: _, outcome, error, delay_ms, result, result_content_type, add_cost } =
        settlement;
    outcome == "ack"
        && error.is_none()
        && delay_ms.is_none()
        && result.is_none()
        && result_content_type.is_none()
        && add_cost.is_none()
}

/// True if an extension has no progress, checkpoint or cost, and its lease, if given, is valid.
pub(super) fn is_plain_extension(extension: &Extension) -> bool {
    let Extension { receipt: _, lease_ms, progress, checkpoint, add_cost } = extension;
    *lease_ms != Some(0) && progress.is_none() && checkpoint.is_none() && add_cost.is_none()
}
