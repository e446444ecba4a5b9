//! Bounds of lists, held before anything is made of a message: items of a list take many times more in memory
//! than the two bytes that each needs on its way. What is within these bounds still has its own rules to
//! follow.

use sluice_calls::{Fault, Read};
use sluice_engine::Error;
use sluice_engine::item::STEPS_MAX;
use sluice_engine::limits::{LOCK_KEYS_MAX, Limits, PARENTS_MAX, RECEIVE_QUEUES_MAX, TAGS_MAX};

use super::schema::{Field, Kind, MessageType, schema};
use super::wire::{INVALID, Raw, next_field};

/// Length in bytes below which a message is not searched: no list in it can be too long.
const FEW_BYTES: usize = 256;
/// The same length for a whole frame of a session; most frames are shorter.
const SMALL_FRAME_BYTES: usize = 8 << 10;
/// Maximum occurrences of a field that is no list: the last one counts, and few clients write more than one.
const REPEATS_MAX: u32 = 4;
/// Most fields of a message of the package.
const FIELDS_MAX: usize = 64;
/// The field of a frame that is its number.
const NUMBER: u32 = 1;

/// A frame with a list that is too long.
#[derive(Debug)]
pub(super) struct TooLong {
    /// The frame's number.
    pub(super) number: u64,
    /// The error, with the name of the list and its limit.
    pub(super) fault: Box<Fault>,
}

/// Looks at the lists of a frame of a client, before it is decoded. Finds out nothing of small ones.
///
/// # Errors
/// `invalid_protobuf`.
pub(super) fn check_frame(bytes: &[u8], limits: &Limits) -> Read<Option<TooLong>> {
    if bytes.len() <= SMALL_FRAME_BYTES {
        return Ok(None);
    }
    check_large_frame(bytes, limits)
}

#[inline(never)]
fn check_large_frame(mut bytes: &[u8], limits: &Limits) -> Read<Option<TooLong>> {
    let frame = schema().named("ClientFrame");
    let (mut number, mut fault, mut fields) = (0, None, 0);
    while let Some((of_field, value)) = next_field(&mut bytes)? {
        match (of_field, value, frame.by_number(of_field).map(|at| frame.fields[at].kind)) {
            (NUMBER, Raw::Number(given), _) => number = given,
            // Those of one kind become one frame together.
            (_, Raw::Bytes(_), Some(Kind::Message(_))) if fields == REPEATS_MAX => {
                return Err(Fault::new(
                    INVALID,
                    format!("a frame says at most {REPEATS_MAX} times what it is"),
                ));
            }
            (_, Raw::Bytes(value), Some(Kind::Message(at))) => {
                fields += 1;
                fault = fault.or(check(schema().message(at), value, limits)?);
            }
            _ => {}
        }
    }
    Ok(fault.map(|fault| TooLong { number, fault }))
}

/// Looks at the lists of a message and of those within it; the first that is too long.
///
/// # Errors
/// `invalid_protobuf`.
pub(super) fn check(message: &MessageType, bytes: &[u8], limits: &Limits) -> Read<Option<Box<Fault>>> {
    if bytes.len() <= FEW_BYTES {
        return Ok(None);
    }
    let mut counts = [0u32; FIELDS_MAX];
    let (mut rest, mut has_list) = (bytes, false);
    // Mostly there is a payload and little behind it. A list that has begun is counted to its end.
    while (rest.len() > FEW_BYTES || has_list)
        && let Some((number, value)) = next_field(&mut rest)?
    {
        let Some(at) = message.by_number(number).filter(|at| *at < FIELDS_MAX) else { continue };
        let field = &message.fields[at];
        counts[at] += 1;
        has_list |= is_list(field);
        match (field.kind, value) {
            _ if counts[at] > most(field, limits) => {}
            (Kind::Message(inner) | Kind::Entries(inner), Raw::Bytes(value)) => {
                if let Some(fault) = check(schema().message(inner), value, limits)? {
                    let fault = if is_list(field) { fault.at(counts[at] as usize - 1) } else { fault };
                    return Ok(Some(fault.inside(&field.name)));
                }
            }
            _ => {}
        }
    }
    let mut counted = message.fields.iter().zip(counts);
    let over = counted.find(|(field, count)| *count > most(field, limits));
    Ok(over.map(|(field, count)| refusal(field, count, limits)))
}

fn is_list(field: &Field) -> bool {
    field.is_list || matches!(field.kind, Kind::Entries(_))
}

/// Most occurrences of a field.
fn most(field: &Field, limits: &Limits) -> u32 {
    if !is_list(field) {
        return REPEATS_MAX;
    }
    match field.name.as_str() {
        "headers" => limits.headers,
        "tags" => TAGS_MAX as u32,
        "queues" => RECEIVE_QUEUES_MAX as u32,
        "keys" => LOCK_KEYS_MAX as u32,
        "depends_on" => PARENTS_MAX as u32,
        "chain" => STEPS_MAX as u32,
        _ => limits.batch_items,
    }
}

fn refusal(field: &Field, count: u32, limits: &Limits) -> Box<Fault> {
    let limit = most(field, limits);
    let what = match field.name.as_str() {
        "messages" => "messages",
        "ids" => "ids",
        "items" | "acks" | "resume" => "items",
        _ => {
            let given = if is_list(field) { "at most" } else { "the field is given once; at most" };
            return Fault::invalid(format!("{given} {limit}, got {count}")).inside(&field.name);
        }
    };
    Error::BatchTooLarge { what, size: count.into(), limit: limit.into() }.into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message as _;
    use sluice_proto::v1::client_frame::Frame;
    use sluice_proto::v1::{Attach, ClientFrame, Header, Message, SendMany, SettleMany};

    use super::*;
    use crate::grpc::methods::all;

    fn check_of(frame: Frame) -> Option<(u64, &'static str, String)> {
        let bytes = ClientFrame { number: 9, frame: Some(frame) }.encode_to_vec();
        let found = check_frame(&bytes, &Limits::default()).unwrap()?;
        Some((found.number, found.fault.code, found.fault.field))
    }

    fn texts(count: usize) -> Vec<Bytes> {
        vec![Bytes::from_static(b"aaaa"); count]
    }

    #[test]
    fn lists_of_frames_are_counted_before_they_are_read() {
        let attach = |queues| Attach { queues: texts(queues), resume: texts(10_000), ..Attach::default() };
        assert_eq!(check_of(Frame::Attach(attach(64))), None);
        let refused = |code, field: &str| Some((9, code, field.to_owned()));
        assert_eq!(check_of(Frame::Attach(attach(2_000_000))), refused("invalid_argument", "queues"));
        let settle = |acks| Frame::Settle(SettleMany { items: vec![], acks: texts(acks) });
        assert_eq!(check_of(settle(10_000)), None);
        assert_eq!(check_of(settle(10_001)), refused("batch_too_large", ""));

        let send = |count, tags, headers| {
            let headers = vec![Header { name: "a".into(), value: "b".into() }; headers];
            let message =
                Message { payload: vec![0; 20].into(), tags: texts(tags), headers, ..Message::default() };
            let mut messages = vec![Message::default(); count];
            messages.push(message);
            Frame::Send(SendMany { messages, ..SendMany::default() })
        };
        assert_eq!(check_of(send(9_999, 16, 64)), None);
        assert_eq!(check_of(send(10_000, 16, 64)), refused("batch_too_large", ""));
        assert_eq!(check_of(send(9_999, 80_000, 0)), refused("invalid_argument", "messages[9999].tags"));
        assert_eq!(check_of(send(1, 0, 80_000)), refused("invalid_argument", "messages[1].headers"));
    }

    #[test]
    fn what_is_no_list_and_comes_often_is_refused() {
        let one = ClientFrame {
            number: 1,
            frame: Some(Frame::Attach(Attach { consumer: 1, queues: texts(64), ..Attach::default() })),
        };
        let often = one.encode_to_vec().repeat(1_000);
        assert_eq!(check_frame(&often, &Limits::default()).unwrap_err().code, "invalid_protobuf");
        let purge = schema().named("QueueRequest");
        let often = [purge.fields[0].number as u8 * 8 + 2, 0].repeat(1_000);
        assert!(check(purge, &often, &Limits::default()).unwrap().is_some());
        assert!(check(purge, &often[..8], &Limits::default()).unwrap().is_none());
    }

    #[test]
    fn what_clients_send_has_few_fields_and_is_not_nested_without_end() {
        fn depth_of(message: &MessageType, depth: usize) -> usize {
            assert!(message.fields.len() <= FIELDS_MAX && depth < 16);
            let inner = message.fields.iter().filter_map(|field| match field.kind {
                Kind::Message(at) | Kind::Entries(at) => Some(depth_of(schema().message(at), depth + 1)),
                _ => None,
            });
            inner.max().unwrap_or(depth)
        }
        depth_of(schema().named("ClientFrame"), 0);
        for (name, _) in all() {
            let (input, _) = schema().call(&format!("/sluice.v1.{name}")).unwrap();
            depth_of(schema().message(input), 0);
        }
    }
}
