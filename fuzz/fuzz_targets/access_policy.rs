//! The policy file: what is wrong with it is told with a line that it has, in the order of lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_calls::access::Policy;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(mistakes) = Policy::parse(text) {
        let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
        assert!(!mistakes.is_empty(), "refused without a reason");
        assert!(mistakes.is_sorted_by_key(|mistake| mistake.line), "{mistakes:?}");
        for mistake in mistakes {
            assert!((1..=lines).contains(&mistake.line) && !mistake.message.is_empty(), "{mistake}");
        }
    }
});
