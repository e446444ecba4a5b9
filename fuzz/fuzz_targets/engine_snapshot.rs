//! An engine's snapshot, damaged: it is refused, or it is the state that was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_engine::Engine;
use sluice_fuzz::framing::records;

fuzz_target!(|input: &[u8]| {
    let mut pieces = records(input).map(<[u8]>::to_vec);
    if let Ok(engine) = Engine::restore(&mut || pieces.next()) {
        assert_eq!(engine.recount(), Ok(()));
    }
});
