//! Bodies of records, one after the other, into an engine: whatever they are, nothing panics, what is counted
//! stays right, and a snapshot gives the same state.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_engine::{Engine, Outcome};
use sluice_fuzz::framing::records;

/// Of a record's bytes the first gives how far time goes on before it: 4 to that power, in milliseconds.
fn step_us(code: u8) -> u64 {
    1_000 << (2 * u32::from(code % 16))
}

fuzz_target!(|input: &[u8]| {
    let mut engine = Engine::new();
    let mut out = Outcome::default();
    let mut now_us = 1_700_000_000_000_000;
    for (index, record) in (1..).zip(records(input)) {
        let Some((code, body)) = record.split_first() else { continue };
        now_us += step_us(*code);
        engine.apply(now_us, index, body, &mut out);
        engine.next_deadline();
    }
    assert_eq!(engine.recount(), Ok(()));
    let mut pieces = Vec::new();
    engine.snapshot_begin();
    while !engine.snapshot_step(1 << 16, &mut pieces) {}
    let mut pieces = Some(pieces);
    let restored = Engine::restore(&mut || pieces.take()).expect("its own snapshot");
    assert_eq!(restored.recount(), Ok(()));
});
