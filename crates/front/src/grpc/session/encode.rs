//! Frames of the server, written straight into what waits for the connection.

use sluice_calls::CallError;
use sluice_calls::hot::{Delivered, Sent};
use sluice_engine::Error;
use sluice_engine::id::Receipt;

use crate::grpc::answers::{delivered, entry, item_error, sent_messages};
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

/// `FrameResult` of a call.
pub(super) fn answer(out: &mut Vec<u8>, number: u64, answer: &[u8]) {
    put_message(out, frame::RESULT, |out| {
        put_number(out, 1, number);
        put_bytes(out, 7, answer);
    });
}

/// `FrameResult` of a send.
pub(super) fn sent(out: &mut Vec<u8>, number: u64, sent: &Sent) {
    put_message(out, frame::RESULT, |out| {
        put_number(out, 1, number);
        sent_messages(out, 4, sent);
    });
}
