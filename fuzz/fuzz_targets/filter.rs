//! A filter, and on the lines behind it values that it is held against: a fault has a reason, what `not`
//! makes of a filter matches exactly what that does not, and what a part of a value decides is so of the
//! whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_filter::{Filter, Pointer};

const NOW_MS: u64 = 1_767_225_600_000;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (filter, values) = text.split_once('\n').unwrap_or((text, ""));
    let read = match Filter::parse(filter) {
        Ok(read) => read,
        Err(fault) => {
            assert!(!fault.reason.is_empty() && fault.to_string().len() < 4_096, "{fault}");
            return;
        }
    };
    // Refused where the filter is as deep or as long as one may be.
    let Ok(opposite) = Filter::parse(&format!("{{\"not\":{filter}}}")) else { return };
    for value in values.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        let matches = read.matches(&value, NOW_MS);
        assert_ne!(matches, opposite.matches(&value, NOW_MS), "{filter} of {value}");
        for first in read.pointers().map(Pointer::first) {
            let decided = read.matches_partly(&value, |pointer| pointer.first() == first, NOW_MS);
            assert!(decided.is_none_or(|decided| decided == matches), "{filter} of {value} by {first:?}");
        }
    }
});
