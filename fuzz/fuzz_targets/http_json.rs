//! Bodies and query strings of requests, to the decoder that the first byte names.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some((which, body)) = input.split_first() {
        let decoders = sluice_front::http::fuzzing::DECODERS;
        decoders[usize::from(*which) % decoders.len()](body);
    }
});
