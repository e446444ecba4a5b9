//! Encoded records as the log holds them: reading ends at what is no record, and what was read can be written
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_journal::{Batch, Records};

fuzz_target!(|input: &[u8]| {
    let mut batch = Batch::new();
    let mut bodies = Vec::new();
    for record in Records::new(input) {
        let blobs: Option<Vec<_>> = (0..record.blob_count()).map(|item| record.blob(item)).collect();
        // The ends of the blobs of a record that nobody wrote may cross.
        let Some(blobs) = blobs else { continue };
        let mut writer = batch.record(record.blob_count());
        writer.body(record.body);
        for blob in blobs {
            writer.blob(&[blob]);
        }
        drop(writer);
        bodies.push(record.body);
    }
    batch.retain(|_| true);
    let (bytes, count) = batch.take();
    assert_eq!(count as usize, bodies.len());
    assert!(Records::new(&bytes).map(|record| record.body).eq(bodies));
});
