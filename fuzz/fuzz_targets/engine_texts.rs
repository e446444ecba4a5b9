//! The blob of a message, and ids and receipts as text: what can be read is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_engine::blob::{BlobHead, MessageBlob};
use sluice_engine::{MessageId, Receipt};

fuzz_target!(|input: &[u8]| {
    if let Some(blob) = MessageBlob::parse(input) {
        let headers: Vec<_> = blob.headers().collect();
        assert!(blob.payload.len() + headers.len() <= input.len());
        if headers.len() <= 255 {
            let head = BlobHead::default().build(blob.content_type, &headers).to_vec();
            let again = [&head, blob.payload].concat();
            let again = MessageBlob::parse(&again).expect("just written");
            assert_eq!((again.content_type, again.payload), (blob.content_type, blob.payload));
            assert!(again.headers().eq(headers));
        }
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(id) = text.parse::<MessageId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(receipt) = text.parse::<Receipt>() {
        assert_eq!(receipt.to_string(), text);
    }
});
