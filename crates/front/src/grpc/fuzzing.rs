//! The decoders of calls and frames, for fuzzing: each takes any bytes. No part of the API.

use bytes::Bytes;
use prost::Message as _;
use sluice_calls::operation::{Hot, Kind};
use sluice_engine::Limits;
use sluice_proto::framing::Deframer;
use sluice_proto::v1::ClientFrame;
use sluice_proto::v1::client_frame::Frame;

use super::call::reads;
use super::methods::all;
use super::rows::read_rows;
use super::schema::schema;
use super::session::{Plain, messages_of, source};
use super::source::MessageSource;
use super::standard::reflected;
use crate::hot::extend::Extensions;
use crate::hot::receive::{RECEIVE_MANY_FIELDS, Terms};
use crate::hot::schedules::Put;
use crate::hot::send::Batch;
use crate::hot::settle::Settlements;
use crate::hot::transactions::Operations;

/// Longest frame that is taken here.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// Reads frames of a session's client, in pieces whose size the first byte names.
pub fn frames(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let mut deframer = Deframer::new(FRAME_BYTES_MAX);
    let mut taken = 0;
    for piece in bytes.chunks(usize::from(*size) + 1) {
        deframer.push(Bytes::copy_from_slice(piece));
        loop {
            let message = match deframer.next() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                // Nothing that follows can be read.
                Err(_) => return,
            };
            taken += message.len() + 5;
            let plain = Plain::read(&message, &Limits::default()).map(|(_, plain)| plain.items().len());
            if let Ok(ClientFrame { frame: Some(frame), .. }) = ClientFrame::decode_lists(message) {
                decode(frame, plain);
            }
        }
        assert!(deframer.pending() <= bytes.len());
    }
    assert!(taken <= bytes.len(), "nothing is read that did not come");
}

fn decode(frame: Frame, plain: Option<usize>) {
    let limits = Limits::default();
    match frame {
        Frame::Send(send) => {
            assert!(plain.is_none_or(|messages| messages == send.messages.len()));
            let bytes = messages_of(&send);
            if let Ok(batch) = source("SendMany", &bytes).and_then(|source| Batch::read(source, &limits)) {
                let (headers, tags, options) = (batch.headers(), batch.tags(), batch.options());
                assert_eq!(batch.items(&headers, &tags, &options).len(), send.messages.len());
            }
        }
        Frame::Settle(settle) => {
            let bytes = settle.encode_to_vec();
            let _ = source("SettleMany", &bytes).map(|source| Settlements::read_mixed(source, &limits));
        }
        Frame::Extend(extend) => {
            let bytes = extend.encode_to_vec();
            let _ = source("ExtendMany", &bytes).map(|source| Extensions::read(source, &limits));
        }
        _ => {}
    }
}

/// The message of a call, which the first byte names.
pub fn call(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let methods: Vec<_> = all().collect();
    let (name, operation) = methods[usize::from(*which) % methods.len()];
    let Some((input, _)) = schema().call(&format!("/sluice.v1.{name}")) else { return };
    let message = schema().message(input);
    let Ok(rows) = read_rows(message, bytes) else { return };
    reads(operation, message, &rows);
    let limits = Limits::default();
    let source = MessageSource::new(message, rows, bytes);
    match operation.kind() {
        Kind::Unary | Kind::Special(_) => {}
        Kind::Hot(call) => match call {
            Hot::Send => drop(Batch::read(source, &limits)),
            Hot::GroupSend => drop(Batch::read_group(source, &limits)),
            Hot::SchedulePut => drop(Put::read(source, &limits)),
            Hot::TransactionCommit | Hot::TransactionStage => drop(Operations::read(source, &limits)),
            Hot::Receive | Hot::ReceiveMany => drop(Terms::read(source, RECEIVE_MANY_FIELDS, 1_000)),
            Hot::Settle => drop(Settlements::read_mixed(source, &limits)),
            Hot::Ack | Hot::Nack | Hot::Release | Hot::Reject | Hot::TransactionClose => {}
            Hot::Extend => drop(Extensions::read(source, &limits)),
        },
    }
}

/// A request to the reflection of what is served.
pub fn reflection(bytes: &[u8]) {
    if let Ok(answer) = reflected(bytes) {
        assert!(answer.len() > bytes.len(), "it repeats the request");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_proto::framing::frame;
    use sluice_proto::v1::{Message, SendMany, SettleMany, Settlement, Unique};

    #[test]
    fn noise_never_panics() {
        let unique = Unique { key: "k".into(), ..Unique::default() };
        let message = Message {
            payload: "a".into(),
            unique: Some(unique.into()),
            priority: Some(3),
            ..Message::default()
        };
        let send = Frame::Send(SendMany {
            queue: "q".into(),
            messages: vec![message.clone(), message],
            ..SendMany::default()
        });
        let item = Settlement {
            receipt: "r".into(),
            outcome: "nack".into(),
            delay_ms: Some(5),
            ..Settlement::default()
        };
        let settle = Frame::Settle(SettleMany { items: vec![item], acks: vec!["x".into()] });
        let mut seed = b"\x40".to_vec();
        for (number, told) in (1..).zip([send, settle]) {
            frame(&ClientFrame { number, frame: Some(told) }, &mut seed);
        }
        frames(&seed);
        let mut random = sluice_calls::testing::Random(29);
        for _ in 0..20_000 {
            let mut bytes = seed.clone();
            random.mutate(&mut bytes);
            frames(&bytes);
            call(&bytes[bytes.len().min(6)..]);
            reflection(&bytes[bytes.len().min(6)..]);
        }
    }
}
