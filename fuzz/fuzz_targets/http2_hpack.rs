//! Header blocks of one connection, as records. What decodes, encodes to blocks that decode to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::framing;
use sluice_http2::hpack::{DecodeError, Decoder, Encoder, HeaderArena};

const LIST_BYTES_MAX: usize = 8 << 10;

fuzz_target!(|input: &[u8]| {
    let mut decoder = Decoder::new(4_096, LIST_BYTES_MAX as u32);
    let (mut encoder, mut checker) = (Encoder::new(), Decoder::new(4_096, LIST_BYTES_MAX as u32));
    let (mut decoded, mut checked, mut again) = (HeaderArena::new(), HeaderArena::new(), Vec::new());
    for block in framing::records(input) {
        let result = decoder.decode(block, &mut decoded);
        let bytes: usize = decoded.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        assert!(bytes <= LIST_BYTES_MAX);
        if let Err(DecodeError::Compression(_)) = result {
            return;
        }
        again.clear();
        // The peer's setting changes, too.
        if let [first, .., last] = block {
            encoder.set_max_table_size(u32::from(*first) * u32::from(*last));
        }
        encoder.encode(decoded.iter(), &mut again);
        checker.decode(&again, &mut checked).expect("our own block");
        assert!(decoded.iter().eq(checked.iter()));
    }
});
