//! Reading the JSON of messages.

use super::*;
use crate::json::Reader;

fn fault(body: &str) -> String {
    let fault =
        Reader::new(body.as_bytes()).and_then(|reader| Batch::read(reader, &Limits::default())).unwrap_err();
    format!("{} {}: {}", fault.code, fault.field, fault.reason)
}

#[test]
fn one_message_with_everything() {
    let body = br#"{"payload":"a\"b","content_type":"text/plain","headers":{"x":"1","y":"\u00e9"},
        "priority":9,"deliver_at_ms":5,"max_attempts":3,"backoff":{"kind":"fixed","base_ms":7}}"#;
    let batch = Reader::new(body).and_then(|reader| Batch::read(reader, &Limits::default())).unwrap();
    let headers = batch.headers();
    let options = batch.options();
    let tags = batch.tags();
    let items = batch.items(&headers, &tags, &options);
    assert!(!batch.is_list);
    assert_eq!(items[0].payload, b"a\"b");
    assert_eq!(items[0].content_type, "text/plain");
    assert_eq!(items[0].headers, [("x", "1"), ("y", "é")]);
    assert_eq!((items[0].priority, items[0].max_attempts), (9, 3));
    assert_eq!(items[0].deliver, Deliver::AtUs(5_000));
    assert_eq!(items[0].backoff.unwrap().base_ms, 7);
}

#[test]
fn a_group_has_queues_and_a_callback() {
    let body = br#"{"callback":{"queue":"c","payload":"z"},"messages":[{"queue":"a","payload":"x"}]}"#;
    let (batch, queues) =
        Reader::new(body).and_then(|reader| Batch::read_group(reader, &Limits::default())).unwrap();
    let (headers, tags, options) = (batch.headers(), batch.tags(), batch.options());
    let payloads: Vec<&[u8]> =
        batch.items(&headers, &tags, &options).iter().map(|item| item.payload).collect();
    assert_eq!(payloads, [b"x", b"z"]);
    assert_eq!(queues.iter().map(|queue| batch.text(*queue)).collect::<Vec<_>>(), ["a", "c"]);
    for (body, expected) in [
        (r#"{"messages":[]}"#, "missing_field callback: a group needs the message"),
        (r#"{"callback":{"queue":"c","payload":""}}"#, "missing_field messages: a group needs its list"),
        (r#"{"messages":[{"payload":""}]}"#, "missing_field messages[0].queue: say which queue"),
        (
            r#"{"messages":[],"callback":{"queue":"c","payload_base64":"?"}}"#,
            "invalid_argument callback.payload_base64",
        ),
    ] {
        let fault = Reader::new(body.as_bytes())
            .and_then(|reader| Batch::read_group(reader, &Limits::default()))
            .unwrap_err();
        let told = format!("{} {}: {}", fault.code, fault.field, fault.reason);
        assert!(told.starts_with(expected), "{body}: {told}");
    }
}

#[test]
fn a_list_keeps_payloads_and_headers_apart() {
    let body = br#"{"messages":[{"payload":"","headers":{"a":"1"}},{"payload_base64":"/wA="},
        {"payload_base64":"","headers":{"a":"2"}}]}"#;
    let batch = Reader::new(body).and_then(|reader| Batch::read(reader, &Limits::default())).unwrap();
    let headers = batch.headers();
    let options = batch.options();
    let tags = batch.tags();
    let items = batch.items(&headers, &tags, &options);
    assert!(batch.is_list);
    let payloads: Vec<&[u8]> = items.iter().map(|item| item.payload).collect();
    assert_eq!(payloads, [&b""[..], &[255, 0], b""]);
    assert_eq!(items[2].headers, [("a", "2")]);
    assert!(items[1].headers.is_empty());
}

#[test]
fn mistakes_are_named_with_their_place() {
    let cases = [
        ("[]", "wrong_type : expected an object, got an array"),
        ("{}", "missing_field payload: a message needs payload (text) or payload_base64 (octets)"),
        (
            r#"{"payload":"a","payload_base64":"b"}"#,
            "conflicting_fields payload_base64: payload and payload_base64 are both given: give one of the two",
        ),
        (
            r#"{"messages":[{"payload":"","delay_ms":1,"deliver_at_ms":2}]}"#,
            "conflicting_fields messages[0].deliver_at_ms: delay_ms and deliver_at_ms are both given: give one of the two",
        ),
        (
            r#"{"messages":[],"payload":"a"}"#,
            "conflicting_fields : messages and payload are both given: give one of the two",
        ),
        (r#"{"messages":[]}"#, "invalid_argument messages: expected at least one message"),
        (
            r#"{"messages":[{"payload":""},{"payload_base64":"_w=="}]}"#,
            "invalid_argument messages[1].payload_base64: expected standard base64 with padding (RFC 4648 section 4)",
        ),
        (
            r#"{"payload":"","priority":10}"#,
            "invalid_argument priority: expected a number from 0 to 9, got 10",
        ),
        (r#"{"payload":"","headers":{"a":1}}"#, "wrong_type headers.a: expected a string, got the number 1"),
        (
            r#"{"payload":"","headers":{"a":"","a":""}}"#,
            "duplicate_field headers.a: the header is given twice",
        ),
        (
            r#"{"payload":"","delay_ms":null}"#,
            "wrong_type delay_ms: expected an integer, got null (leave the field out instead)",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(fault(body), expected, "{body}");
    }
    assert!(
        fault(r#"{"payload":"","delay":1}"#).starts_with(
            "unknown_field delay: unknown field, did you mean delay_ms? Known here are payload,"
        )
    );
    assert!(
        fault(r#"{"payload":{"a":1}}"#).starts_with("wrong_type payload: expected a string, got an object: ")
    );
    assert!(fault(r#"{"payload":["a"]}"#).contains("\"content_type\":\"application/json\""));
}

#[test]
fn what_is_over_a_limit_is_counted_but_not_kept() {
    let limits = Limits { batch_items: 2, headers: 1, ..Limits::default() };
    let body = r#"{"messages":[{"payload":""},{"payload":""},{"payload":""},{"payload":""}]}"#;
    let fault = Reader::new(body.as_bytes()).and_then(|reader| Batch::read(reader, &limits)).unwrap_err();
    assert_eq!(fault.engine, Some(Error::BatchTooLarge { what: "messages", size: 4, limit: 2 }));
    let body = r#"{"payload":"","headers":{"a":"","b":""}}"#;
    let fault = Reader::new(body.as_bytes()).and_then(|reader| Batch::read(reader, &limits)).unwrap_err();
    let field = FieldPath::default();
    assert_eq!(fault.engine, Some(Error::HeadersTooLarge { field, what: "headers", size: 2, limit: 1 }));
}

#[test]
fn noise_never_panics() {
    let seed = br#"{"messages":[{"payload":"a\u00e9","headers":{"a":"b"},"backoff":{"kind":"none"}},{"payload_base64":"/wA=","delay_ms":5}]}"#;
    let mut random = sluice_calls::testing::Random(11);
    let mut good = 0;
    for _ in 0..50_000 {
        let mut body = seed.to_vec();
        random.mutate(&mut body);
        if let Ok(batch) = Reader::new(&body).and_then(|reader| Batch::read(reader, &Limits::default())) {
            let headers = batch.headers();
            good += batch.items(&headers, &batch.tags(), &batch.options()).len();
        }
    }
    assert!(good > 100, "the mutations leave nothing good: {good}");
}
