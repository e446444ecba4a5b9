//! Encoding of each kind of field, and changes of the peer's settings.

use super::super::{DecodeError, Decoder, Encoded, Encoder, Field, HeaderArena, Malformed};
use super::{Fields, decode, decoder, fields, hex, slices};

fn block(encoder: &mut Encoder, list: &Fields) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.encode(slices(list), &mut out);
    out
}

/// Encodes the fields several times, and gives how many bytes each time took; decodes them to be sure.
fn lengths(list: &[(&str, &str)], times: usize) -> Vec<usize> {
    let (mut encoder, mut decoder, list) = (Encoder::new(), decoder(), fields(list));
    let each = |_| {
        let block = block(&mut encoder, &list);
        assert_eq!(decode(&mut decoder, &block).as_ref(), Ok(&list));
        block.len()
    };
    (0..times).map(each).collect()
}

#[test]
fn what_comes_again_costs_one_byte() {
    assert_eq!(lengths(&[(":status", "200")], 2), [1, 1]);
    assert_eq!(lengths(&[("content-type", "application/json")], 3)[1..], [1, 1]);
    assert_eq!(lengths(&[(":status", "201")], 2)[1..], [1]);
    assert_eq!(lengths(&[("x-served-by", "one")], 3)[1..], [1, 1], "a new name is worth its place");
}

#[test]
fn what_varies_takes_no_place() {
    for name in ["date", "content-length", "etag", "location", "last-modified", "retry-after", ":path"] {
        let mut encoder = Encoder::new();
        let list = fields(&[(name, "Mon, 21 Oct 2013")]);
        let first = block(&mut encoder, &list);
        assert_eq!(block(&mut encoder, &list), first, "{name}");
        assert_eq!(encoder.table_size_bytes(), 0, "{name}");
    }
}

#[test]
fn identifiers_leave_the_table_alone_and_a_second_sight_is_remembered() {
    let mut encoder = Encoder::new();
    let mut size_bytes = 0;
    for id in 0..200 {
        block(
            &mut encoder,
            &fields(&[("x-request-id", &format!("request-{id}")), ("content-type", "text/plain")]),
        );
        size_bytes = if id == 0 { encoder.table_size_bytes() } else { size_bytes };
        assert_eq!(encoder.table_size_bytes(), size_bytes, "only the first, for its name");
    }
    let again = fields(&[("x-request-id", "request-199")]);
    let second = block(&mut encoder, &again);
    assert!(second.len() > 1 && encoder.table_size_bytes() > size_bytes);
    assert_eq!(block(&mut encoder, &again).len(), 1);
}

/// §7.1.3.
#[test]
fn secrets_are_never_indexed() {
    let secrets = [
        ("authorization", "Bearer abc"),
        ("proxy-authorization", "Basic abc"),
        ("set-cookie", "session=0123456789abcdef0123456789"),
        ("cookie", "a=b"),
    ];
    for secret in secrets {
        let mut encoder = Encoder::new();
        let list = fields(&[secret]);
        for _ in 0..3 {
            let block = block(&mut encoder, &list);
            assert_eq!(block[0] & 0xf0, 0x10, "{}: the representation that nobody may index", secret.0);
            assert_eq!(decode(&mut decoder(), &block), Ok(list.clone()));
        }
        assert_eq!(Encoded::new(slices(&list)).literals()[0] & 0xf0, 0x10);
    }
    assert_eq!(
        lengths(&[("cookie", "session=0123456789abcdef")], 2)[1],
        1,
        "too long to be guessed byte by byte"
    );
}

#[test]
fn any_field_can_be_secret() {
    let mut encoder = Encoder::new();
    let list = fields(&[("x-receipt", "0123"), ("content-type", "text/plain"), (":status", "200")]);
    let mut out = Vec::new();
    encoder.encode(slices(&list).map(|field| Field::from(field).secret()), &mut out);
    assert_eq!(encoder.table_size_bytes(), 0);
    assert_eq!(decode(&mut decoder(), &out), Ok(list));
    assert!(out.starts_with(&hex("10")) && out.ends_with(&hex("18 82 1001")), "{out:02x?}");
}

#[test]
fn large_fields_do_not_empty_the_table() {
    let mut encoder = Encoder::new();
    block(&mut encoder, &fields(&[("content-type", "text/plain")]));
    let size_bytes = encoder.table_size_bytes();
    block(&mut encoder, &fields(&[("x-large", &"!".repeat(3_000)), ("user-agent", &"a".repeat(2_100))]));
    assert_eq!(encoder.table_size_bytes(), size_bytes);
}

/// §4.2, §6.3: a block begins with the smallest size since the last one and the size that is; nothing else
/// comes before.
#[test]
fn size_updates() {
    let list = fields(&[("content-type", "text/plain")]);
    let sizes = |sizes: &[u32]| {
        let mut encoder = Encoder::new();
        block(&mut encoder, &list);
        sizes.iter().for_each(|size| encoder.set_max_table_size(*size));
        let first = block(&mut encoder, &Fields::new());
        assert_eq!(block(&mut encoder, &Fields::new()), [], "once only");
        first
    };
    assert_eq!(sizes(&[]), []);
    assert_eq!(sizes(&[4_096]), [], "as before");
    assert_eq!(sizes(&[1 << 20]), [], "more than we want to use");
    assert_eq!(sizes(&[0]), hex("20"));
    assert_eq!(sizes(&[256]), hex("3fe101"));
    assert_eq!(sizes(&[256, 0, 4_096]), hex("20 3fe11f"), "the smallest and the last");
    assert_eq!(sizes(&[0, 256]), hex("20 3fe101"));
    assert_eq!(sizes(&[256, 100]), hex("3f45"));
}

#[test]
fn size_updates_come_before_constant_fields_and_evict_on_both_sides() {
    let (mut encoder, mut decoder) = (Encoder::new(), decoder());
    let list = fields(&[("content-type", "text/plain"), ("x-a", "b")]);
    let constant = Encoded::new([(&b":status"[..], &b"200"[..])]);
    assert_eq!(decode(&mut decoder, &block(&mut encoder, &list)).as_ref(), Ok(&list));
    encoder.set_max_table_size(40);
    encoder.set_max_table_size(4_096);
    let mut out = Vec::new();
    encoder.append_set(&constant, &mut out);
    assert_eq!(out, hex("3f09 3fe11f 88"));
    encoder.encode(slices(&list), &mut out);
    assert_eq!(decode(&mut decoder, &out).map(|list| list.len()), Ok(3));
    assert_eq!(decoder.table_size_bytes(), encoder.table_size_bytes());
}

/// A set is spelled out, then goes into the table, then is a byte for each field, as long as the peer has a
/// table for it.
#[test]
fn sets_that_come_again() {
    let (mut encoder, mut decoder) = (Encoder::new(), decoder());
    let list = fields(&[(":status", "200"), ("etag", "\"1\""), ("x-a", "b"), ("set-cookie", "a=b")]);
    let set = Encoded::new(slices(&list));
    let mut append = |encoder: &mut Encoder| {
        let mut out = Vec::new();
        encoder.append_set(&set, &mut out);
        assert_eq!(decode(&mut decoder, &out).as_ref(), Ok(&list));
        out.len()
    };
    let secret = "1f28 03 613d62".split_whitespace().map(|octets| octets.len() / 2).sum::<usize>();
    let spelled_out = set.literals().len();
    // The name `etag` takes a byte less where the field goes into the table.
    let inserted = spelled_out - 1;
    assert_eq!([(); 4].map(|()| append(&mut encoder)), [spelled_out, inserted, 3 + secret, 3 + secret]);
    assert_eq!(encoder.table_size_bytes(), 2 * 32 + "etag\"1\"x-ab".len(), "the secret is not among them");
    encoder.set_max_table_size(0);
    assert_eq!([(); 2].map(|()| append(&mut encoder)), [1 + spelled_out, spelled_out]);
    encoder.set_max_table_size(4_096);
    assert_eq!([(); 2].map(|()| append(&mut encoder)), [3 + inserted, 3 + secret]);
}

#[test]
fn a_peer_without_a_table() {
    let mut encoder = Encoder::new();
    encoder.set_max_table_size(0);
    let mut decoder = Decoder::new(0, 4_096);
    decoder.settings_acknowledged();
    let list = fields(&[("content-type", "text/plain"), ("x-a", "b")]);
    for _ in 0..3 {
        let block = block(&mut encoder, &list);
        assert_eq!(decode(&mut decoder, &block).as_ref(), Ok(&list));
    }
}

/// §4.2: once a lower setting is acknowledged, the next block has to follow it.
#[test]
fn the_decoder_holds_the_peer_to_its_own_setting() {
    let mut decoder = Decoder::new(100, 4_096);
    assert_eq!(
        decode(&mut decoder, &hex("3fe11f")),
        Ok(vec![]),
        "4,096, which is right until the acknowledgement"
    );
    decoder.settings_acknowledged();
    let mut late = Decoder::new(100, 4_096);
    late.settings_acknowledged();
    assert_eq!(decode(&mut late, &hex("82")), Err(Malformed::MissingSizeUpdate { max_bytes: 100 }));
    assert_eq!(
        decode(&mut decoder, &hex("3f46")),
        Err(Malformed::TableSize { size_bytes: 101, max_bytes: 100 })
    );
    let mut right = Decoder::new(100, 4_096);
    right.settings_acknowledged();
    assert_eq!(decode(&mut right, &hex("3f45 82")), Ok(fields(&[(":method", "GET")])));
}

/// A larger setting counts from the beginning on: the peer can only know of it from our settings.
#[test]
fn a_larger_table_is_used_when_the_peer_asks_for_it() {
    let mut decoder = Decoder::new(8_192, 4_096);
    assert_eq!(decode(&mut decoder, &hex("3fe13f")), Ok(vec![]), "8,192");
    assert_eq!(
        decode(&mut decoder, &hex("3fe23f")),
        Err(Malformed::TableSize { size_bytes: 8_193, max_bytes: 8_192 })
    );
}

#[test]
fn an_arena_is_used_again() {
    let (mut decoder, mut arena) = (decoder(), HeaderArena::new());
    decoder.decode(&hex("82 86"), &mut arena).expect("a block");
    assert_eq!(arena.len(), 2);
    decoder.decode(&hex("84"), &mut arena).expect("a block");
    assert_eq!(super::listed(&arena), fields(&[(":path", "/")]), "the earlier ones are gone");
    arena.clear();
    assert!(arena.is_empty() && arena.iter().next().is_none());
}

/// A list that is too large leaves the tables in step, keeps what fits, and does not end the connection.
#[test]
fn a_list_that_is_too_large() {
    let (mut encoder, mut arena) = (Encoder::new(), HeaderArena::new());
    let mut decoder = Decoder::new(4_096, 100);
    let list = fields(&[("a", &"1".repeat(60)), ("b", "23"), ("c", "4")]);
    let result = decoder.decode(&block(&mut encoder, &list), &mut arena);
    assert_eq!(result, Err(DecodeError::ListTooLarge { max_bytes: 100 }));
    assert_eq!(super::listed(&arena), list[..1], "93 bytes; with 35 more it would be too many");
    assert_eq!(decoder.table_size_bytes(), encoder.table_size_bytes());
    let short = list[1..].to_vec();
    let again = block(&mut encoder, &short);
    assert_eq!(again.len(), 2, "both are in the table");
    assert_eq!(decode(&mut decoder, &again), Ok(short));
    let exactly = fields(&[("a", &"1".repeat(67))]);
    assert_eq!(decode(&mut decoder, &block(&mut encoder, &exactly)), Ok(exactly), "100 bytes");
}
