//! Bytes to records. Nothing is copied: lists stay in the body and are walked there.

use crate::error::Error;
use crate::queue::record::delivery::{
    ExtendRecord, ReceiveRecord, SettleRecord, decode_extend, decode_receive, decode_settle,
};
use crate::queue::record::send::{SendRecord, decode_send};
use crate::record::table::{RareRecord, head, layout, read_rare};
use crate::wire::Reader;

/// The function that reads a record. The hot ones are read apart, and never lie in one enum: their fields
/// stay in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tick,
    Send,
    Receive,
    Settle,
    Extend,
    Rare,
}

/// Tells how to read a body. A body that no [`crate::Command`] wrote is a bug or damage: [`Error::Internal`],
/// here and from the functions that read it.
#[inline(always)]
pub(crate) fn kind_of(body: &[u8]) -> Result<Kind, Error> {
    match body.first_chunk::<2>() {
        Some(&head::TICK) => Ok(Kind::Tick),
        Some(&head::SEND) => Ok(Kind::Send),
        Some(&head::RECEIVE) => Ok(Kind::Receive),
        Some(&head::SETTLE) => Ok(Kind::Settle),
        Some(&head::EXTEND) => Ok(Kind::Extend),
        Some(&[kind, found]) if found == layout(kind) => Ok(Kind::Rare),
        _ => Err(unreadable(body)),
    }
}

/// Reads the fields after kind and layout, all of them and no more.
#[inline]
fn read<'a, T>(body: &'a [u8], fields: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Result<T, Error> {
    let mut reader = Reader::new(body);
    reader.array::<2>();
    match fields(&mut reader) {
        Some(record) if reader.is_empty() => Ok(record),
        _ => Err(unreadable(body)),
    }
}

#[inline]
pub(crate) fn send(body: &[u8]) -> Result<SendRecord<'_>, Error> {
    read(body, decode_send)
}

#[inline]
pub(crate) fn receive(body: &[u8]) -> Result<ReceiveRecord<'_>, Error> {
    read(body, decode_receive)
}

#[inline]
pub(crate) fn settle(body: &[u8]) -> Result<SettleRecord<'_>, Error> {
    read(body, decode_settle)
}

#[inline]
pub(crate) fn extend(body: &[u8]) -> Result<ExtendRecord<'_>, Error> {
    read(body, decode_extend)
}

#[cold]
pub(crate) fn rare(body: &[u8]) -> Result<RareRecord<'_>, Error> {
    read(body, |reader| read_rare(body[0], reader))
}

#[cold]
fn unreadable(body: &[u8]) -> Error {
    let reason = match body {
        &[kind, found, ..] if found != layout(kind) => {
            format!("record kind {kind} has layout {found}, this program reads only layout {}", layout(kind))
        }
        [kind, ..] => format!("a record of kind {kind} and {} bytes cannot be read", body.len()),
        [] => "an empty record".into(),
    };
    Error::Internal { reason }
}
