//! A data directory with damaged, cut, exchanged or missing files: it does not open, or what it gives is what
//! was written, up to some record.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::framing::damage;
use sluice_fuzz::image::{self, Image};

static IMAGE: LazyLock<Image> = LazyLock::new(image::make);

fuzz_target!(|input: &[u8]| {
    let disk = IMAGE.disk.copy();
    damage(&disk, input);
    let Ok(replayed) = image::read(&disk) else { return };
    // Without its manifest a directory is a new one, which is the one thing that no file can tell.
    let mut next = replayed.first_key_value().map(|(index, _)| *index);
    for (index, body) in &replayed {
        assert_eq!(Some(*index), next, "a record is missing in the middle");
        assert_eq!(Some(body), IMAGE.bodies.get(index), "record {index} is not what was written");
        next = Some(index + 1);
    }
});
