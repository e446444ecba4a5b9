//! Blocks that are no blocks, and blocks that are bombs.

use super::super::{DecodeError, Decoder, Encoder, HeaderArena, Malformed};
use super::{LIST_BYTES_MAX, decode, decoder, fields, hex, slices};

fn refused(octets: &str) -> Malformed {
    decode(&mut decoder(), &hex(octets)).expect_err(octets)
}

/// §2.3.3, §6.1.
#[test]
fn indexes_that_no_table_has() {
    assert_eq!(refused("80"), Malformed::Index { index: 0, last: 61 });
    assert_eq!(refused("be"), Malformed::Index { index: 62, last: 61 });
    assert_eq!(refused("400161 0162 bf"), Malformed::Index { index: 63, last: 62 });
    assert_eq!(refused("ff80ffffff0f"), Malformed::Index { index: u32::MAX, last: 61 });
    assert_eq!(refused("7f00 0162"), Malformed::Index { index: 63, last: 61 }, "as a name");
    assert_eq!(refused("0f30 0162"), Malformed::Index { index: 63, last: 61 });
    assert_eq!(refused("1f30 0162"), Malformed::Index { index: 63, last: 61 });
}

/// §5.1.
#[test]
fn integers_without_end() {
    for octets in
        ["ff", "ff80", "ff8080808080 00", "ffffffffff7f", "7fffffffffff0f", "0fffffffff7f", "3fffffffff7f"]
    {
        assert_eq!(refused(octets), Malformed::Integer, "{octets}");
    }
    assert_eq!(refused("00 7fffffffff7f"), Malformed::Integer, "the length of a string");
}

/// §5.2.
#[test]
fn strings() {
    assert_eq!(refused("00 0261"), Malformed::Truncated);
    assert_eq!(refused("00 0161"), Malformed::Truncated, "no value");
    assert_eq!(refused("00 0161 7f80ffffff0f"), Malformed::Truncated, "4 GiB");
    assert_eq!(refused("00 81ff 0162"), Malformed::Huffman, "nothing but padding");
    assert_eq!(refused("00 8106 0162"), Malformed::Huffman, "zeros");
    assert_eq!(refused("00 0161 84ffffffff"), Malformed::Huffman, "the end");
}

/// §4.2, §6.3.
#[test]
fn size_updates_out_of_place() {
    assert_eq!(refused("82 20"), Malformed::LateSizeUpdate);
    assert_eq!(refused("20 20 20"), Malformed::LateSizeUpdate, "two are enough");
    assert_eq!(refused("3fe21f"), Malformed::TableSize { size_bytes: 4_097, max_bytes: 4_096 });
    assert_eq!(decode(&mut decoder(), &hex("20 3fe11f 82")), Ok(fields(&[(":method", "GET")])));
}

/// Cut at every byte, a block is the beginning of the list or an error, and never more.
#[test]
fn truncated_at_every_byte() {
    let list = fields(&[
        (":method", "POST"),
        (":path", "/v1/queues/jobs/messages"),
        ("user-agent", "a client of some name/1.0"),
        ("x-long", &"~".repeat(300)),
        ("x-binary", "\u{1}\u{2}\u{ff}"),
        ("authorization", "Bearer 0123456789"),
    ]);
    let mut block = Vec::new();
    Encoder::new().encode(slices(&list), &mut block);
    let mut whole = 0;
    for cut in 0..block.len() {
        match decode(&mut decoder(), &block[..cut]) {
            Ok(decoded) => {
                assert_eq!(decoded, list[..decoded.len()]);
                whole += 1;
            }
            Err(error) => {
                assert!(matches!(error, Malformed::Truncated | Malformed::Integer), "{cut}: {error}")
            }
        }
    }
    assert_eq!(whole, list.len(), "only between fields, and at the beginning");
}

/// One entry of nearly the table's size, and a block of references to it: 4 KiB for each octet of the block.
#[test]
fn a_bomb_of_references_stays_within_the_limit() {
    let (mut decoder, mut arena) = (decoder(), HeaderArena::new());
    let mut bomb = hex("40 0161 7fdd1e");
    bomb.extend(std::iter::repeat_n(b'x', 0x7f + 0x5d + (0x1e << 7)));
    decoder.decode(&bomb, &mut arena).expect("a block");
    let bytes = decoder.table_size_bytes();
    assert!(bytes > 4_000, "{bytes}");
    let result = decoder.decode(&[0xbe; 16 << 10], &mut arena);
    assert_eq!(result, Err(DecodeError::ListTooLarge { max_bytes: LIST_BYTES_MAX }));
    assert_eq!(arena.len(), LIST_BYTES_MAX as usize / bytes);
    assert!(arena.bytes.capacity() <= 2 * LIST_BYTES_MAX as usize);
    assert_eq!(decode(&mut decoder, &[0xbe]).map(|list| list.len()), Ok(1), "and the connection goes on");
}

/// Empty fields cost their 32 bytes, too: a block of indexes cannot make a list of millions.
#[test]
fn many_small_fields_stay_within_the_limit() {
    let mut arena = HeaderArena::new();
    let result = decoder().decode(&[0x8f; 1 << 16], &mut arena);
    assert!(matches!(result, Err(DecodeError::ListTooLarge { .. })));
    assert_eq!(arena.len(), LIST_BYTES_MAX as usize / ("accept-charset".len() + 32));
}

/// A block of one large literal: what is decoded of it is taken away again.
#[test]
fn a_large_literal_is_not_kept() {
    let mut arena = HeaderArena::new();
    let mut decoder = Decoder::new(4_096, 100);
    let list = fields(&[("a", &"0".repeat(60_000)), ("b", "c")]);
    let mut block = Vec::new();
    Encoder::new().encode(slices(&list), &mut block);
    assert!(matches!(decoder.decode(&block, &mut arena), Err(DecodeError::ListTooLarge { .. })));
    assert!(arena.is_empty() && arena.bytes.is_empty(), "nor what comes behind it");
    arena.clear();
    assert!(arena.bytes.capacity() < 60_000, "and its storage is given back");
}

#[test]
fn errors_say_what_would_be_right() {
    let texts = [
        (refused("be").to_string(), "index 62 is not in the tables, which end at 61"),
        (refused("3fe21f").to_string(), "a table of 4097 bytes, where at most 4096 are allowed"),
        (
            DecodeError::Compression(Malformed::Truncated).to_string(),
            "malformed header block: it ends in the middle of a field",
        ),
        (
            DecodeError::ListTooLarge { max_bytes: 5 }.to_string(),
            "the header list has more than 5 bytes (names, values and 32 for each field)",
        ),
    ];
    for (text, expected) in texts {
        assert_eq!(text, expected);
    }
}
