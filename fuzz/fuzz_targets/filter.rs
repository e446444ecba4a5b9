//! A filter, and on the lines behind it values that it is held against: a fault has a reason, and what `not`
//! makes of a filter matches exactly what that does not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_filter::Filter;

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
        assert_ne!(read.matches(&value, NOW_MS), opposite.matches(&value, NOW_MS), "{filter} of {value}");
    }
});
