//! Terms of documents.

use std::collections::BTreeSet;

use serde_json::{Number, Value};

use super::hash::fnv_1a;
use crate::pointer::Pointer;

/// Most different items of a list that have a term each; a document with more of them has [`IndexTerm::ANY`].
pub const LIST_TERMS_MAX: usize = 64;

/// Bytes of a text's beginning in its term.
const PREFIX_BYTES: usize = 7;
/// Bits below the tag.
const TAG_SHIFT: u32 = 120;

const NOTHING: u8 = 0;
const NULL: u8 = 1;
const BOOL: u8 = 2;
const NUMBER: u8 = 3;
const TEXT: u8 = 4;
const ITEM: u8 = 5;
const ANY: u8 = 255;

/// A term by which a document is found in an index.
///
/// The layout is stored and replicated, and must never change. From the highest byte to the lowest:
///
/// | bytes | term |
/// |---|---|
/// | 0, 15 × 0 | nothing to look up: no JSON, no value there, an object, a list without scalar items |
/// | 1, 15 × 0 | null |
/// | 2, 0 or 1, 14 × 0 | false or true |
/// | 3, 8 bytes, 7 × 0 | number: the double nearest to it, its bits changed to sort as numbers do |
/// | 4, 7 bytes, 8 bytes | text: the beginning of its UTF-8, filled up with zeros; FNV-1a of all of it |
/// | 5, 7 × 0, 8 bytes | item of a list: FNV-1a of the 16 bytes of the term that its value has alone |
/// | 255, 15 × 0 | candidate of every lookup: a list of more than [`LIST_TERMS_MAX`] different scalar items |
///
/// Equal values have the same term. A greater number has a greater term or the same, as integers beyond 2⁵³
/// are rounded. Texts sort by their first 7 bytes alone: of those alike in them, the hash gives no order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexTerm(pub u128);

impl IndexTerm {
    /// Term of a document without any other.
    pub const NOTHING: IndexTerm = IndexTerm::first_of(NOTHING);
    /// Term of a document that is a candidate of every lookup.
    pub const ANY: IndexTerm = IndexTerm::first_of(ANY);

    pub(super) const NUMBERS: (IndexTerm, IndexTerm) = IndexTerm::all_of(NUMBER);
    pub(super) const TEXTS: (IndexTerm, IndexTerm) = IndexTerm::all_of(TEXT);

    /// The term of a value that is null, true, false, a number or a text; `None`: it is a list or an object.
    pub(super) fn of_scalar(value: &Value) -> Option<IndexTerm> {
        match value {
            Value::Null => Some(IndexTerm::first_of(NULL)),
            Value::Bool(is_true) => Some(IndexTerm::of_parts(BOOL, u64::from(*is_true) << 56, 0)),
            Value::Number(number) => Some(IndexTerm::of_number(number)),
            Value::String(text) => Some(IndexTerm::of_text(text)),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(super) fn of_number(number: &Number) -> IndexTerm {
        IndexTerm::of_double(number.as_f64().unwrap_or_default())
    }

    /// The term of a number by the double nearest to it.
    pub(super) fn of_double(double: f64) -> IndexTerm {
        let with_one_zero = double + 0.0;
        let bits = with_one_zero.to_bits();
        let is_negative = bits >> 63 == 1;
        // The bits of doubles of the same sign sort by the distance from zero.
        IndexTerm::of_parts(NUMBER, if is_negative { !bits } else { bits | 1 << 63 }, 0)
    }

    fn of_text(text: &str) -> IndexTerm {
        IndexTerm::of_beginning(text, 0, fnv_1a(text.as_bytes()))
    }

    /// The first and the last term that a text can have whose first bytes in its term are those of this one.
    pub(super) fn like_text(text: &str) -> (IndexTerm, IndexTerm) {
        (IndexTerm::of_beginning(text, 0, 0), IndexTerm::of_beginning(text, 0, u64::MAX))
    }

    /// The first and the last term of texts that begin with a text.
    pub(super) fn with_prefix(prefix: &str) -> (IndexTerm, IndexTerm) {
        (IndexTerm::of_beginning(prefix, 0, 0), IndexTerm::of_beginning(prefix, u8::MAX, u64::MAX))
    }

    /// The term of a text by its beginning, which is filled up if it is too short.
    fn of_beginning(text: &str, filling: u8, hash: u64) -> IndexTerm {
        let mut bytes = [filling; 8];
        let len = text.len().min(PREFIX_BYTES);
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        bytes[PREFIX_BYTES] = 0;
        IndexTerm::of_parts(TEXT, u64::from_be_bytes(bytes), hash)
    }

    /// The term of an item of a list, by the term of its value.
    pub(super) fn in_list(self) -> IndexTerm {
        IndexTerm::of_parts(ITEM, 0, fnv_1a(&self.0.to_be_bytes()))
    }

    /// The term of a tag, the 8 bytes behind it, and the last 8 bytes. These share a byte, zero in one.
    const fn of_parts(tag: u8, high: u64, low: u64) -> IndexTerm {
        IndexTerm((tag as u128) << TAG_SHIFT | (high as u128) << (TAG_SHIFT - u64::BITS) | low as u128)
    }

    const fn first_of(tag: u8) -> IndexTerm {
        IndexTerm::of_parts(tag, 0, 0)
    }

    const fn all_of(tag: u8) -> (IndexTerm, IndexTerm) {
        let first = IndexTerm::first_of(tag);
        (first, IndexTerm(first.0 | ((1 << TAG_SHIFT) - 1)))
    }
}

/// The terms of a document in the index of a pointer: sorted, each once, at least one and at most
/// [`LIST_TERMS_MAX`].
pub fn terms_of(content: &Value, pointer: &Pointer) -> Vec<IndexTerm> {
    match pointer.find(content) {
        None => vec![IndexTerm::NOTHING],
        Some(Value::Array(items)) => terms_of_items(items),
        Some(value) => vec![IndexTerm::of_scalar(value).unwrap_or(IndexTerm::NOTHING)],
    }
}

/// The terms of a list. Lists and objects in it have none: no lookup finds them.
fn terms_of_items(items: &[Value]) -> Vec<IndexTerm> {
    let mut terms = BTreeSet::new();
    for term in items.iter().filter_map(IndexTerm::of_scalar) {
        terms.insert(term.in_list());
        if terms.len() > LIST_TERMS_MAX {
            return vec![IndexTerm::ANY];
        }
    }
    if terms.is_empty() {
        terms.insert(IndexTerm::NOTHING);
    }
    terms.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn terms(value: &Value) -> Vec<IndexTerm> {
        terms_of(value, &Pointer::parse("").unwrap())
    }

    fn term(value: &Value) -> IndexTerm {
        let terms = terms(value);
        assert_eq!(terms.len(), 1, "{value}");
        terms[0]
    }

    fn number(text: &str) -> IndexTerm {
        term(&serde_json::from_str(text).unwrap())
    }

    /// What is stored on disks. A failure here is a change of the format: do not adapt the values.
    #[test]
    fn the_layout_never_changes() {
        for (value, expected) in [
            (json!({}), 0),
            (json!(null), 0x01000000_00000000_00000000_00000000),
            (json!(false), 0x02000000_00000000_00000000_00000000),
            (json!(true), 0x02010000_00000000_00000000_00000000),
            (json!(0), 0x03800000_00000000_00000000_00000000),
            (json!(1), 0x03bff000_00000000_00000000_00000000),
            (json!(-1), 0x03400fff_ffffffff_ff000000_00000000),
            (json!(0.1), 0x03bfb999_99999999_9a000000_00000000),
            (json!(u64::MAX), 0x03c3f000_00000000_00000000_00000000),
            (json!(""), 0x04000000_00000000_cbf29ce4_84222325),
            (json!("a"), 0x04610000_00000000_af63dc4c_8601ec8c),
            (json!("foobar"), 0x04666f6f_62617200_85944171_f73967e8),
            (json!("a longer one"), 0x0461206c_6f6e6765_9eaf6bf2_d4e39aad),
            (json!("caf\u{e9}s \u{20ac}"), 0x04636166_c3a97320_2585e93a_f7be8c66),
            (json!([null]), 0x05000000_00000000_392209f1_4dea4c24),
            (json!([true]), 0x05000000_00000000_0437111c_577318ac),
            (json!([1.5]), 0x05000000_00000000_9a525529_f16629b7),
            (json!(["red"]), 0x05000000_00000000_d7410132_2b9144eb),
        ] {
            assert_eq!(term(&value).0, expected, "{value}: {:#034x}", term(&value).0);
        }
        assert_eq!(IndexTerm::ANY.0, 0xff000000_00000000_00000000_00000000);
    }

    #[test]
    fn terms_of_numbers_sort_as_numbers() {
        let rising = [
            "-1.7976931348623157e308",
            "-1e30",
            "-9223372036854775808",
            "-2.5",
            "-1",
            "-5e-324",
            "0",
            "5e-324",
            "0.1",
            "1",
            "9007199254740992",
            "9007199254740994",
            "18446744073709551615",
            "1.7976931348623157e308",
        ];
        assert!(rising.is_sorted_by(|one, other| number(one) < number(other)));
        let (first, last) = IndexTerm::NUMBERS;
        assert!(rising.iter().all(|text| (first..=last).contains(&number(text))));
        for (one, other) in [
            ("0", "-0"),
            ("0", "-0.0"),
            ("1", "1.0"),
            ("1e2", "100"),
            ("9007199254740993", "9007199254740992.0"),
            ("18446744073709551615", "18446744073709551616.0"),
        ] {
            assert_eq!(number(one), number(other), "{one} and {other}");
        }
    }

    #[test]
    fn terms_of_texts_sort_by_their_first_bytes() {
        let rising =
            ["", "\u{1}", "Z", "a", "aa", "aaaaaaa", "aaaaaab", "b", "\u{e9}", "\u{20ac}", "\u{10ffff}"];
        assert!(rising.is_sorted_by(|one, other| term(&json!(one)) < term(&json!(other))));
        for text in rising {
            let (first, last) = IndexTerm::TEXTS;
            assert!((first..=last).contains(&term(&json!(text))), "{text}");
        }
        let beginning = |text: &str| term(&json!(text)).0 >> 64;
        assert_eq!(beginning("2026-11-27"), beginning("2026-11-28"));
        assert_ne!(term(&json!("2026-11-27")), term(&json!("2026-11-28")));
        // The euro sign is cut within its three bytes.
        assert_eq!(beginning("aaaaaa\u{20ac}"), 0x0461_6161_6161_61e2);
    }

    #[test]
    fn what_has_no_term_has_that_of_nothing() {
        for nothing in [json!({}), json!({"a": 1}), json!([]), json!([[]]), json!([{"a": 1}, [1]])] {
            assert_eq!(terms(&nothing), [IndexTerm::NOTHING], "{nothing}");
        }
        let behind = |pointer: &str| terms_of(&json!({"a": [7]}), &Pointer::parse(pointer).unwrap());
        assert_eq!(behind("/b"), [IndexTerm::NOTHING]);
        assert_eq!(behind("/a/1"), [IndexTerm::NOTHING]);
        assert_eq!(behind("/a/0"), [number("7")]);
        assert_eq!(behind("/a"), [number("7").in_list()]);
    }

    #[test]
    fn a_list_has_the_terms_of_its_scalar_items() {
        let mut expected = [json!(null), json!(false), json!(1), json!("1")].map(|item| term(&json!([item])));
        expected.sort_unstable();
        assert_eq!(terms(&json!([1, "1", [2], null, {"a": 3}, false, 1.0, "1"])), expected);
        assert_eq!(terms(&json!([0, -0.0])).len(), 1);
        assert!(expected.iter().all(|term| term.0 >> TAG_SHIFT == u128::from(ITEM)));
    }

    #[test]
    fn a_list_with_too_many_items_is_always_a_candidate() {
        let list = |items: usize| (0..items).chain(0..items).map(Value::from).collect::<Value>();
        let most = terms(&list(LIST_TERMS_MAX));
        assert!(most.len() == LIST_TERMS_MAX && most.is_sorted_by(|one, other| one < other));
        assert_eq!(terms(&list(LIST_TERMS_MAX + 1)), [IndexTerm::ANY]);
        assert_eq!(terms(&vec![json!("same"); 10_000].into()).len(), 1);
    }
}
