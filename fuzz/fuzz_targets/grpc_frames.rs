//! What a client sends over gRPC: the frames of a session, the message of a call, or one of reflection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_front::grpc::fuzzing;

fuzz_target!(|input: &[u8]| {
    match input.split_first() {
        Some((0, frames)) => fuzzing::frames(frames),
        Some((2, request)) => fuzzing::reflection(request),
        Some((_, call)) => fuzzing::call(call),
        None => {}
    }
});
