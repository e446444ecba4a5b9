//! A backup's stream, of one shard or of a whole node: it is refused, or the directory opens.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::disk::MemDisk;
use sluice_fuzz::image;

fuzz_target!(|input: &[u8]| {
    if input.starts_with(b"SLUICEB1") {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let _ = sluice_node::backup::restore(&mut &input[..], &dir.path().join("data"), &image::roots());
        return;
    }
    let disk = MemDisk::default();
    let shared = std::sync::Arc::new(disk.clone());
    if sluice_journal::restore_on(shared, &mut &input[..], &image::dir(), &image::roots()).is_ok() {
        image::read_with(&disk, &image::encrypted()).expect("what was restored and verified opens");
    }
});
