//! Optional fields of a sent item: a length, then for each field its tag, its length and its bytes.

use crate::command::RecordSink;
use crate::item::{
    Chain, DependsMode, DependsOn, Expires, OnDuplicate, OnParentFailed, SendOptions, Unique, UniqueUntil,
};
use crate::limit::Cost;
use crate::wire::{Put, Reader};

/// The tags: never changed, never given again.
mod field {
    pub(crate) const ORDERING_KEY: u8 = 1;
    pub(crate) const FAIR_KEY: u8 = 2;
    pub(crate) const LIMIT_KEY: u8 = 3;
    pub(crate) const UNIQUE: u8 = 4;
    pub(crate) const EXPIRES_AFTER: u8 = 5;
    pub(crate) const EXPIRES_AT: u8 = 6;
    pub(crate) const RESULT_TTL: u8 = 7;
    pub(crate) const CORRELATION_ID: u8 = 8;
    pub(crate) const REPLY_TO: u8 = 9;
    pub(crate) const HOLD: u8 = 10;
    pub(crate) const COST: u8 = 11;
    pub(crate) const DEPENDS_ON: u8 = 40;
    pub(crate) const CHAIN: u8 = 41;
}

/// Bytes of options that are gathered on the stack.
const STACK_BYTES: usize = 192;

/// The first [`STACK_BYTES`] of what is put in, and how many bytes all of it has.
struct OnStack {
    bytes: [u8; STACK_BYTES],
    len: usize,
}

impl Put for OnStack {
    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.len += bytes.len();
    }
}

/// Appends the options with their length; `chain`: the steps as they lie in a record. Those of most messages
/// are short: they allocate nothing.
pub(crate) fn write_options(sink: &mut impl RecordSink, options: &SendOptions<'_>, chain: Option<&[u8]>) {
    let mut short = OnStack { bytes: [0; STACK_BYTES], len: 0 };
    write_fields(&mut short, options, chain);
    sink.body(&(short.len as u16).to_le_bytes());
    if let Some(bytes) = short.bytes.get(..short.len) {
        return sink.body(bytes);
    }
    let mut bytes = Vec::with_capacity(short.len);
    write_fields(&mut bytes, options, chain);
    sink.body(&bytes);
}

fn write_fields(out: &mut impl Put, options: &SendOptions<'_>, chain: Option<&[u8]>) {
    for (tag, bytes) in [
        (field::ORDERING_KEY, options.ordering_key),
        (field::FAIR_KEY, options.fair_key),
        (field::LIMIT_KEY, options.limit_key),
        (field::CORRELATION_ID, options.correlation_id),
        (field::REPLY_TO, options.reply_to.as_bytes()),
    ] {
        if !bytes.is_empty() {
            write_field(out, tag, bytes);
        }
    }
    if let Some(unique) = &options.unique {
        out.u8(field::UNIQUE);
        out.u16((10 + unique.key.len()) as u16);
        out.u64(unique.window_ms);
        out.u8(unique.until as u8);
        out.u8(unique.on_duplicate as u8);
        out.raw(unique.key);
    }
    if options.cost != Cost::default() {
        write_field(out, field::COST, &options.cost.0.to_le_bytes());
    }
    match options.expires {
        Expires::Never => {}
        Expires::AfterMs(ms) => write_field(out, field::EXPIRES_AFTER, &ms.to_le_bytes()),
        Expires::AtUs(us) => write_field(out, field::EXPIRES_AT, &us.to_le_bytes()),
    }
    if options.result_ttl_ms > 0 {
        write_field(out, field::RESULT_TTL, &options.result_ttl_ms.to_le_bytes());
    }
    if options.hold {
        write_field(out, field::HOLD, &[]);
    }
    if let Some(depends_on) = &options.depends_on {
        out.u8(field::DEPENDS_ON);
        out.u16((3 + depends_on.ids.len() * 12 + depends_on.places.len() * 4) as u16);
        out.raw(&[depends_on.mode as u8, depends_on.on_parent_failed as u8, depends_on.ids.len() as u8]);
        out.raw(depends_on.ids.as_flattened());
        out.raw(depends_on.places.as_flattened());
    }
    if let Some(laid) = chain {
        write_field(out, field::CHAIN, laid);
    }
}

fn write_field(out: &mut impl Put, tag: u8, bytes: &[u8]) {
    debug_assert!(bytes.len() <= usize::from(u16::MAX));
    let [low, high] = (bytes.len() as u16).to_le_bytes();
    out.raw(&[tag, low, high]);
    out.raw(bytes);
}

/// True if [`read_options`] can read them.
#[inline(never)]
pub(crate) fn are_options(bytes: &[u8]) -> bool {
    read(bytes).is_some()
}

/// The unique key among what [`write_options`] wrote.
#[inline(never)]
pub(crate) fn unique_of(bytes: &[u8]) -> Option<Unique<'_>> {
    read(bytes)?.unique
}

/// Reads what [`write_options`] wrote, its length taken off before.
#[inline(never)]
pub(crate) fn read_options(bytes: &[u8]) -> Option<SendOptions<'_>> {
    read(bytes)
}

/// A part of each of its callers, so that none makes what it does not need.
#[inline(always)]
fn read(bytes: &[u8]) -> Option<SendOptions<'_>> {
    let mut options = SendOptions::default();
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.u8()?;
        let value = reader.bytes16()?;
        let number = || value.try_into().ok().map(u64::from_le_bytes);
        match tag {
            field::ORDERING_KEY => options.ordering_key = value,
            field::FAIR_KEY => options.fair_key = value,
            field::LIMIT_KEY => options.limit_key = value,
            field::COST => options.cost = Cost(u32::from_le_bytes(value.try_into().ok()?)),
            field::UNIQUE => options.unique = Some(read_unique(value)?),
            field::EXPIRES_AFTER => options.expires = Expires::AfterMs(number()?),
            field::EXPIRES_AT => options.expires = Expires::AtUs(number()?),
            field::RESULT_TTL => options.result_ttl_ms = number()?,
            field::CORRELATION_ID => options.correlation_id = value,
            field::REPLY_TO => options.reply_to = std::str::from_utf8(value).ok()?,
            field::HOLD => options.hold = true,
            field::DEPENDS_ON => options.depends_on = Some(read_depends_on(value)?),
            field::CHAIN => options.chain = Chain::Laid(value),
            _ => return None,
        }
    }
    Some(options)
}

fn read_unique(bytes: &[u8]) -> Option<Unique<'_>> {
    let mut reader = Reader::new(bytes);
    let window_ms = reader.u64()?;
    let until = match reader.u8()? {
        0 => UniqueUntil::Gone,
        1 => UniqueUntil::Window,
        _ => return None,
    };
    let on_duplicate = match reader.u8()? {
        0 => OnDuplicate::Keep,
        1 => OnDuplicate::ReplacePayload,
        2 => OnDuplicate::Debounce,
        _ => return None,
    };
    Some(Unique { key: bytes.get(10..)?, window_ms, until, on_duplicate })
}

fn read_depends_on(bytes: &[u8]) -> Option<DependsOn<'_>> {
    let mut reader = Reader::new(bytes);
    let mode = match reader.u8()? {
        0 => DependsMode::All,
        1 => DependsMode::Any,
        _ => return None,
    };
    let on_parent_failed = match reader.u8()? {
        0 => OnParentFailed::Cancel,
        1 => OnParentFailed::Hold,
        2 => OnParentFailed::Run,
        _ => return None,
    };
    let count = usize::from(reader.u8()?);
    let (ids, _) = reader.raw(count * 12)?.as_chunks::<12>();
    let (places, rest) = bytes.get(3 + count * 12..)?.as_chunks::<4>();
    rest.is_empty().then_some(DependsOn { ids, places, mode, on_parent_failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::queue::record::Gathered;

    fn written(options: &SendOptions<'_>) -> Vec<u8> {
        let mut body = Gathered(Vec::new());
        let chain = if let Chain::Laid(laid) = options.chain { Some(laid) } else { None };
        write_options(&mut body, options, chain);
        body.0
    }

    #[test]
    fn options_of_every_length_come_back() {
        let bytes = [b'x'; 3 * STACK_BYTES];
        for len in 1..bytes.len() {
            let options =
                SendOptions { ordering_key: b"o", fair_key: &bytes[..len], ..SendOptions::default() };
            assert_eq!(read_options(&written(&options)[2..]), Some(options));
        }
    }

    #[test]
    fn options_come_back_as_they_were_written() {
        let unique = Unique {
            key: b"once",
            window_ms: 5,
            until: UniqueUntil::Window,
            on_duplicate: OnDuplicate::Debounce,
        };
        let all = SendOptions {
            ordering_key: b"o",
            fair_key: b"f",
            limit_key: b"l",
            cost: Cost(7),
            unique: Some(unique),
            expires: Expires::AtUs(77),
            result_ttl_ms: 9,
            correlation_id: b"c",
            reply_to: "replies",
            hold: true,
            depends_on: Some(DependsOn {
                ids: &[[7; 12], [8; 12]],
                places: &[[1, 0, 0, 0]],
                mode: DependsMode::Any,
                on_parent_failed: OnParentFailed::Hold,
            }),
            chain: Chain::Laid(&[0]),
        };
        for options in [all, SendOptions::default(), SendOptions { expires: Expires::AfterMs(3), ..all }] {
            let bytes = written(&options);
            assert_eq!(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])), bytes.len() - 2);
            assert_eq!(read_options(&bytes[2..]), Some(options));
            for cut in 3..bytes.len() {
                assert_ne!(read_options(&bytes[2..cut]), Some(options));
            }
        }
    }
}
