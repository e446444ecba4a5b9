//! Frames of the server, written straight into what waits for the connection.

use sluice_calls::CallError;
use sluice_calls::hot::receive::with_added;
use sluice_calls::hot::{Delivered, Sent};
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::error::FieldValue;
use sluice_engine::id::Receipt;

use crate::grpc::wire::{put_bytes, put_message, put_number};

/// Fields of `ServerFrame`.
mod frame {
    pub(super) const DELIVERIES: u32 = 1;
    pub(super) const RESULT: u32 = 2;
    pub(super) const CANCELLATIONS: u32 = 3;
    pub(super) const DRAINING: u32 = 4;
    pub(super) const KEEP_ALIVE: u32 = 5;
    pub(super) const DETACHED: u32 = 6;
}

/// `Deliveries`.
pub(super) fn deliveries(out: &mut Vec<u8>, consumer: u32, messages: &[Delivered]) {
    put_message(out, frame::DELIVERIES, |out| {
        put_number(out, 1, consumer.into());
        for message in messages {
            put_message(out, 2, |out| delivered(out, message));
        }
    });
}

/// `Cancellations`.
pub(super) fn cancellations(out: &mut Vec<u8>, consumer: u32, receipts: &[Receipt]) {
    put_message(out, frame::CANCELLATIONS, |out| {
        put_number(out, 1, consumer.into());
        receipts.iter().for_each(|receipt| put_bytes(out, 2, &receipt.to_text()));
    });
}

/// `Draining`.
pub(super) fn draining(out: &mut Vec<u8>, grace_ms: u64) {
    put_message(out, frame::DRAINING, |out| put_number(out, 1, grace_ms));
}

/// `KeepAlive`.
pub(super) fn keep_alive(out: &mut Vec<u8>) {
    put_message(out, frame::KEEP_ALIVE, |_| {});
}

/// `Detached`.
pub(super) fn detached(out: &mut Vec<u8>, consumer: u32) {
    put_message(out, frame::DETACHED, |out| put_number(out, 1, consumer.into()));
}

/// `FrameResult` of a frame that was refused as a whole.
pub(super) fn refused(out: &mut Vec<u8>, number: u64, error: &CallError) {
    put_message(out, frame::RESULT, |out| {
        put_number(out, 1, number);
        put_message(out, 2, |out| {
            put_bytes(out, 1, error.code().as_bytes());
            put_bytes(out, 2, error.message().as_bytes());
            for (name, value) in error.details().iter() {
                put_message(out, 3, |out| entry(out, name, &value.to_string()));
            }
        });
    });
}

/// `FrameResult` with what became of each item.
pub(super) fn results(out: &mut Vec<u8>, number: u64, results: &[Result<(), Error>]) {
    put_message(out, frame::RESULT, |out| {
        put_number(out, 1, number);
        for (item, result) in results.iter().enumerate() {
            let Err(error) = result else { continue };
            put_message(out, 3, |out| {
                put_number(out, 1, item as u64);
                match error {
                    Error::AlreadySettled { .. } => put_number(out, 2, 1),
                    error => put_message(out, 3, |out| item_error(out, error)),
                }
            });
        }
    });
}

/// `FrameResult` of a send.
pub(super) fn sent(out: &mut Vec<u8>, number: u64, sent: &Sent) {
    put_message(out, frame::RESULT, |out| {
        put_number(out, 1, number);
        sent.ids().for_each(|id| put_bytes(out, 4, &id.to_text()));
        if sent.duplicate {
            put_number(out, 5, 1);
        }
        for item in sent.duplicates.iter().flat_map(|duplicates| &duplicates.items) {
            put_number(out, 6, (*item).into());
        }
    });
}

fn item_error(out: &mut Vec<u8>, error: &Error) {
    put_bytes(out, 1, error.code().as_bytes());
    put_bytes(out, 2, error.to_string().as_bytes());
    error.fields(|name, value| {
        put_message(out, 3, |out| match value {
            FieldValue::Text(text) => entry(out, name, text),
            FieldValue::Number(number) => entry(out, name, &number.to_string()),
        });
    });
}

fn entry(out: &mut Vec<u8>, name: &str, value: &str) {
    put_bytes(out, 1, name.as_bytes());
    put_bytes(out, 2, value.as_bytes());
}

/// `Delivered`.
fn delivered(out: &mut Vec<u8>, message: &Delivered) {
    // What the node hands out was verified and was written by the engine's own encoder.
    let Some(blob) = MessageBlob::parse(&message.blob) else { return };
    let delivery = &message.delivery;
    put_bytes(out, 1, &delivery.receipt.id.to_text());
    put_bytes(out, 2, &delivery.receipt.to_text());
    put_bytes(out, 3, message.queue.as_bytes());
    put_bytes(out, 4, blob.payload);
    put_text(out, 5, blob.content_type);
    let added = message.details.as_ref().map_or(&[][..], |details| &details.headers);
    with_added(blob.headers(), added)
        .for_each(|(name, value)| put_message(out, 6, |out| entry(out, name, value)));
    if let Some(tagged) = message.tagged() {
        tagged.tags().for_each(|tag| put_bytes(out, 7, tag.as_bytes()));
    }
    for (field, number) in [
        (8, u64::from(delivery.priority)),
        (9, u64::from(delivery.attempt)),
        (10, u64::from(delivery.max_attempts)),
        (11, u64::from(delivery.deliveries)),
        (12, delivery.sent_at_us / 1_000),
        (13, delivery.lease_until_us / 1_000),
    ] {
        if number > 0 {
            put_number(out, field, number);
        }
    }
    let Some(details) = &message.details else { return };
    if let Some(reason) = details.reason {
        put_text(out, 14, &details.from_queue);
        put_text(out, 15, reason);
    }
    if !details.correlation_id.is_empty() {
        put_bytes(out, 16, String::from_utf8_lossy(&details.correlation_id).as_bytes());
    }
    put_text(out, 17, &details.reply_to);
    if let Some(checkpoint) = details.checkpoint.as_deref().and_then(MessageBlob::parse) {
        put_bytes(out, 18, checkpoint.payload);
        put_text(out, 19, checkpoint.content_type);
    }
}

fn put_text(out: &mut Vec<u8>, field: u32, text: &str) {
    if !text.is_empty() {
        put_bytes(out, field, text.as_bytes());
    }
}
