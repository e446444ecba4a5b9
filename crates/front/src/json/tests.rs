//! The reader and the writer against a general JSON library, and against noise.

use serde_json::Value;

use super::reader::Kind;
use super::*;
use crate::hot::source::Source as _;

/// Reads any value, to compare with the library's view.
fn any(reader: &mut Reader<'_>, depth: usize) -> Read<Value> {
    if depth > 60 {
        return Err(Fault::invalid("too deep for this test"));
    }
    match reader.kind()? {
        Kind::Object => {
            let mut map = serde_json::Map::new();
            reader.entries(|reader, key| {
                let key = key.get(reader.scratch()).to_owned();
                let value = any(reader, depth + 1)?;
                map.insert(key, value);
                Ok(())
            })?;
            Ok(Value::Object(map))
        }
        Kind::Array => {
            let mut list = Vec::new();
            reader.array(|reader, _| {
                list.push(any(reader, depth + 1)?);
                Ok(())
            })?;
            Ok(Value::Array(list))
        }
        Kind::String => {
            let text = reader.string()?;
            Ok(Value::String(text.get(reader.scratch()).to_owned()))
        }
        Kind::Number => Ok(Value::from(reader.integer(0, u64::MAX)?)),
        Kind::Boolean => Ok(Value::from(reader.boolean()?)),
        Kind::Null => Err(reader.wrong_type("anything else")),
    }
}

fn document(body: &[u8]) -> Read<Value> {
    let mut reader = Reader::new(body)?;
    let value = any(&mut reader, 0)?;
    reader.finish()?;
    Ok(value)
}

fn message(body: &str) -> String {
    let fault = document(body.as_bytes()).unwrap_err();
    format!("{} {}", fault.code, fault.reason)
}

#[test]
fn what_the_reader_takes_the_library_takes_as_well_and_reads_the_same() {
    let seeds = [
        r#"{"messages":[{"payload":"a\n\"\u00e9\ud83d\ude00","priority":9,"headers":{"a":"b"}}, {}]}"#,
        r#" [ 0 , 18446744073709551615 , true,false,"" , "\\\/\b\f\r\t" ] "#,
        "{\"é\":\"😀\",\"b\":[[],{}]}",
    ];
    let mut random = sluice_calls::testing::Random(7);
    let mut taken = 0;
    for round in 0..60_000 {
        let mut body = seeds[round % seeds.len()].as_bytes().to_vec();
        if round >= seeds.len() {
            random.mutate(&mut body);
        }
        if let Ok(value) = document(&body) {
            taken += 1;
            let library: Value = serde_json::from_slice(&body)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)));
            assert_eq!(value, library);
        }
    }
    assert!(taken > 1_000, "the mutations leave nothing good: {taken}");
}

#[test]
fn what_the_writer_writes_the_library_reads() {
    let all: String = (0..0x300).filter_map(char::from_u32).chain("😀\u{2028}".chars()).collect();
    for start in 0..40 {
        let text: String = all.chars().skip(start).collect();
        let mut out = Vec::new();
        object(&mut out, |o| {
            o.text("text", &text);
            o.foreign(&text, "x");
            o.number("zero", 0);
            o.number("most", u64::MAX);
            o.boolean("yes", true);
            o.base64("octets", &[255, 0, 1]);
            o.ascii("id", b"0v");
            o.object("empty", |_| {});
            o.list("list", ["a", "b"], push_text);
        });
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["text"], text);
        assert_eq!(value[&text], "x");
        assert_eq!(value["most"], u64::MAX);
        assert_eq!(value["octets"], "/wAB");
        assert_eq!(value["list"], serde_json::json!(["a", "b"]));
    }
}

#[test]
fn syntax_errors_tell_the_place() {
    assert_eq!(
        message("{\"a\":1,\n  b}"),
        "invalid_json line 2, column 3: expected a field's name in double quotes"
    );
    assert_eq!(message("{\"a\" 1}"), "invalid_json line 1, column 6: expected ':' after the field's name");
    assert_eq!(message("[1 2]"), "invalid_json line 1, column 4: expected ',' or ']'");
    assert_eq!(message("[1]]"), "invalid_json line 1, column 4: expected the end of the body");
    assert_eq!(message(" \n"), "invalid_json the body is empty: expected JSON");
    assert_eq!(message("["), "invalid_json line 1, column 2: the body ends in the middle");
    assert_eq!(message("\"abc"), "invalid_json line 1, column 5: the body ends in the middle of a string");
    assert_eq!(message("\"\\ud800\""), "invalid_json line 1, column 8: half of a surrogate pair in a string");
    assert_eq!(message("[01]"), "invalid_json line 1, column 4: this is not a number");
    assert!(document(b"\"\xff\"").unwrap_err().reason.contains("not UTF-8 from byte 1"));
}

#[test]
fn wrong_values_tell_what_was_expected_and_found() {
    assert_eq!(
        message("1.5"),
        "wrong_type expected an integer without fraction or exponent, got the number 1.5"
    );
    assert_eq!(message("-3"), "invalid_argument expected a number from 0 to 18446744073709551615, got -3");
    assert_eq!(
        message("18446744073709551616"),
        "invalid_argument expected a number from 0 to 18446744073709551615, got 18446744073709551616"
    );
    assert_eq!(message("null"), "wrong_type expected anything else, got null (leave the field out instead)");
}

#[test]
fn fields_unknown_and_repeated_are_refused_with_their_path() {
    let read = |body: &'static str| {
        let mut reader = Reader::new(body.as_bytes()).unwrap();
        reader
            .object(&["list"], |reader, _| {
                reader.array(|reader, _| {
                    reader.object(&["a", "b"], |reader, _| reader.integer(0, 9).map(|_| ()))
                })
            })
            .unwrap_err()
    };
    let fault = read(r#"{"list":[{"a":1},{"c":1}]}"#);
    assert_eq!((fault.code, fault.field.as_str()), ("unknown_field", "list[1].c"));
    assert_eq!(fault.reason, "unknown field: known here are a, b");
    let fault = read(r#"{"list":[{"a":1,"a":2}]}"#);
    assert_eq!((fault.code, fault.field.as_str()), ("duplicate_field", "list[0].a"));
    let fault = read(r#"{"list":[{"a":"x"}]}"#);
    assert_eq!((fault.code, fault.field.as_str()), ("wrong_type", "list[0].a"));
    assert_eq!(fault.reason, "expected an integer, got the string \"x\"");
}

#[test]
fn an_object_is_taken_as_it_is_written() {
    for object in ["{}", "{ \"a\" : [1.50, null, {\"\u{fc}\": \"}\"}] }", "{\"a\":1,\"a\":2}"] {
        let body = format!(" {object} , 7");
        let mut reader = Reader::new(body.as_bytes()).unwrap();
        assert_eq!(reader.object_token().unwrap(), object);
        assert_eq!(reader.peek(), Some(b','));
    }
    let deep = ["{\"a\":".repeat(10_000), "1".to_owned(), "}".repeat(10_000)].concat();
    assert_eq!(Reader::new(deep.as_bytes()).unwrap().object_token().unwrap(), deep);
    for (wrong, code) in [
        ("", "invalid_json"),
        ("{\"a\":", "invalid_json"),
        ("{\"a\":01}", "invalid_json"),
        ("{a:1}", "invalid_json"),
        ("[{}]", "wrong_type"),
        ("\"{}\"", "wrong_type"),
    ] {
        assert_eq!(Reader::new(wrong.as_bytes()).unwrap().object_token().unwrap_err().code, code, "{wrong}");
    }
}
