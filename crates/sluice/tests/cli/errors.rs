//! What strangers read when something goes wrong.

use std::process::Stdio;

use crate::support::{Done, Server, alone, command};

#[test]
fn nobody_listens() {
    let error = alone(&["queue", "list", "--server", "http://127.0.0.1:1"]).fails(7);
    assert!(error.contains("cannot connect to 127.0.0.1:1: Connection refused"), "{error}");
    assert!(error.contains("The address comes from --server."), "{error}");
    assert!(error.contains("sluice serve"), "{error}");
    let json = alone(&["queue", "list", "--server", "http://127.0.0.1:1", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &value["error"]["code"]), (Some(7), &"unreachable".into()));
}

#[test]
fn what_cannot_be_undone_is_told_as_a_sentence() {
    for (arguments, told) in [
        (&["cluster", "remove", "9"][..], "Removing node 9 from the cluster"),
        (&["cluster", "finalize"], "Putting the newest behaviour version into force"),
        (&["policy", "remove"], "Removing the stored policy"),
    ] {
        let error = alone(arguments).fails(2);
        assert!(error.contains(&format!("error: {told} cannot be undone: confirm it with --yes")), "{error}");
    }
}

#[test]
fn the_address_is_not_one() {
    for (url, part) in [
        ("https://a b", "not a server address"),
        ("http://a:b", "not a server address"),
        ("ftp://x", "expected http://"),
    ] {
        let error = alone(&["queue", "list", "--server", url]).fails(2);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn something_else_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nnginx").unwrap();
    });
    let error = alone(&["queue", "list", "--server", &url]).fails(8);
    assert!(error.contains("nginx") && error.contains("is this the address of a Sluice server?"), "{error}");
    thread.join().unwrap();
}

#[test]
fn usage_is_told_in_the_form_that_was_asked_for() {
    let told = alone(&["sned"]).fails(2);
    assert!(told.contains("similar subcommand") && told.contains("'send'"), "{told}");
    let json = alone(&["queue", "list", "--sever", "x", "--json"]).fails(2);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["error"]["code"], "usage");
    assert!(alone(&["--help"]).ok().contains("Exit codes:"));
}

#[test]
fn what_other_queues_call_it_is_known() {
    for (args, meant) in [
        (&["publish", "q", "x"][..], "Did you mean sluice send QUEUE PAYLOAD?"),
        (&["queue", "create", "q"], "Did you mean sluice queue set QUEUE --create"),
        (&["send", "q", "x", "--max-retries", "3"], "Did you mean --max-attempts?"),
        (&["--server", "http://a", "enqueue", "q"], "Did you mean sluice send"),
        (&["limit", "set", "l", "--rate", "50/32d"], "the period \"32d\" is not a duration from 1ms to 31d"),
        (
            &["schedule", "set", "s", "q", "--every", "500ms"],
            "'500ms' for '--every <DURATION>': expected 1s to",
        ),
    ] {
        let told = alone(args).fails(2);
        assert!(told.contains(meant), "{told}");
        let json = alone(&[args, &["--json"]].concat()).fails(2);
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
    }
    let server = Server::start();
    let line = br#"{"payload":{"a":1}}"#;
    assert!(
        server.feed(&["send", "q", "--jsonl"], line).fails(2).contains("write a JSON payload as its text")
    );
    let line = br#"{"payload":"","delay":1}"#;
    assert!(server.feed(&["send", "q", "--jsonl"], line).fails(2).contains("did you mean `delay_ms`?"));
    let told = server.run(&["schedule", "set", "s", "q", "--cron", "0 25 * * *"]).fails(2);
    assert!(told.contains("the hour \"25\" is not valid: use 0 to 23"), "{told}");
}

#[test]
fn values_are_told_as_they_were_given_with_limits_in_the_same_unit() {
    let server = Server::start();
    for (args, told) in [
        (&["send", "q", "x", "--delay", "4000d"][..], "--delay 4000d: expected 0s to 3660d"),
        (&["send", "q", "x", "--ttl", "1s", "--delay", "5s"], "--ttl 1s is not after --delay 5s"),
        (&["receive", "q", "--wait", "2m"], "--wait 2m: expected 0s to 1m"),
        (&["receive", "q", "--lease", "13h"], "12h"),
        (&["queue", "set", "q", "--create", "--lease", "13h"], "12h"),
        (&["receive", "q", "--max", "0"], "expected a number from 1 to 1000, got 0"),
        (&["receive", "q", "--max", "1001"], "expected a number from 1 to 1000, got 1001"),
        (&["receive", "q", "--max", "many"], "expected a number"),
        (&["events", "q", "--since", "garbage"], "--since: \"garbage\" is not the id of an event"),
        (&["work", "w4=0", "--", "true"], "expected QUEUE=WEIGHT with 1 to 1000"),
        (&["send", "q", "x", "--priority", "high"], "expected a number from 0 to 9"),
        (&["queue", "set", "q", "--max-attempts", "many"], "expected a number"),
        (&["dead", "redrive", "q"], "--all"),
    ] {
        let error = server.run(args).fails(2);
        assert!(error.contains(told) && !error.contains("_ms"), "{args:?}: {error}");
    }
}

#[test]
fn the_line_that_a_server_refuses_is_named() {
    let server = Server::with(&["--limits-payload", "1KiB"]);
    let mut lines = "x\n".repeat(1_500);
    lines.push_str(&"y".repeat(2_000));
    let told = server.feed(&["send", "q", "--lines", "--quiet"], lines.as_bytes()).fails(5);
    assert!(told.contains("error: stdin, line 1501: payload: the payload is 2000 bytes"), "{told}");
    let line = "{\"payload\":\"\"}\n";
    let refused = format!("{}{{\"payload\":\"\",\"priority\":12}}\n", line.repeat(1_700));
    let told = server.feed(&["send", "q", "--jsonl", "--quiet"], refused.as_bytes()).fails(2);
    assert!(
        told.contains("error: stdin, line 1701: priority: expected a number from 0 to 9, got 12"),
        "{told}"
    );
    let told = server.feed(&["send", "q", "--jsonl"], b"{\"payload\":\"a\"").fails(2);
    assert!(told.contains("stdin, line 1: not a message: ") && !told.contains("at line"), "{told}");
}

#[test]
fn half_of_a_client_certificate_is_told() {
    let home = tempfile::tempdir().unwrap();
    let mut list = command(home.path(), &["queue", "list", "--server", "https://localhost:1"]);
    let told = Done::of(list.env("SLUICE_CERT", "mine.pem").output().unwrap()).fails(2);
    assert!(told.contains("not its private key (--cert-key, SLUICE_CERT_KEY)"), "{told}");
    assert!(!told.contains("The address comes from"), "{told}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let server = Server::start();
    let lines: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    let mut child = server
        .command(&["send", "q", "--lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let _ = std::io::Write::write_all(&mut stdin, lines.as_bytes());
    drop(stdin);
    let done = Done::of(child.wait_with_output().unwrap());
    assert!(!done.err.contains("panic") && !done.err.contains("error"), "{done:?}");
}

#[test]
fn completions_are_made_for_each_shell() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Done::of(command(home.path(), &["completions", shell]).output().unwrap()).ok();
        assert!(script.contains("redrive"), "{shell}");
    }
}
