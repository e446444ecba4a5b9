//! A backup's stream, of one shard or of a whole node: it is refused, or the directory opens.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::disk::MemDisk;
use sluice_fuzz::image;

fuzz_target!(|input: &[u8]| {
    if input.starts_with(b"SLUICEB1") {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let _ = sluice_node::backup::restore(&mut &input[..], &dir.path().join("data"), &RootKeys::default());
        return;
    }
    let disk = MemDisk::default();
    if sluice_journal::restore_on(std::sync::Arc::new(disk.clone()), &mut &input[..], &image::dir(), &image::roots()).is_ok() {
        image::read(&disk).expect("what was restored and verified opens");
    }
});
