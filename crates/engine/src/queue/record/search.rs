//! The layout of terms of messages.

use crate::command::RecordSink;
use crate::id::{NamespaceId, QueueId};
use crate::limits::MESSAGE_TERMS_MAX;
use crate::search::{SearchFill, SearchTerm};
use crate::wire::{Put, Reader};

/// Terms of messages of a queue.
#[derive(Clone, Copy)]
pub(crate) struct FillRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) queue: QueueId,
    pub(crate) began: u64,
    pub(crate) from: u64,
    pub(crate) until: u64,
    count: u32,
    messages: Reader<'a>,
}

/// A message with its terms.
pub(crate) struct FilledRecord<'a> {
    pub(crate) sequence: u64,
    pub(crate) source: u64,
    terms: &'a [[u8; 4]],
}

impl<'a> FilledRecord<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<FilledRecord<'a>> {
        let (sequence, source, count) = (reader.u64()?, reader.u64()?, usize::from(reader.u8()?));
        let (terms, _) = reader.raw(count * 4)?.as_chunks::<4>();
        (count <= MESSAGE_TERMS_MAX).then_some(FilledRecord { sequence, source, terms })
    }

    pub(crate) fn terms(&self) -> impl Iterator<Item = SearchTerm> + use<'a> {
        self.terms.iter().map(|bytes| SearchTerm(u32::from_le_bytes(*bytes)))
    }
}

impl<'a> FillRecord<'a> {
    pub(crate) fn messages(&self) -> impl Iterator<Item = FilledRecord<'a>> + use<'a> {
        let mut reader = self.messages;
        (0..self.count).map_while(move |_| FilledRecord::read(&mut reader))
    }
}

pub(crate) fn encode_fill(first: [u8; 2], fill: &SearchFill<'_>, sink: &mut impl RecordSink) {
    let mut out = Vec::with_capacity(64 + fill.messages.len() * 24);
    out.raw(&first);
    out.u32(fill.namespace.0);
    out.u32(fill.queue.0);
    [fill.began, fill.from, fill.until].into_iter().for_each(|number| out.u64(number));
    out.u32(fill.messages.len() as u32);
    for message in fill.messages {
        out.u64(message.sequence);
        out.u64(message.source);
        out.u8(message.terms.len() as u8);
        message.terms.iter().for_each(|term| out.u32(term.0));
    }
    sink.body(&out);
}

/// Reads what [`encode_fill`] wrote. Messages that are not in order are nothing that it wrote.
pub(crate) fn decode_fill<'a>(reader: &mut Reader<'a>) -> Option<FillRecord<'a>> {
    let (namespace, queue) = (NamespaceId(reader.u32()?), QueueId(reader.u32()?));
    let (began, from, until) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let count = reader.u32()?;
    let (messages, mut last) = (*reader, None);
    for _ in 0..count {
        let message = FilledRecord::read(reader)?;
        if last.is_some_and(|last| last >= message.sequence) {
            return None;
        }
        last = Some(message.sequence);
    }
    Some(FillRecord { namespace, queue, began, from, until, count, messages })
}
