//! The layout of a change: the action and its fields, then items of a fixed length. Who and why are one blob,
//! laid out as two headers; tags that replace others are the next.

use crate::blob::BlobHead;
use crate::change::{Change, ChangeAction, NewFields, Verb};
use crate::command::{Deliver, RecordSink};
use crate::id::{BlobRef, MessageId, NamespaceId};
use crate::limit::Cost;
use crate::wire::{Put, Reader};

/// Sequence and version.
const ITEM_BYTES: usize = 16;

/// Bits of the fields that a change sets.
mod set {
    pub(crate) const PRIORITY: u8 = 1;
    pub(crate) const DELIVER_AFTER: u8 = 2;
    pub(crate) const DELIVER_AT: u8 = 4;
    pub(crate) const MAX_ATTEMPTS: u8 = 8;
    pub(crate) const TAGS: u8 = 16;
    pub(crate) const COST: u8 = 32;
    pub(crate) const ALL: u8 = 63;
}

fn note<'a>(change: &Change<'a>) -> Option<[(&'static str, &'a str); 2]> {
    let given = !change.by.is_empty() || !change.why.is_empty();
    given.then_some([("by", change.by), ("why", change.why)])
}

/// Tags that need a blob: an empty list has the blob that needs no place.
fn tags<'a>(change: &Change<'a>) -> Option<&'a [&'a str]> {
    match change.action {
        ChangeAction::Set(fields) => fields.tags.filter(|tags| !tags.is_empty()),
        ChangeAction::Cancel
        | ChangeAction::Hold
        | ChangeAction::Approve
        | ChangeAction::Deny
        | ChangeAction::Retry
        | ChangeAction::Move { .. } => None,
    }
}

pub(crate) fn blob_count(change: &Change<'_>) -> u32 {
    u32::from(note(change).is_some()) + u32::from(tags(change).is_some())
}

pub(crate) fn encode(first: [u8; 2], change: &Change<'_>, sink: &mut impl RecordSink) {
    let (note, tags) = (note(change), tags(change));
    let mut body = Vec::with_capacity(64 + change.items.len() * ITEM_BYTES);
    body.raw(&first);
    body.u32(change.namespace.0);
    body.u8(change.action.verb() as u8);
    match change.action {
        ChangeAction::Move { to } => body.name(to),
        ChangeAction::Set(fields) => write_fields(&mut body, &fields),
        ChangeAction::Cancel
        | ChangeAction::Hold
        | ChangeAction::Approve
        | ChangeAction::Deny
        | ChangeAction::Retry => {}
    }
    body.u32(note.map_or(0, |note| BlobHead::len("", &note) as u32));
    body.u32(tags.map_or(0, |tags| BlobHead::len_tagged("", &[], tags) as u32));
    body.u32(change.items.len() as u32);
    for (id, version) in change.items {
        body.u64(id.sequence);
        body.u64(*version);
    }
    sink.body(&body);
    if let Some(note) = note {
        BlobHead::with("", &note, &[], |head| sink.blob(&[head]));
    }
    if let Some(tags) = tags {
        BlobHead::with("", &[], tags, |head| sink.blob(&[head]));
    }
}

fn write_fields(out: &mut Vec<u8>, fields: &NewFields<'_>) {
    let (deliver, time) = match fields.deliver {
        None => (0, 0),
        Some(Deliver::Now) => (set::DELIVER_AFTER, 0),
        Some(Deliver::AfterMs(ms)) => (set::DELIVER_AFTER, ms),
        Some(Deliver::AtUs(us)) => (set::DELIVER_AT, us),
    };
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.u8(deliver
        | flag(fields.priority.is_some(), set::PRIORITY)
        | flag(fields.max_attempts.is_some(), set::MAX_ATTEMPTS)
        | flag(fields.tags.is_some(), set::TAGS)
        | flag(fields.cost.is_some(), set::COST));
    out.u8(fields.priority.unwrap_or(0));
    out.u16(fields.max_attempts.unwrap_or(0));
    out.u64(time);
    if let Some(cost) = fields.cost {
        out.u32(cost.0);
    }
}

/// One change of several messages.
#[derive(Clone, Copy)]
pub(crate) struct ChangeRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) action: ChangeStep<'a>,
    note_len: u32,
    tags_len: u32,
    items: &'a [[u8; ITEM_BYTES]],
}

/// The action on each message; tags are a blob of the record.
#[derive(Clone, Copy)]
pub(crate) enum ChangeStep<'a> {
    Plain(Verb),
    Move { to: &'a str },
    Set(SetFields),
}

#[derive(Clone, Copy)]
pub(crate) struct SetFields {
    pub(crate) priority: Option<u8>,
    pub(crate) deliver: Option<Deliver>,
    pub(crate) max_attempts: Option<u16>,
    /// True if the tags are replaced, by [`ChangeRecord::tags`].
    pub(crate) tags: bool,
    pub(crate) cost: Option<Cost>,
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Option<ChangeRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let action = match *Verb::ALL.get(usize::from(reader.u8()?))? {
        Verb::Move => ChangeStep::Move { to: reader.name()? },
        Verb::Change => ChangeStep::Set(read_fields(reader)?),
        verb => ChangeStep::Plain(verb),
    };
    let (note_len, tags_len) = (reader.u32()?, reader.u32()?);
    Some(ChangeRecord { namespace, action, note_len, tags_len, items: crate::layout::fixed_items(reader)? })
}

fn read_fields(reader: &mut Reader<'_>) -> Option<SetFields> {
    let flags = reader.u8()?;
    let (priority, max_attempts, time) = (reader.u8()?, reader.u16()?, reader.u64()?);
    let is_set = |flag: u8| flags & flag != 0;
    let cost = if is_set(set::COST) { Some(Cost(reader.u32()?)) } else { None };
    let deliver = match (is_set(set::DELIVER_AFTER), is_set(set::DELIVER_AT)) {
        (false, false) => None,
        (true, false) => Some(Deliver::AfterMs(time)),
        (false, true) => Some(Deliver::AtUs(time)),
        (true, true) => return None,
    };
    (flags <= set::ALL).then_some(SetFields {
        priority: is_set(set::PRIORITY).then_some(priority),
        deliver,
        max_attempts: is_set(set::MAX_ATTEMPTS).then_some(max_attempts),
        tags: is_set(set::TAGS),
        cost,
    })
}

impl<'a> ChangeRecord<'a> {
    pub(crate) fn items(&self) -> impl Iterator<Item = (MessageId, u64)> + use<'a> {
        let namespace = self.namespace;
        self.items.iter().map(move |bytes| {
            let mut reader = Reader::new(bytes);
            let sequence = reader.u64().unwrap_or_default();
            (MessageId { namespace, sequence }, reader.u64().unwrap_or_default())
        })
    }

    /// The note (who and why) of the record with this index; `None`: it has none.
    pub(crate) fn note(&self, index: u64) -> Option<BlobRef> {
        (self.note_len > 0).then_some(BlobRef { index, item: 0, len: self.note_len })
    }

    /// The tags that replace others.
    pub(crate) fn tags(&self, index: u64) -> BlobRef {
        if self.tags_len == 0 {
            return BlobRef::EMPTY;
        }
        BlobRef { index, item: u32::from(self.note_len > 0), len: self.tags_len }
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<> {
        let tags = (self.tags_len > 0).then(|| self.tags(index));
        self.note(index).into_iter().chain(tags)
    }
}
