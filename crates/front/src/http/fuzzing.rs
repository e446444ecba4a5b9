//! The decoders of heads of HTTP/1.1, request bodies and query strings, for fuzzing: each takes any bytes. No
//! part of the API.

use sluice_calls::settings::QueueSettingsPatch;
use sluice_calls::{dead, messages, namespaces};
use sluice_engine::Limits;

use super::codec::query::percent_decode;
use super::codec::query_de::from_query;
use crate::hot::extend::Extensions;
use crate::hot::receive::{RECEIVE_MANY_FIELDS, Terms};
use crate::hot::send::Batch;
use crate::hot::settle::{Outcome, Settlements};
use crate::json::Reader;
use crate::json::de::{from_body, from_optional_body};
use crate::net::connection::check_pieces;

/// The decoders of outside bytes. Seeds name them by place: append new ones.
pub const DECODERS: &[fn(&[u8])] =
    &[send, ack, nack, release, reject, settle, extend, receive, settings, dead_choice, namespace, query];

fn send(body: &[u8]) {
    if let Ok(batch) = Reader::new(body).and_then(|reader| Batch::read(reader, &Limits::default())) {
        let bytes = batch.with_items(|items| items.iter().map(|item| item.payload.len()).sum::<usize>());
        assert!(bytes <= body.len());
    }
}

fn ack(body: &[u8]) {
    settle_as(body, Outcome::Ack);
}

fn nack(body: &[u8]) {
    settle_as(body, Outcome::Nack);
}

fn release(body: &[u8]) {
    settle_as(body, Outcome::Release);
}

fn reject(body: &[u8]) {
    settle_as(body, Outcome::Reject);
}

fn settle_as(body: &[u8], outcome: Outcome) {
    if let Ok(settlements) = Reader::new(body)
        .and_then(|reader| Settlements::read_one_outcome(reader, outcome, &Limits::default()))
    {
        settlements.items();
    }
}

fn settle(body: &[u8]) {
    if let Ok(settlements) =
        Reader::new(body).and_then(|reader| Settlements::read_mixed(reader, &Limits::default()))
    {
        settlements.items();
    }
}

fn extend(body: &[u8]) {
    if let Ok(extensions) = Reader::new(body).and_then(|reader| Extensions::read(reader, &Limits::default()))
    {
        extensions.items();
    }
}

fn receive(body: &[u8]) {
    if let Ok(terms) = Reader::new(body)
        .and_then(|reader| Terms::read(reader, RECEIVE_MANY_FIELDS, Limits::default().receive_messages))
    {
        // A list of queues without one is refused only here.
        let _ = terms.queues();
    }
}

fn settings(body: &[u8]) {
    let _ = from_optional_body::<QueueSettingsPatch>(body);
}

fn dead_choice(body: &[u8]) {
    let _ = from_body::<dead::Delete>(body);
}

fn namespace(body: &[u8]) {
    let _ = from_optional_body::<namespaces::Put>(body);
}

fn query(body: &[u8]) {
    let Ok(text) = std::str::from_utf8(body) else { return };
    let _ = percent_decode(text, false);
    let _ = from_query::<messages::List>(Some(text), true);
}

/// Heads of HTTP/1.1, and the bodies behind them, in pieces. The first byte is how many sizes of pieces
/// follow, each of a byte; the rest is what comes on the connection.
///
/// # Panics
/// When the pieces make a difference.
pub fn heads(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let (sizes, bytes) = rest.split_at(usize::from(count).min(rest.len()));
    check_pieces(bytes, sizes.iter().map(|size| usize::from(*size)).cycle());
}
