//! Storage that the heads of requests have from others before them, rather than from the allocator.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::limits::TEXTS_BYTES;

/// Texts of heads, several heads in one piece of memory.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Rest of the last piece. When it is too small, the piece is used again if no text in it is in use.
    left: Option<BytesMut>,
}

impl Texts {
    /// All texts that `from` gives, the same each time, one behind the other.
    pub(super) fn join<'a, I>(&mut self, from: impl Fn() -> I) -> Bytes
    where
        I: Iterator<Item = &'a [u8]>,
    {
        let bytes = from().map(<[u8]>::len).sum();
        if bytes > TEXTS_BYTES {
            let mut alone = Vec::with_capacity(bytes);
            from().for_each(|text| alone.extend_from_slice(text));
            return alone.into();
        }
        let left = self.left.get_or_insert_with(|| BytesMut::with_capacity(TEXTS_BYTES));
        left.reserve(bytes);
        from().for_each(|text| left.extend_from_slice(text));
        left.split().freeze()
    }
}

/// Maps that are kept, and fields that each of them has room for: as many as a map has that begins without.
const MAPS_MAX: usize = 32;
const MAP_FIELDS: usize = 6;

/// Maps of responses that are sent, for the requests that come next.
#[derive(Debug, Default)]
pub(super) struct Maps(Vec<HeaderMap>);

impl Maps {
    /// An empty map with room for so many fields; nothing, if there cannot be that many.
    pub(super) fn take(&mut self, fields: usize) -> Option<HeaderMap> {
        match self.0.pop() {
            Some(map) if map.capacity() >= fields => Some(map),
            _ => HeaderMap::try_with_capacity(fields).ok(),
        }
    }

    /// Keeps a map of which nobody needs the fields any more, if it is of the usual size.
    pub(super) fn give(&mut self, mut map: HeaderMap) {
        if map.capacity() == MAP_FIELDS && map.len() <= MAP_FIELDS && self.0.len() < MAPS_MAX {
            map.clear();
            self.0.push(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HOST, HeaderValue};

    use super::*;

    #[test]
    fn texts_of_several_heads_share_memory_and_keep_apart() {
        let mut texts = Texts::default();
        let mut join = |text: &str| texts.join(|| [text.as_bytes(), b"/"].into_iter());
        let long = "x".repeat(3 * TEXTS_BYTES);
        let joined = ["ab", "", &long, "c"].map(&mut join);
        assert_eq!(joined, ["ab/", "/", &format!("{long}/"), "c/"]);
        let start = joined[0].as_ptr() as usize;
        assert_eq!([1, 3].map(|at| joined[at].as_ptr() as usize - start), [3, 4]);
    }

    #[test]
    fn a_piece_of_memory_is_never_large_and_is_used_again() {
        let mut texts = Texts::default();
        let mut kept = Vec::new();
        for round in 0..100 {
            let text = [b'x'; TEXTS_BYTES / 3];
            kept.push(texts.join(|| [&text[..]].into_iter()));
            assert!(texts.left.as_ref().is_some_and(|left| left.capacity() < TEXTS_BYTES));
            if round == 50 {
                kept.clear();
            }
        }
        let pieces = |texts: &[Bytes]| {
            texts.windows(2).filter(|pair| pair[0].as_ptr_range().end != pair[1].as_ptr()).count() + 1
        };
        assert_eq!(pieces(&kept), kept.len().div_ceil(3));
    }

    #[test]
    fn maps_are_used_again_when_they_are_of_the_usual_size() {
        let mut maps = Maps::default();
        assert_eq!(maps.take(0).map(|map| map.capacity()), Some(0));
        let mut usual = HeaderMap::new();
        usual.insert(HOST, HeaderValue::from_static("a"));
        maps.give(usual);
        maps.give(HeaderMap::new());
        maps.give(HeaderMap::with_capacity(100));
        assert_eq!(maps.0.len(), 1);
        let again = maps.take(MAP_FIELDS).expect("room");
        assert!(again.is_empty() && again.capacity() == MAP_FIELDS);

        let mut long = again;
        for _ in 0..100 {
            long.append(ACCEPT, HeaderValue::from_static("a"));
        }
        maps.give(long);
        assert!(maps.0.is_empty(), "it would keep the room for all these");
        assert!(maps.take(1 << 20).is_none());
    }
}
