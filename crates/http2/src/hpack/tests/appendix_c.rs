//! Every example of RFC 7541, Appendix C (C.1 is in `integer`).

use super::super::{Decoder, Encoded, Encoder};
use super::{decode, decoder, fields, hex, slices};

/// One block after the other: the octets, the fields, and the table's size behind it.
type Example = (&'static str, &'static [(&'static str, &'static str)], usize);

fn check(mut decoder: Decoder, table_bytes: u32, examples: &[Example]) {
    if table_bytes < 4_096 {
        // The examples with a small table suppose that it was agreed upon before.
        assert_eq!(decode(&mut decoder, &hex("3fe101")), Ok(vec![]), "a size update to 256");
    }
    for (octets, expected, size_bytes) in examples {
        assert_eq!(decode(&mut decoder, &hex(octets)), Ok(fields(expected)));
        assert_eq!(decoder.table_size_bytes(), *size_bytes);
    }
}

/// C.2.1 to C.2.4.
#[test]
fn single_fields() {
    let indexed = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(decoder(), 4_096, &[(indexed, &[("custom-key", "custom-header")], 55)]);
    check(decoder(), 4_096, &[("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], 0)]);
    let never = "1008 7061 7373 776f 7264 0673 6563 7265 74";
    check(decoder(), 4_096, &[(never, &[("password", "secret")], 0)]);
    check(decoder(), 4_096, &[("82", &[(":method", "GET")], 0)]);
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

/// C.3.1 to C.3.3.
#[test]
fn requests_without_huffman() {
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    check(
        decoder(),
        4_096,
        &[(blocks[0], REQUESTS[0], 57), (blocks[1], REQUESTS[1], 110), (blocks[2], REQUESTS[2], 164)],
    );
}

const HUFFMAN_REQUESTS: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

/// C.4.1 to C.4.3, in both directions: these are what our encoder makes of them, too.
#[test]
fn requests_with_huffman() {
    let sizes = [57, 110, 164];
    let mut encoder = Encoder::new();
    let examples = HUFFMAN_REQUESTS
        .into_iter()
        .zip(REQUESTS)
        .zip(sizes)
        .map(|((octets, list), size)| (octets, list, size));
    let examples: Vec<Example> = examples.collect();
    check(decoder(), 4_096, &examples);
    for (octets, list, size_bytes) in examples {
        let mut block = Vec::new();
        encoder.encode(slices(&fields(list)), &mut block);
        assert_eq!(block, hex(octets));
        assert_eq!(encoder.table_size_bytes(), size_bytes);
    }
}

const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

const RESPONSES: [&[(&str, &str)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        ("set-cookie", COOKIE),
    ],
];

/// C.5.1 to C.5.3: a table of 256 bytes, from which the first fields are evicted.
#[test]
fn responses_without_huffman() {
    let blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 54
         6e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
         3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let sizes = [222, 222, 215];
    let examples: Vec<Example> =
        (0..3).map(|example| (blocks[example], RESPONSES[example], sizes[example])).collect();
    check(Decoder::new(256, 4_096), 256, &examples);
}

/// C.6.1 to C.6.3.
#[test]
fn responses_with_huffman() {
    let blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b
         97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335
         dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    let sizes = [222, 222, 215];
    let examples: Vec<Example> =
        (0..3).map(|example| (blocks[example], RESPONSES[example], sizes[example])).collect();
    check(Decoder::new(256, 4_096), 256, &examples);
}

/// Constant fields are encoded without the table, and secrets as never indexed.
#[test]
fn constant_fields() {
    let list =
        fields(&[(":status", "200"), ("content-type", "text/plain"), ("set-cookie", "a=b"), ("x-a", "b")]);
    let constant = Encoded::new(slices(&list));
    let octets = "88 0f10 87 497ca58ae819aa 1f28 03 613d62 00 03 782d61 01 62";
    assert_eq!(constant.literals(), hex(octets), "in Huffman code only where that is shorter");
}
