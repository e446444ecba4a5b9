//! The terms that a filter needs of all that matches, for the index of a queue.

use std::sync::LazyLock;

use serde_json::Value;
use sluice_engine::error_fingerprint;
use sluice_engine::search::{SearchKind, SearchTerm};
use sluice_filter::{Filter, Pointer};

static TAGS: LazyLock<Option<Pointer>> = LazyLock::new(|| Pointer::parse("/tags"));
static ERROR: LazyLock<Option<Pointer>> = LazyLock::new(|| Pointer::parse("/error"));
static FINGERPRINT: LazyLock<Option<Pointer>> = LazyLock::new(|| Pointer::parse("/error_fingerprint"));

/// Digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 16;

/// Terms one of which each message has that matches.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Terms {
    pub(super) kind: SearchKind,
    pub(super) terms: Vec<SearchTerm>,
}

/// All such lists of a filter, the shortest first.
pub(super) fn terms_of(filter: &Filter) -> Vec<Terms> {
    let tags = TAGS.as_ref().and_then(|pointer| filter.contains_one_of(pointer));
    let errors = ERROR.as_ref().and_then(|pointer| filter.equal_to_one_of(pointer));
    let fingerprints = FINGERPRINT.as_ref().and_then(|pointer| filter.equal_to_one_of(pointer));
    let of_kind = |kind, terms: Option<Vec<SearchTerm>>| Some(Terms { kind, terms: terms? });
    let all = [
        of_kind(SearchKind::Tags, tags.and_then(|values| each(&values, of_tag))),
        of_kind(SearchKind::Errors, errors.and_then(|values| each(&values, of_error))),
        of_kind(SearchKind::Errors, fingerprints.and_then(|values| each(&values, of_fingerprint))),
    ];
    let mut all: Vec<Terms> = all.into_iter().flatten().collect();
    all.sort_by_key(|terms| terms.terms.len());
    all
}

/// The terms of texts; no message has another value. `None`: of one text there is no term.
fn each(values: &[&Value], term: fn(&str) -> Option<SearchTerm>) -> Option<Vec<SearchTerm>> {
    let mut terms = values.iter().filter_map(|value| value.as_str()).map(term).collect::<Option<Vec<_>>>()?;
    terms.sort_unstable();
    terms.dedup();
    Some(terms)
}

fn of_tag(tag: &str) -> Option<SearchTerm> {
    Some(SearchTerm::of_tag(tag))
}

/// The term of an error. One that is no text is shown with other characters in the place of its bytes, and
/// has the fingerprint of the bytes.
fn of_error(error: &str) -> Option<SearchTerm> {
    let is_text = !error.contains(char::REPLACEMENT_CHARACTER);
    is_text.then(|| SearchTerm::of_error(error_fingerprint(error.as_bytes())))
}

/// The term of a fingerprint; of a text that is none some term, which finds nothing.
fn of_fingerprint(text: &str) -> Option<SearchTerm> {
    let digits = Some(text).filter(|text| text.len() == FINGERPRINT_DIGITS);
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Some(SearchTerm::of_error(number.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(filter: &str) -> Vec<Terms> {
        terms_of(&Filter::parse(filter).unwrap())
    }

    fn tags(tags: &[&str]) -> Terms {
        let mut terms: Vec<_> = tags.iter().map(|tag| SearchTerm::of_tag(tag)).collect();
        terms.sort_unstable();
        Terms { kind: SearchKind::Tags, terms }
    }

    fn error(text: &str) -> Terms {
        let terms = vec![SearchTerm::of_error(error_fingerprint(text.as_bytes()))];
        Terms { kind: SearchKind::Errors, terms }
    }

    #[test]
    fn filters_that_need_a_tag_or_an_error_tell_it() {
        let fingerprint = format!("{:016x}", error_fingerprint(b"no such host"));
        for (filter, expected) in [
            (r#"{"/tags":{"contains":"a"}}"#.to_owned(), vec![tags(&["a"])]),
            (r#"{"/tags":{"contains":"a"},"/state":"dead"}"#.to_owned(), vec![tags(&["a"])]),
            (
                r#"{"or":[{"/tags":{"contains":"a"}},{"/tags":{"contains":"b"},"/cost":1}]}"#.to_owned(),
                vec![tags(&["a", "b"])],
            ),
            (r#"{"or":[{"/tags":{"contains":"a"}},{"/cost":1}]}"#.to_owned(), Vec::new()),
            (r#"{"not":{"/tags":{"contains":"a"}}}"#.to_owned(), Vec::new()),
            (r#"{"/tags":{"eq":["a"]}}"#.to_owned(), Vec::new()),
            (r#"{"/error":"no such host"}"#.to_owned(), vec![error("no such host")]),
            (r#"{"/error":{"contains":"host"}}"#.to_owned(), Vec::new()),
            ("{\"/error\":\"no \u{fffd}\"}".to_owned(), Vec::new()),
            (format!(r#"{{"/error_fingerprint":"{fingerprint}"}}"#), vec![error("no such host")]),
            (
                format!(r#"{{"/error_fingerprint":"{fingerprint}","/tags":{{"contains":"a"}}}}"#),
                vec![tags(&["a"]), error("no such host")],
            ),
            (r#"{"/tags":{"contains":7}}"#.to_owned(), vec![tags(&[])]),
            ("{}".to_owned(), Vec::new()),
        ] {
            assert_eq!(terms(&filter), expected, "{filter}");
        }
    }
}
