//! A keyring that says anything, with the right checksum, in an encrypted directory whose other files are
//! whole: it does not open, or its records are those that were written.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::image::{self, Image};

static IMAGE: LazyLock<Image> = LazyLock::new(|| image::make_with(&image::encrypted()));

fuzz_target!(|input: &[u8]| {
    let disk = IMAGE.disk.copy();
    disk.change(&image::dir().join("keyring"), |bytes| {
        bytes.truncate(12);
        bytes.extend_from_slice(&crc32fast::hash(input).to_le_bytes());
        bytes.extend_from_slice(input);
    });
    let Ok(replayed) = image::read_with(&disk, &image::encrypted()) else { return };
    for (index, body) in &replayed {
        assert_eq!(Some(body), IMAGE.bodies.get(index), "record {index} is not what was written");
    }
});
