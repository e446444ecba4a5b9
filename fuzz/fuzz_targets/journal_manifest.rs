//! A manifest that says anything, with the right checksum, in a directory whose other files are whole.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::image::{self, Image};

static IMAGE: LazyLock<Image> = LazyLock::new(image::make);

fuzz_target!(|input: &[u8]| {
    let disk = IMAGE.disk.copy();
    disk.change(&image::dir().join("manifest"), |bytes| {
        bytes.truncate(12);
        bytes.extend_from_slice(&crc32fast::hash(input).to_le_bytes());
        bytes.extend_from_slice(input);
    });
    let _ = image::read(&disk);
});
