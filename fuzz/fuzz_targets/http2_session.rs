//! Whole sessions of HTTP/2: a client that sends anything, and a server that answers. What goes out has to be
//! right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| sluice_http2::fuzzing::session(input));
