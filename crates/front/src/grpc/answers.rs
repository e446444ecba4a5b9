//! The answers of the calls that carry messages and receipts, and what frames of a session have of them.

use sluice_calls::hot::receive::with_added;
use sluice_calls::hot::{Delivered, Sent};
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::error::FieldValue;

use super::ser;
use super::wire::{put_bytes, put_message, put_number};
use crate::hot::{Answer, SentGroup};

/// Writes an answer as the message `output`.
///
/// # Errors
/// When the answer has a field that the message has not: tests hold the two against each other.
pub(super) fn encode(output: usize, answer: &Answer) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::new();
    match answer {
        Answer::Sent { sent, .. } => send_response(&mut out, sent),
        Answer::Delivered(messages) => receive_response(&mut out, messages),
        Answer::Received(received) => {
            receive_response(&mut out, &received.messages);
            if let Some(begun) = &received.begun {
                put_bytes(&mut out, 2, begun.transaction().as_bytes());
                put_number(&mut out, 3, begun.expires_at_ms());
            }
        }
        Answer::Settled { results, .. } => {
            results.iter().for_each(|result| put_message(&mut out, 1, |out| item_result(out, result)));
        }
        Answer::Group(sent) => send_group_response(&mut out, sent),
        Answer::Schedule(done) => return ser::encode(output, &done.answer),
        Answer::Committed(committed) => return ser::encode(output, committed),
        Answer::Staged(results) => return ser::encode(output, results),
    }
    Ok(out)
}

/// `SendResponse`.
fn send_response(out: &mut Vec<u8>, sent: &Sent) {
    sent_messages(out, 1, sent);
}

/// `ReceiveResponse`.
fn receive_response(out: &mut Vec<u8>, messages: &[Delivered]) {
    messages.iter().for_each(|message| put_message(out, 1, |out| delivered(out, message)));
}

/// Writes ids, `duplicate` and `duplicates`, under this number and the two behind it.
pub(super) fn sent_messages(out: &mut Vec<u8>, first: u32, sent: &Sent) {
    sent.ids().for_each(|id| put_bytes(out, first, &id.to_text()));
    if sent.duplicate {
        put_number(out, first + 1, 1);
    }
    for item in sent.duplicates.iter().flat_map(|duplicates| &duplicates.items) {
        put_number(out, first + 2, (*item).into());
    }
}

/// `SendGroupResponse`.
fn send_group_response(out: &mut Vec<u8>, sent: &SentGroup) {
    put_bytes(out, 1, &sent.group().to_text());
    sent.ids().for_each(|id| put_bytes(out, 2, &id.to_text()));
    if sent.duplicate() {
        put_number(out, 3, 1);
    }
}

/// `ItemResult`.
fn item_result(out: &mut Vec<u8>, result: &Result<(), Error>) {
    match result {
        Ok(()) => put_number(out, 1, 1),
        Err(Error::AlreadySettled { .. }) => {
            put_number(out, 1, 1);
            put_number(out, 2, 1);
        }
        Err(error) => put_message(out, 3, |out| item_error(out, error)),
    }
}

/// `Error` of an item.
pub(super) fn item_error(out: &mut Vec<u8>, error: &Error) {
    put_bytes(out, 1, error.code().as_bytes());
    put_bytes(out, 2, error.to_string().as_bytes());
    error.fields(|name, value| {
        put_message(out, 3, |out| match value {
            FieldValue::Text(text) => entry(out, name, text),
            FieldValue::Number(number) => entry(out, name, &number.to_string()),
        });
    });
}

/// A name and its value.
pub(super) fn entry(out: &mut Vec<u8>, name: &str, value: &str) {
    put_bytes(out, 1, name.as_bytes());
    put_bytes(out, 2, value.as_bytes());
}

/// `Delivered`.
pub(super) fn delivered(out: &mut Vec<u8>, message: &Delivered) {
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
