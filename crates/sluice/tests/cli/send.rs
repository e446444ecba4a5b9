use crate::support::Server;

#[test]
fn an_argument_a_file_and_stdin_are_payloads() {
    let server = Server::start();
    std::fs::write(server.path("body.bin"), [0xff, 0x00, b'\n']).unwrap();
    let id = server.ok(&["send", "q", "hello"]);
    assert_eq!(id.trim().len(), 20, "{id:?}");
    server.ok(&["send", "q", "--file", "body.bin"]);
    server.feed(&["send", "q"], b"from\nstdin\n").ok();
    server.feed(&["send", "q", "-"], b"dash").ok();
    let payloads: Vec<String> = server
        .json(&["receive", "q", "--max", "9"])
        .iter()
        .map(|m| m["payload"].as_str().or(m["payload_base64"].as_str()).unwrap().to_owned())
        .collect();
    assert_eq!(payloads, ["hello", "/wAK", "from\nstdin\n", "dash"]);
}

#[test]
fn fields_come_from_flags() {
    let server = Server::start();
    let flags = "--priority 7 --content-type text/x --header a=1 -H b:2 --max-attempts 3 --backoff fixed:5s";
    let args: Vec<&str> = ["send", "q", "x"].into_iter().chain(flags.split(' ')).collect();
    let id = server.ok(&args);
    let message = server.one(&["message", "show", id.trim()]);
    assert_eq!(message["priority"], 7);
    assert_eq!(message["content_type"], "text/x");
    assert_eq!(message["headers"], serde_json::json!({"a": "1", "b": "2"}));
    assert_eq!(message["max_attempts"], 3);
    assert_eq!(message["backoff"]["kind"], "fixed");
    let delayed = server.ok(&["send", "q", "later", "--delay", "1h"]);
    assert_eq!(server.one(&["message", "show", delayed.trim()])["state"], "delayed");
}

#[test]
fn lines_and_json_lines_become_messages_in_order() {
    let server = Server::start();
    let lines: String = (0..2_500).map(|n| format!("line {n}\n")).collect();
    let done = server.feed(&["send", "lines", "--lines"], lines.as_bytes());
    assert!(done.err.contains("sent 2500 messages to lines"), "{}", done.err);
    let ids = done.ok();
    assert_eq!(ids.lines().count(), 2_500);
    assert!(ids.lines().is_sorted());
    let first = server.one(&["message", "show", ids.lines().next().unwrap()]);
    assert_eq!(first["payload"], "line 0");

    let jsonl =
        b"{\"payload\":\"a\",\"priority\":1}\n\n{\"payload_base64\":\"/w==\",\"headers\":{\"k\":\"v\"}}\n";
    let sent = server.feed(&["send", "objects", "--jsonl", "--json"], jsonl).ok();
    assert_eq!(sent.lines().count(), 2);
    assert!(sent.starts_with("{\"duplicate\":false,\"id\":"), "{sent}");
    let got = server.json(&["receive", "objects", "--max", "5"]);
    assert_eq!((&got[0]["priority"], &got[1]["headers"]["k"]), (&1.into(), &"v".into()));
}

#[test]
fn a_bad_line_is_named_and_what_was_sent_before_is_told() {
    let server = Server::start();
    let mut input: String = (0..1_000).map(|n| format!("{{\"payload\":\"{n}\"}}\n")).collect();
    input.push_str("{\"payload\":\"x\",\"priorty\":1}\n");
    let error = server.feed(&["send", "q", "--jsonl", "--quiet"], input.as_bytes()).fails(2);
    assert!(error.contains("stdin, line 1001: not a message: unknown field `priorty`"), "{error}");
    assert!(error.contains("Before that, sent 1000 messages to q."), "{error}");
    assert!(error.contains("Of the lines after those, none was sent."), "{error}");
    assert_eq!(server.count("q", "ready"), 1_000);
}

#[test]
fn lines_before_a_bad_one_of_the_same_request_are_told_as_not_sent() {
    let server = Server::with(&["--limits-payload", "1KiB"]);
    let large = format!("{}{}", "a\n".repeat(5), "b".repeat(2_000));
    let error = server.feed(&["send", "q", "--lines"], large.as_bytes()).fails(5);
    assert!(error.contains("stdin, line 6: ") && error.contains("Nothing was sent."), "{error}");
    let bad = b"{\"payload\":\"a\"}\n{\"payload\":1}\n";
    let error = server.feed(&["send", "q", "--jsonl"], bad).fails(2);
    assert!(error.contains("stdin, line 2: ") && error.contains("Nothing was sent."), "{error}");
    assert!(server.json(&["queue", "list"]).is_empty());
}

#[test]
fn a_place_that_does_not_point_back_is_named_by_its_line() {
    let server = Server::start();
    let line = |parent: &str| format!("{{\"payload\":\"y\",\"depends_on\":[\"{parent}\"]}}\n");
    let full = "{\"payload\":\"x\"}\n".repeat(1_000);
    for (input, told) in [
        (line("#0"), "stdin, line 1: depends_on: \"#0\" does not point back"),
        (format!("{full}{}", line("#0")), "stdin, line 1001: depends_on: \"#0\" does not point back"),
        (format!("{{\"payload\":\"x\"}}\n{}", line("#1")), "stdin, line 2: depends_on: \"#1\" does not"),
    ] {
        let error = server.feed(&["send", "q", "--jsonl", "--quiet"], input.as_bytes()).fails(2);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_line_that_http_would_refuse_is_refused() {
    let server = Server::start();
    for (line, told) in [
        (r#"{"payload":"x","headers":{"a":"1","a":"2"}}"#, "headers.a is given twice"),
        (r#"{"payload":"x","priority":1,"priority":2}"#, "priority is given twice"),
        (
            r#"{"payload":"x","chain":[{"queue":"b","ttl_ms":1,"ttl_ms":2}]}"#,
            "chain[0].ttl_ms is given twice",
        ),
        (r#"{"payload":"x","priority":null}"#, "priority is null: leave the field out instead"),
        (r#"{"payload":"x","depends_on":[]}"#, "depends_on: expected 1 to 100 ids, got 0"),
        (r#"{"payload":"x","chain":[]}"#, "chain: expected 1 to 100 steps, got 0"),
    ] {
        let error = server.feed(&["send", "q", "--jsonl"], line.as_bytes()).fails(2);
        assert!(error.contains("stdin, line 1: ") && error.contains(told), "{error}");
    }
    let error = server.feed(&["send", "q", "x", "--chain", "-"], b"[]").fails(2);
    assert!(error.contains("stdin: chain: expected 1 to 100 steps, got 0"), "{error}");
    assert!(server.json(&["queue", "list"]).is_empty());
}

#[test]
fn a_key_makes_a_repeat_harmless() {
    let server = Server::start();
    let first = server.ok(&["send", "q", "x", "--idempotency-key", "k"]);
    let again = server.run(&["send", "q", "x", "--idempotency-key", "k"]);
    assert!(again.err.contains("this was sent before; nothing was added"), "{}", again.err);
    assert_eq!(again.ok(), first);
    let error = server.run(&["send", "q", "y", "--idempotency-key", "k"]).fails(4);
    assert!(error.contains("was used for a different request"), "{error}");
    let lines = ["send", "q", "--lines", "--idempotency-key", "l"];
    assert_eq!(server.feed(&lines, b"1\n2\n").ok(), server.feed(&lines, b"1\n2\n").ok());
    assert_eq!(server.count("q", "ready"), 3);
}

#[test]
fn too_much_is_refused_by_name() {
    let server = Server::with(&["--limits-payload", "1KiB"]);
    let error = server.feed(&["send", "q"], &[b'x'; 1025]).fails(5);
    assert!(error.contains("1025") && error.contains("1024"), "{error}");
    let error = server.run(&["send", "bad name", "x"]).fails(2);
    assert!(error.contains("\"bad name\" is not valid"), "{error}");
}

#[test]
fn nothing_is_not_taken_for_a_message() {
    let server = Server::start();
    let error = server.run(&["send", "q"]).fails(2);
    assert!(error.contains("stdin is empty") && error.contains("sluice send q ''"), "{error}");
    server.ok(&["send", "q", ""]);
    server.ok(&["send", "q", "-"]);
    assert_eq!(server.count("q", "ready"), 2);
}

#[test]
fn blank_lines_behind_the_last_message_keep_nothing_back() {
    let server = Server::start();
    let told = server.feed(&["send", "q", "--jsonl"], b"{\"payload\":\"a\"}\n{\"payload\":\"b\"}\n\n\n").ok();
    assert_eq!(told.lines().count(), 2);
    assert_eq!(server.count("q", "ready"), 2);
}
