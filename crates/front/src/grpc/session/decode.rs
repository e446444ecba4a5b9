//! Frames of a client as the engine takes them. What is plain is taken as it is; what has any of the fields
//! that have rules of their own goes through the decoder of the HTTP API, which knows them.

use std::str::{FromStr, from_utf8};

use bytes::Bytes;
use sluice_calls::CallError;
use sluice_calls::{Fault, Read};
use sluice_engine::id::Receipt;
use sluice_proto::v1::{Extension, SendMany, Settlement};

use crate::grpc::rows::read_rows;
use crate::grpc::schema::schema;
use crate::grpc::to_json::write_object;

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

/// The JSON that says the same as a message of the contract, for the decoders of the HTTP API.
pub(in crate::grpc) fn as_json(name: &str, message: &impl prost::Message) -> Result<Vec<u8>, CallError> {
    let message_type = schema().named(name);
    let bytes = message.encode_to_vec();
    let mut json = Vec::with_capacity(bytes.len() * 2);
    write_object(message_type, &read_rows(message_type, &bytes)?, &mut json)?;
    Ok(json)
}

/// The JSON of a send without what stands in the path and headers over HTTP.
pub(in crate::grpc) fn send_as_json(send: &SendMany) -> Result<Vec<u8>, CallError> {
    // A clone of bytes is a clone of their handle.
    let messages = SendMany { messages: send.messages.clone(), ..SendMany::default() };
    as_json("SendMany", &messages)
}

/// True if a settlement is an ack without further fields.
pub(super) fn is_plain_ack(settlement: &Settlement) -> bool {
    let Settlement { receipt: _, outcome, error, delay_ms, result, result_content_type } = settlement;
    outcome == "ack"
        && error.is_none()
        && delay_ms.is_none()
        && result.is_none()
        && result_content_type.is_none()
}

/// True if an extension has no progress or checkpoint, and its lease, if given, is valid.
pub(super) fn is_plain_extension(extension: &Extension) -> bool {
    let Extension { receipt: _, lease_ms, progress, checkpoint } = extension;
    *lease_ms != Some(0) && progress.is_none() && checkpoint.is_none()
}
