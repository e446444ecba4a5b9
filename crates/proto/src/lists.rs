//! Frames whose lists are long. Before one is decoded its items are counted, so that they get their room at
//! once: an item is large in memory, and a list that grows into its room is copied again and again. One that
//! is encoded is written from the front to the end, its length filled in later: to compute that first takes
//! as long as writing.

use bytes::Bytes;
use prost::{DecodeError, Message as _};

use crate::v1::{ClientFrame, Deliveries, FrameResult, SendMany, ServerFrame, SettleMany};
use crate::v1::{client_frame, server_frame};
use crate::wire::{Raw, next_field, put_bytes, put_message, put_tag};

/// Shorter frames hold so little that nothing is gained.
const SHORT_BYTES: usize = 512;
/// For so many items there is room at once: as many as the server takes and gives.
const ROOM_MAX: usize = 10_000;

/// Fields of the contract.
mod field {
    pub(super) const CLIENT_SETTLE: u32 = 5;
    pub(super) const CLIENT_SEND: u32 = 7;
    pub(super) const SERVER_DELIVERIES: u32 = 1;
    pub(super) const SERVER_RESULT: u32 = 2;
    pub(super) const SEND_QUEUE: u32 = 1;
    pub(super) const SEND_MESSAGES: u32 = 2;
    pub(super) const SEND_IDEMPOTENCY_KEY: u32 = 3;
    pub(super) const SETTLE_ITEMS: u32 = 1;
    pub(super) const SETTLE_ACKS: u32 = 2;
    pub(super) const DELIVERIES_MESSAGES: u32 = 2;
    pub(super) const RESULT_IDS: u32 = 4;
}

impl ClientFrame {
    /// As [`prost::Message::encode`], in one go.
    pub fn encode_lists(&self, out: &mut Vec<u8>) {
        use client_frame::Frame;
        let number = ClientFrame { number: self.number, frame: None };
        let whole = match &self.frame {
            Some(Frame::Send(_) | Frame::Settle(_)) => &number,
            _ => self,
        };
        // Fails only without room, and a `Vec` makes room.
        let _ = whole.encode(out);
        match &self.frame {
            Some(Frame::Send(SendMany { queue, messages, idempotency_key })) => {
                put_message(out, field::CLIENT_SEND, |out| {
                    put_bytes(out, field::SEND_QUEUE, queue);
                    for message in messages {
                        put_tag(out, field::SEND_MESSAGES);
                        let _ = message.encode_length_delimited(out);
                    }
                    put_bytes(out, field::SEND_IDEMPOTENCY_KEY, idempotency_key);
                });
            }
            Some(Frame::Settle(SettleMany { items, acks })) => {
                put_message(out, field::CLIENT_SETTLE, |out| {
                    for item in items {
                        put_tag(out, field::SETTLE_ITEMS);
                        let _ = item.encode_length_delimited(out);
                    }
                    acks.iter().for_each(|ack| put_bytes(out, field::SETTLE_ACKS, ack));
                })
            }
            _ => {}
        }
    }

    /// As [`prost::Message::decode`], with room for all messages and acks at once. Whoever does not trust the
    /// other side looks before at how many there are: an item takes many times more in memory than on its
    /// way.
    ///
    /// # Errors
    /// When the bytes are no frame.
    pub fn decode_lists(bytes: Bytes) -> Result<ClientFrame, DecodeError> {
        use client_frame::Frame;
        let empty = inner(&bytes).and_then(|(kind, inner)| match kind {
            field::CLIENT_SEND => {
                let messages = Vec::with_capacity(count(inner, field::SEND_MESSAGES));
                Some(Frame::Send(SendMany { messages, ..SendMany::default() }))
            }
            field::CLIENT_SETTLE => {
                let acks = Vec::with_capacity(count(inner, field::SETTLE_ACKS));
                Some(Frame::Settle(SettleMany { acks, ..SettleMany::default() }))
            }
            _ => None,
        });
        let mut frame = ClientFrame { number: 0, frame: empty };
        frame.merge(bytes)?;
        Ok(frame)
    }
}

impl ServerFrame {
    /// As [`prost::Message::decode`], with room for all deliveries and ids at once.
    ///
    /// # Errors
    /// When the bytes are no frame.
    pub fn decode_lists(bytes: Bytes) -> Result<ServerFrame, DecodeError> {
        use server_frame::Frame;
        let empty = inner(&bytes).and_then(|(kind, inner)| match kind {
            field::SERVER_DELIVERIES => {
                let messages = Vec::with_capacity(count(inner, field::DELIVERIES_MESSAGES));
                Some(Frame::Deliveries(Deliveries { messages, ..Deliveries::default() }))
            }
            field::SERVER_RESULT => {
                let ids = Vec::with_capacity(count(inner, field::RESULT_IDS));
                Some(Frame::Result(FrameResult { ids, ..FrameResult::default() }))
            }
            _ => None,
        });
        let mut frame = ServerFrame { frame: empty };
        frame.merge(bytes)?;
        Ok(frame)
    }
}

/// The first field of a long frame that is a message: what kind it is, and its bytes. Decoding begins from an
/// empty one of that kind, so that to be wrong here costs room and nothing else.
fn inner(mut frame: &[u8]) -> Option<(u32, &[u8])> {
    if frame.len() < SHORT_BYTES {
        return None;
    }
    loop {
        if let (number, Raw::Bytes(value)) = next_field(&mut frame).ok()?? {
            return Some((number, value));
        }
    }
}

/// Number of occurrences of a field, as far as the bytes can be read.
fn count(mut bytes: &[u8], field: u32) -> usize {
    let fields = std::iter::from_fn(|| next_field(&mut bytes).ok()?);
    fields.filter(|(number, _)| *number == field).take(ROOM_MAX).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{Delivered, Message};
    use crate::v1::{Ping, Settlement};

    fn send(messages: usize) -> ClientFrame {
        let message = Message { payload: vec![7; 100].into(), priority: Some(3), ..Message::default() };
        let send = SendMany { queue: "q".into(), messages: vec![message; messages], ..SendMany::default() };
        ClientFrame { number: 300, frame: Some(client_frame::Frame::Send(send)) }
    }

    fn deliveries(messages: usize) -> ServerFrame {
        let message = Delivered { id: "m1".into(), payload: vec![7; 100].into(), ..Delivered::default() };
        let deliveries = Deliveries { consumer: 1, messages: vec![message; messages] };
        ServerFrame { frame: Some(server_frame::Frame::Deliveries(deliveries)) }
    }

    #[test]
    fn the_same_comes_out_as_without_counting() {
        for messages in [0, 1, 3, 64] {
            let (client, server) = (send(messages), deliveries(messages));
            assert_eq!(ClientFrame::decode_lists(client.encode_to_vec().into()).unwrap(), client);
            assert_eq!(ServerFrame::decode_lists(server.encode_to_vec().into()).unwrap(), server);
        }
        let acks = vec![Bytes::from_static(b"a receipt of some bytes"); 50];
        let settle = client_frame::Frame::Settle(SettleMany { items: Vec::new(), acks });
        let settle = ClientFrame { number: 1, frame: Some(settle) };
        assert_eq!(ClientFrame::decode_lists(settle.encode_to_vec().into()).unwrap(), settle);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let item = Settlement { receipt: "r".into(), outcome: "nack".into(), ..Settlement::default() };
        let settle = SettleMany { items: vec![item; 3], acks: vec![Bytes::from(vec![b'a'; 200]); 3] };
        let key = SendMany { idempotency_key: "once".into(), ..SendMany::default() };
        let frames = [
            client_frame::Frame::Settle(settle),
            client_frame::Frame::Send(key),
            client_frame::Frame::Ping(Ping {}),
        ];
        let frames = (1..).zip(frames).map(|(number, frame)| ClientFrame { number, frame: Some(frame) });
        for frame in frames.chain([send(0), send(64), ClientFrame::default()]) {
            let mut encoded = Vec::new();
            frame.encode_lists(&mut encoded);
            assert_eq!(ClientFrame::decode(&encoded[..]).unwrap(), frame);
        }
    }

    #[test]
    fn lists_have_their_room_at_once() {
        let decoded = ClientFrame::decode_lists(send(50).encode_to_vec().into()).unwrap();
        let Some(client_frame::Frame::Send(send)) = decoded.frame else { panic!("{decoded:?}") };
        assert_eq!(send.messages.capacity(), 50);
        let decoded = ServerFrame::decode_lists(deliveries(50).encode_to_vec().into()).unwrap();
        let Some(server_frame::Frame::Deliveries(deliveries)) = decoded.frame else { panic!("{decoded:?}") };
        assert_eq!(deliveries.messages.capacity(), 50);
    }

    #[test]
    fn what_is_cut_or_changed_is_decoded_as_before() {
        let whole = send(20).encode_to_vec();
        for length in 0..whole.len() {
            let cut = Bytes::copy_from_slice(&whole[..length]);
            assert_eq!(ClientFrame::decode_lists(cut.clone()).ok(), ClientFrame::decode(cut).ok());
        }
        for at in 0..whole.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                let changed = Bytes::from(changed);
                assert_eq!(
                    ClientFrame::decode_lists(changed.clone()).ok(),
                    ClientFrame::decode(changed).ok()
                );
            }
        }
    }
}
