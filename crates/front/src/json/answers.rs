//! The answers of the calls that carry messages and receipts.

use http::StatusCode;
use sluice_calls::CallError;
use sluice_calls::hot::{Delivered, Sent};
use sluice_calls::transactions::Begun;
use sluice_calls::unary::Done;
use sluice_engine::{Error, MessageId};

use super::item_results::results;
use super::message::{write_checkpoint, write_payload_and, write_request, write_tags};
use super::{Json, Object, key, object, push_number, push_text};
use crate::hot::{Answer, SentGroup};

/// The answer as a document.
///
/// # Errors
/// That of the one item; `internal`, when the answer cannot be written.
pub(crate) fn answer(answer: Answer) -> Result<Json, CallError> {
    match answer {
        Answer::Sent { sent: stored, is_list } => Ok(sent(&stored, is_list)),
        Answer::Delivered(messages) => Ok(delivered(&messages)),
        Answer::Received(received) => {
            Ok(Json::new(StatusCode::OK, encode(&received.messages, received.begun.as_ref())))
        }
        Answer::Settled { results, is_list } => settled(results, is_list),
        Answer::Group(group) => Ok(sent_group(&group)),
        Answer::Schedule(done) => Json::of(&done),
        Answer::Committed(committed) => Json::of(&Done::from(*committed)),
        Answer::Staged(results) => Json::of(&Done::from(*results)),
    }
}

/// `{"id"}` or `{"ids"}`. What a message by its unique key, or the request by its idempotency key, repeats is
/// a duplicate.
pub(crate) fn sent(sent: &Sent, is_list: bool) -> Json {
    let mut out = Vec::with_capacity(64 + sent.count as usize * 23);
    object(&mut out, |o| {
        if is_list {
            o.list("ids", sent.ids(), push_id);
        } else {
            o.ascii("id", &sent.first.to_text());
        }
        o.boolean("duplicate", sent.duplicate || (!is_list && sent.duplicates.is_some()));
        if is_list && let Some(duplicates) = &sent.duplicates {
            o.list("duplicates", duplicates.items.iter(), |out, item| push_number(out, u64::from(*item)));
        }
    });
    Json::new(StatusCode::CREATED, out)
}

fn push_id(out: &mut Vec<u8>, id: MessageId) {
    out.push(b'"');
    out.extend_from_slice(&id.to_text());
    out.push(b'"');
}

fn sent_group(sent: &SentGroup) -> Json {
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.ascii("group", &sent.group().to_text());
        o.list("ids", sent.ids(), push_id);
        o.boolean("duplicate", sent.duplicate());
    });
    Json::new(StatusCode::CREATED, out)
}

/// `{"results"}`; of one item that succeeded `{}`.
pub(crate) fn settled(done: Vec<Result<(), Error>>, is_list: bool) -> Result<Json, CallError> {
    if is_list {
        return Ok(results(&done));
    }
    match done.into_iter().next() {
        None | Some(Ok(())) => Ok(Json::empty_object()),
        Some(Err(Error::AlreadySettled { .. })) => {
            let mut out = Vec::new();
            object(&mut out, |o| o.boolean("already_settled", true));
            Ok(Json::new(StatusCode::OK, out))
        }
        Some(Err(error)) => Err(error.into()),
    }
}

/// `{"messages"}`
pub(crate) fn delivered(delivered: &[Delivered]) -> Json {
    Json::new(StatusCode::OK, encode(delivered, None))
}

/// `begun`: the transaction that was begun for the messages.
fn encode(delivered: &[Delivered], begun: Option<&Begun>) -> Vec<u8> {
    let checkpoint = |message: &Delivered| Some(message.details.as_ref()?.checkpoint.as_ref()?.len());
    let bytes = |message: &Delivered| message.blob.len() + checkpoint(message).unwrap_or(0);
    let blobs: usize = delivered.iter().map(bytes).sum();
    // 320: the fields around a payload; 1/8: escapes.
    let mut out = Vec::with_capacity(32 + blobs + blobs / 8 + delivered.len() * 320);
    object(&mut out, |o| {
        o.list("messages", delivered, |out, message| {
            object(out, |o| write_delivered(o, message));
        });
        if let Some(begun) = begun {
            o.ascii("transaction", begun.transaction().as_bytes());
            o.number("expires_at_ms", begun.expires_at_ms());
        }
    });
    out
}

fn write_delivered(o: &mut Object<'_>, message: &Delivered) {
    let delivery = &message.delivery;
    o.ascii("id", &delivery.receipt.id.to_text());
    o.ascii("receipt", &delivery.receipt.to_text());
    push_text(o.key(key!("queue")), &message.queue);
    let added = message.details.as_ref().map_or(&[][..], |details| &details.headers);
    write_payload_and(o, &message.blob, added);
    write_tags_of(o, message);
    o.number_by_key(key!("priority"), u64::from(delivery.priority));
    o.number_by_key(key!("attempt"), u64::from(delivery.attempt));
    o.number_by_key(key!("max_attempts"), u64::from(delivery.max_attempts));
    o.number_by_key(key!("deliveries"), u64::from(delivery.deliveries));
    o.number_by_key(key!("sent_at_ms"), delivery.sent_at_us / 1_000);
    o.number_by_key(key!("lease_until_ms"), delivery.lease_until_us / 1_000);
    if let Some(details) = &message.details {
        write_request(o, &details.correlation_id, &details.reply_to);
        if let Some(checkpoint) = &details.checkpoint {
            write_checkpoint(o, checkpoint);
        }
        if let Some(reason) = details.reason {
            o.text("from_queue", &details.from_queue);
            o.text("reason", reason);
        }
    }
}

/// Appends the tags of a delivered message: those that it was sent with, unless others have replaced them.
fn write_tags_of(o: &mut Object<'_>, message: &Delivered) {
    if let Some(blob) = message.tagged() {
        write_tags(o, blob.tags());
    }
}

#[cfg(test)]
mod tests {
    use sluice_calls::hot::settle::in_order;

    use super::*;

    #[test]
    fn refused_items_stand_at_their_place() {
        let error = |text: &str| Error::InvalidReceipt { receipt: text.into() };
        let done = vec![Ok(()), Err(Error::AlreadySettled { receipt: "r".into() })];
        let answer =
            settled(in_order(done, vec![(0, error("a")), (2, error("b")), (4, error("c"))]), true).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&answer.document).unwrap();
        let oks: Vec<bool> =
            value["results"].as_array().unwrap().iter().map(|r| r["ok"].as_bool().unwrap()).collect();
        assert_eq!(oks, [false, true, false, true, false]);
        assert_eq!(value["results"][3]["already_settled"], true);
        assert_eq!(value["results"][4]["error"]["details"]["receipt"], "c");
    }
}
