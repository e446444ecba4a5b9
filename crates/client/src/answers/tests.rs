//! Answers are read as serde reads them, whatever stands in them and in whichever order.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

#[derive(Deserialize)]
struct DeliveredWire {
    id: String,
    receipt: String,
    queue: String,
    payload: Option<String>,
    payload_base64: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    priority: u8,
    attempt: u32,
    max_attempts: u32,
    #[serde(default)]
    deliveries: u32,
    sent_at_ms: u64,
    lease_until_ms: u64,
}

#[derive(Deserialize)]
struct ReceivedWire {
    messages: Vec<DeliveredWire>,
}

#[derive(Deserialize)]
struct SentWire {
    id: Option<String>,
    #[serde(default)]
    ids: Vec<String>,
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    duplicates: Vec<u32>,
}

#[derive(Deserialize)]
struct ResultWire {
    ok: bool,
    #[serde(default)]
    already_settled: bool,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ResultsWire {
    results: Vec<ResultWire>,
}

impl DeliveredWire {
    fn read(self) -> Option<Delivered> {
        let decoded = self.payload_base64.map(|text| base64::decode(&text)).transpose().ok()?;
        Some(Delivered {
            id: self.id,
            receipt: self.receipt,
            queue: self.queue,
            payload: Payload(self.payload.map(String::into_bytes).or(decoded).unwrap_or_default().into()),
            content_type: self.content_type,
            headers: self.headers,
            priority: self.priority,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            deliveries: self.deliveries,
            sent_at_ms: self.sent_at_ms,
            lease_until_ms: self.lease_until_ms,
            details: None,
        })
    }
}

fn by_serde<T: DeserializeOwned, U>(text: &str, read: impl FnOnce(T) -> Option<U>) -> Option<U> {
    serde_json::from_str(text).ok().and_then(read)
}

/// Reads the text both ways as each of the answers; tells how many of them it was.
fn compare(text: &str) -> usize {
    let body = ReceivedBody(Bytes::copy_from_slice(text.as_bytes()));
    let expected = by_serde(text, |w: ReceivedWire| {
        w.messages.into_iter().map(DeliveredWire::read).collect::<Option<Vec<_>>>()
    });
    let received = body.detach().ok();
    assert_eq!(received, expected, "{text}");
    let expected = by_serde(text, |wire: SentWire| {
        let ids = wire.ids.into_iter().chain(wire.id).map(Cow::Owned).collect();
        Some(SentIds { ids, duplicate: wire.duplicate, duplicates: wire.duplicates })
    });
    let sent = read_sent(text.as_bytes()).ok();
    assert_eq!(sent, expected, "{text}");
    let expected = by_serde(text, |wire: ResultsWire| {
        let one = |r: ResultWire| ItemResult { ok: r.ok, already_settled: r.already_settled, error: r.error };
        Some(wire.results.into_iter().map(one).collect::<Vec<_>>())
    });
    let results = read_results(text.as_bytes(), 3).ok();
    assert_eq!(results, expected, "{text}");
    usize::from(received.is_some()) + usize::from(sent.is_some()) + usize::from(results.is_some())
}

/// Numbers that look random and are the same each time (xorshift64*).
struct Dice {
    state: u64,
    /// As the server writes it: no blanks, every field in its place.
    tidy: bool,
}

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    fn blanks(&mut self) -> &'static str {
        if !self.tidy && self.one_in(4) { self.pick_static() } else { "" }
    }

    fn pick_static(&mut self) -> &'static str {
        [" ", "\n", "\t\r ", "  "][self.below(4) as usize]
    }

    /// A string as JSON, of pieces that a reader could stumble over.
    fn string(&mut self) -> String {
        let mut text = String::from("\"");
        for _ in 0..self.below(6) {
            text.push_str(self.pick(&[
                "a",
                "plain text that is longer than a block of the scan",
                "ü",
                "\u{1F600}",
                "\\n",
                "\\\"",
                "\\\\",
                "\\/",
                "\\u0041",
                "\\u00e9",
                "\\ud83d\\ude00",
                "/wA=",
                "AAAA",
                "\\b\\f\\r\\t",
                "{",
                "]",
                ",",
                ":",
                "\u{7f}",
            ]));
        }
        if self.one_in(40) {
            text.push_str(self.pick(&[
                "\\x",
                "\\ud83d",
                "\\ude00",
                "\\ud83d\\u0041",
                "\\u00g0",
                "\n",
                "\u{1}",
                "\\u12",
            ]));
        }
        text.push('"');
        text
    }

    fn number(&mut self) -> String {
        match self.below(12) {
            0 => self
                .pick(&[
                    "-1",
                    "1.5",
                    "1e3",
                    "-0",
                    "01",
                    "1.",
                    "0x1",
                    "18446744073709551615",
                    "18446744073709551616",
                    "4294967296",
                    "256",
                    "99999999999999999999999",
                    "2E+1",
                    "+1",
                ])
                .to_owned(),
            _ => self.below(256).to_string(),
        }
    }

    /// Any value; deep ones are rare.
    fn value(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => self.string(),
            1 => self.number(),
            2 => "null".to_owned(),
            3 => self.pick(&["true", "false", "true", "false", "tru"]).to_owned(),
            4 => self.string(),
            5 => {
                let count = self.below(3);
                let items = (0..count).map(|_| self.value(depth - 1)).collect();
                self.list(items)
            }
            _ => {
                let names = ["a", "b", "code", "message"];
                let count = self.below(4) as usize;
                let fields = names[..count].iter().map(|name| (*name, self.value(depth - 1))).collect();
                self.object(fields)
            }
        }
    }

    fn list(&mut self, items: Vec<String>) -> String {
        let items: Vec<String> =
            items.iter().map(|item| format!("{}{item}{}", self.blanks(), self.blanks())).collect();
        format!("[{}]", items.join(","))
    }

    /// The fields in any order, some left out, some of another type, some unknown, seldom one twice.
    fn object(&mut self, mut fields: Vec<(&str, String)>) -> String {
        let shuffled = if self.tidy { 0 } else { fields.len() };
        for at in (1..shuffled).rev() {
            fields.swap(at, self.below(at as u64 + 1) as usize);
        }
        if self.one_in(60) && !fields.is_empty() {
            fields.pop();
        }
        if self.one_in(100) && !fields.is_empty() {
            let again = fields[0].clone();
            fields.push(again);
        }
        if self.one_in(if self.tidy { 40 } else { 3 }) {
            let value = self.value(3);
            fields.insert(self.below(fields.len() as u64 + 1) as usize, ("unknown", value));
        }
        let mut parts = Vec::new();
        for (name, value) in fields {
            // serde takes a list for an object, in the order of its fields; this reader does not.
            let other = if self.one_in(120) { Some(self.value(2)) } else { None };
            let value = other.filter(|other| !other.starts_with('[')).unwrap_or(value);
            let name = if !self.tidy && self.one_in(20) {
                name.replacen('e', "\\u0065", 1)
            } else {
                name.to_owned()
            };
            parts.push(format!(
                "{}\"{name}\"{}:{}{value}{}",
                self.blanks(),
                self.blanks(),
                self.blanks(),
                self.blanks()
            ));
        }
        format!("{{{}}}", parts.join(","))
    }

    fn delivered(&mut self) -> String {
        let mut fields = vec![("id", self.string()), ("receipt", self.string()), ("queue", self.string())];
        match self.below(8) {
            0 => fields.push((
                "payload_base64",
                self.pick(&["\"/wA=\"", "\"\"", "null", "\"AAEC\"", "\"/w\"", "\"a\\/+A\""]).to_owned(),
            )),
            1 => fields.push(("payload", "null".to_owned())),
            2 => {}
            _ => fields.push(("payload", self.string())),
        }
        if self.one_in(3) {
            fields.push(("content_type", self.string()));
        }
        if self.one_in(3) {
            let values = [("x", self.string()), ("e", self.string())];
            let text = self.object(values.to_vec());
            fields.push(("headers", text));
        }
        for name in ["priority", "attempt", "max_attempts", "deliveries", "sent_at_ms", "lease_until_ms"] {
            if !["priority", "deliveries"].contains(&name) || self.tidy || self.one_in(2) {
                fields.push((name, self.number()));
            }
        }
        self.object(fields)
    }

    fn result(&mut self) -> String {
        let mut fields = vec![("ok", self.pick(&["true", "false"]).to_owned())];
        if self.one_in(3) {
            fields.push(("already_settled", "true".to_owned()));
        }
        if self.one_in(3) {
            let mut error = vec![("code", self.string()), ("message", self.string())];
            if self.one_in(2) {
                error.push(("details", self.value(3)));
            }
            let error = if self.one_in(4) { "null".to_owned() } else { self.object(error) };
            fields.push(("error", error));
        }
        self.object(fields)
    }

    fn document(&mut self) -> String {
        self.tidy = self.one_in(2);
        let count = self.below(4);
        let fields = match self.below(4) {
            0 => {
                let results = (0..count).map(|_| self.result()).collect();
                vec![("results", self.list(results))]
            }
            1 => {
                let ids = (0..count).map(|_| self.string()).collect();
                let ids = if self.one_in(2) { ("ids", self.list(ids)) } else { ("id", self.string()) };
                vec![ids, ("duplicate", self.pick(&["true", "false"]).to_owned())]
            }
            _ => {
                let messages = (0..count).map(|_| self.delivered()).collect();
                vec![("messages", self.list(messages))]
            }
        };
        format!("{}{}{}", self.blanks(), self.object(fields), self.blanks())
    }
}

#[test]
fn random_documents_are_read_as_serde_reads_them() {
    let mut dice = Dice { state: 0x9e37_79b9_7f4a_7c15, tidy: false };
    let mut read = 0;
    for _ in 0..8_000 {
        read += compare(&dice.document());
    }
    assert!(read > 4_000, "most are answers: {read}");
}

#[test]
fn broken_documents_are_refused_as_serde_refuses_them() {
    let mut dice = Dice { state: 0x2545_f491_4f6c_dd1d, tidy: false };
    for _ in 0..8_000 {
        let mut bytes = dice.document().into_bytes();
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(3) {
            0 => bytes.truncate(at),
            1 => bytes[at] = dice.pick(&["\"", "\\", "{", "}", ",", ":", "0", "x", "\n", "\0"]).as_bytes()[0],
            _ => bytes.insert(at, dice.pick(&["\"", "\\", "]", "}", ",", ":", "0", "-", " "]).as_bytes()[0]),
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            compare(text);
        }
    }
}

fn delivery(more: &str) -> ReceivedBody {
    let text = format!(
        r#"{{"messages":[{{"id":"i","receipt":"r","queue":"q","attempt":1,"max_attempts":5,"sent_at_ms":1,
        "lease_until_ms":2{more}}}]}}"#
    );
    ReceivedBody(Bytes::from(text))
}

#[test]
fn a_payload_is_a_piece_of_the_answer_unless_it_has_escapes() {
    let body = delivery(r#","payload":"plain","new_field":[1]"#);
    let inside = |payload: &[u8]| body.0.as_ptr_range().contains(&payload.as_ptr());
    assert!(inside(&body.decode().unwrap()[0].payload));
    assert!(inside(&body.detach().unwrap()[0].payload.0));
    let escaped = delivery(r#","payload":"a\nb","content_type":"a\"b""#).detach().unwrap();
    assert_eq!((&escaped[0].payload.0[..], escaped[0].content_type.as_deref()), (&b"a\nb"[..], Some("a\"b")));
}

#[test]
fn a_payload_that_is_no_text_comes_in_base64() {
    let messages = delivery(r#","payload_base64":"/wA=""#).detach().unwrap();
    assert_eq!(messages[0].payload.0[..], [0xff, 0x00]);
    let json: Value = serde_json::to_value(&messages[0]).unwrap();
    assert_eq!(json["payload_base64"], "/wA=");
}

#[test]
fn one_id_or_several() {
    let one = SentBody(Bytes::from_static(br#"{"id":"a","duplicate":true}"#));
    assert_eq!(one.decode().unwrap(), SentIds { ids: vec!["a".into()], duplicate: true, duplicates: vec![] });
    let two = SentBody(Bytes::from_static(br#"{"ids":["a","b"],"duplicate":false}"#));
    assert_eq!(two.decode().unwrap().ids, ["a", "b"]);
}

#[test]
fn errors_name_the_place_and_what_is_wrong() {
    let fails = |body: &ReceivedBody| body.decode().unwrap_err().to_string();
    let cases = [
        (r#","priority":300"#, "messages[0].priority: this number is too large, at byte"),
        (r#","priority":"x""#, "expected a whole number that is not negative, found a string"),
        (r#","payload_base64":"/w""#, "messages[0].payload_base64: this is not base64"),
        (r#","headers":{"a":1}"#, "messages[0].headers: expected a string, found a number"),
        (r#","id":"again""#, "messages[0].id: the field is there twice"),
    ];
    for (more, expected) in cases {
        let error = fails(&delivery(more));
        assert!(error.contains(expected), "{error}");
    }
    let missing = fails(&ReceivedBody(Bytes::from_static(br#"{"messages":[{"id":"i"}]}"#)));
    assert!(missing.contains("messages[0].receipt: this field is missing"), "{missing}");
    assert!(fails(&ReceivedBody(Bytes::from_static(b"{\"messages\":[\xff]}"))).contains("not UTF-8"));
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert!(fails(&ReceivedBody(Bytes::from(deep))).contains("nested too deeply"));
}

#[test]
fn a_receive_tells_the_transaction_that_it_has_begun() {
    let text = br#"{"messages":[],"transaction":"t","expires_at_ms":7,"more":1}"#;
    let body = ReceivedBody(Bytes::from_static(text));
    let begun = Begun { transaction: "t".to_owned(), expires_at_ms: 7 };
    assert_eq!(body.decode_enlisted().unwrap(), (Vec::new(), Some(begun)));
    assert_eq!(delivery("").decode_enlisted().unwrap().1, None);
}
