//! The decoders of request bodies and query strings, for fuzzing: each takes any bytes. No part of the API.

use sluice_engine::Limits;

use super::codec::query::{Params, percent_decode};
use super::codec::settings::read_patch;
use super::handlers::{dead, namespaces};
use super::hot::extend::Extensions;
use super::hot::receive::{RECEIVE_MANY_FIELDS, Terms};
use super::hot::send::Batch;
use super::hot::settle::{Outcome, Settlements};

/// What decodes outside bytes. Seeds name them by place: append new ones.
pub const DECODERS: &[fn(&[u8])] =
    &[send, ack, nack, release, reject, settle, extend, receive, settings, dead_choice, namespace, query];

fn send(body: &[u8]) {
    if let Ok(batch) = Batch::read(body, &Limits::default()) {
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
    if let Ok(settlements) = Settlements::read_one_outcome(body, outcome, &Limits::default()) {
        settlements.items();
    }
}

fn settle(body: &[u8]) {
    if let Ok(settlements) = Settlements::read_mixed(body, &Limits::default()) {
        settlements.items();
    }
}

fn extend(body: &[u8]) {
    if let Ok(extensions) = Extensions::read(body, &Limits::default()) {
        extensions.items();
    }
}

fn receive(body: &[u8]) {
    if let Ok(terms) = Terms::read(body, RECEIVE_MANY_FIELDS, Limits::default().receive_messages) {
        // A list of queues without one is refused only here.
        let _ = terms.queues();
    }
}

fn settings(body: &[u8]) {
    let _ = read_patch(body);
}

fn dead_choice(body: &[u8]) {
    let _ = dead::read_choice(body, &Limits::default());
}

fn namespace(body: &[u8]) {
    let _ = namespaces::Request::read(body, namespaces::PUT_FIELDS);
}

fn query(body: &[u8]) {
    let Ok(text) = std::str::from_utf8(body) else { return };
    let _ = percent_decode(text, false);
    if let Ok(params) = Params::read(Some(text), &["state", "cursor", "limit", "payload"]) {
        let _ = params.integer("limit", 1, 1_000, 100);
        let _ = params.boolean("payload", true);
    }
}
