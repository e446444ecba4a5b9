//! Heads of HTTP/1.1 and the bodies behind them, cut into pieces: what passes, and what is refused, may not
//! depend on the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| sluice_front::http::fuzzing::heads(input));
