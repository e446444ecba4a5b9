//! Layouts of terms in the log.

use crate::command::RecordSink;
use crate::documents::DocumentTerms;
use crate::id::NamespaceId;
use crate::indexes::IndexFill;
use crate::limits::DOCUMENT_TERMS_MAX;
use crate::wire::{Put, Reader};

/// Bytes of a term.
const TERM_BYTES: usize = size_of::<u128>();

/// The terms of a document in an index.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a>(&'a [[u8; TERM_BYTES]]);

impl<'a> Terms<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Terms<'a>> {
        let count = usize::from(reader.u16()?);
        let (terms, _) = reader.raw(count * TERM_BYTES)?.as_chunks();
        (count <= DOCUMENT_TERMS_MAX).then_some(Terms(terms))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u128> + use<'a> {
        self.0.iter().map(|bytes| u128::from_be_bytes(*bytes))
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }
}

fn write_terms(terms: &[u128], out: &mut Vec<u8>) {
    out.u16(terms.len() as u16);
    terms.iter().for_each(|term| out.raw(&term.to_be_bytes()));
}

/// The terms of a document in some indexes.
#[derive(Clone, Copy)]
pub(crate) struct TermsByIndex<'a> {
    count: u16,
    bytes: Reader<'a>,
}

impl<'a> TermsByIndex<'a> {
    pub(crate) fn write(all: &[DocumentTerms], out: &mut Vec<u8>) {
        out.u16(all.len() as u16);
        for DocumentTerms { index, terms } in all {
            out.u64(*index);
            write_terms(terms, out);
        }
    }

    /// Reads what [`TermsByIndex::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Option<TermsByIndex<'a>> {
        let count = reader.u16()?;
        let all = TermsByIndex { count, bytes: *reader };
        for _ in 0..count {
            reader.u64()?;
            Terms::read(reader)?;
        }
        Some(all)
    }

    /// The terms in an index; `None`: they are not told.
    pub(crate) fn of(self, index: u64) -> Option<Terms<'a>> {
        let mut bytes = self.bytes;
        let next = |_| Some((bytes.u64()?, Terms::read(&mut bytes)?));
        let mut all = (0..self.count).map_while(next);
        all.find(|(number, _)| *number == index).map(|(_, terms)| terms)
    }
}

/// Terms that are added to documents.
#[derive(Clone, Copy)]
pub(crate) struct FillRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) index: u64,
    pub(crate) until: Option<&'a str>,
    pub(crate) is_last: bool,
    count: u32,
    documents: Reader<'a>,
}

/// A document that gets its terms.
pub(crate) struct FilledRecord<'a> {
    pub(crate) key: &'a str,
    pub(crate) revision: u64,
    pub(crate) terms: Terms<'a>,
}

impl<'a> FilledRecord<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<FilledRecord<'a>> {
        let (key, revision) = (reader.name()?, reader.u64()?);
        Some(FilledRecord { key, revision, terms: Terms::read(reader)? })
    }
}

impl<'a> FillRecord<'a> {
    pub(crate) fn documents(&self) -> impl Iterator<Item = FilledRecord<'a>> + use<'a> {
        let mut reader = self.documents;
        (0..self.count).map_while(move |_| FilledRecord::read(&mut reader))
    }
}

pub(crate) fn encode_fill(first: [u8; 2], fill: &IndexFill<'_>, sink: &mut impl RecordSink) {
    let mut out = Vec::with_capacity(4_096);
    out.raw(&first);
    out.u32(fill.namespace.0);
    out.u64(fill.index);
    out.name(fill.until.unwrap_or_default());
    out.bool(fill.is_last);
    out.u32(fill.documents.len() as u32);
    for document in fill.documents {
        out.name(document.key);
        out.u64(document.revision);
        write_terms(&document.terms, &mut out);
    }
    sink.body(&out);
}

/// Reads what [`encode_fill`] wrote.
pub(crate) fn decode_fill<'a>(reader: &mut Reader<'a>) -> Option<FillRecord<'a>> {
    let (namespace, index) = (NamespaceId(reader.u32()?), reader.u64()?);
    let until = Some(reader.name()?).filter(|key| !key.is_empty());
    let (is_last, count) = (reader.bool()?, reader.u32()?);
    let documents = *reader;
    for _ in 0..count {
        FilledRecord::read(reader)?;
    }
    Some(FillRecord { namespace, index, until, is_last, count, documents })
}
