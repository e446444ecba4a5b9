use std::time::{Duration, Instant};

use crate::support::{Server, wait};

#[test]
fn the_payload_goes_to_stdout_and_the_rest_to_stderr() {
    let server = Server::start();
    let id = server.ok(&["send", "q", "hello", "--header", "k=v"]);
    let done = server.run(&["receive", "q"]);
    assert_eq!(done.out, "hello\n");
    for part in [id.trim(), "attempt 1/5", "k: v", "receipt "] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    server.ok(&["send", "q", "raw"]);
    assert_eq!(server.ok(&["receive", "q", "--raw"]), "raw");
}

#[test]
fn nothing_is_exit_code_3() {
    let server = Server::start();
    let error = server.run(&["receive", "q"]).fails(3);
    assert!(error.contains("no message in q; use --wait 20s to wait for one"), "{error}");
    let started = Instant::now();
    server.run(&["receive", "q", "--wait", "300ms"]).fails(3);
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[test]
fn waiting_ends_with_the_message() {
    let server = Server::start();
    let mut command = server.command(&["receive", "q", "--wait", "60s"]);
    let mut waiting = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    server.until_metrics_say("sluice_shard_waiting_receives{shard=\"0\"} 1");
    server.ok(&["send", "q", "now"]);
    wait(&mut waiting);
    assert_eq!(waiting.wait_with_output().unwrap().stdout, b"now\n");
}

#[test]
fn ack_settles_what_was_printed() {
    let server = Server::start();
    server.feed(&["send", "q", "--lines"], b"1\n2\n3\n").ok();
    assert_eq!(server.ok(&["receive", "q", "--max", "2", "--ack"]), "1\n2\n");
    assert_eq!(server.one(&["queue", "show", "q"])["totals"]["acked"], 2);
    assert_eq!(server.count("q", "ready"), 1);
}

#[test]
fn several_queues_in_order_or_by_weight() {
    let server = Server::start();
    for queue in ["a", "b"] {
        let lines: String = (0..40).map(|_| format!("{queue}\n")).collect();
        server.feed(&["send", queue, "--lines"], lines.as_bytes()).ok();
    }
    assert_eq!(server.ok(&["receive", "b", "a"]), "b\n");
    let mixed = server.ok(&["receive", "a=1", "b=3", "--max", "20"]);
    let from_b = mixed.lines().filter(|l| *l == "b").count();
    assert!((14..=16).contains(&from_b), "{mixed}");
    assert!(server.run(&["receive", "a=x"]).fails(2).contains("is not a weight"));
}

#[test]
fn a_lease_that_ends_gives_the_message_back() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let first = server.one(&["receive", "q", "--lease", "1s"]);
    let second = server.one(&["receive", "q", "--wait", "20s"]);
    assert_eq!((&first["id"], &second["attempt"]), (&second["id"], &2.into()));
}

#[test]
fn a_consumer_that_pulls_has_neither_queues_nor_credit() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    server.ok(&["receive", "q", "--consumer", "c"]);
    let consumer = server.one(&["consumer", "list"]);
    assert_eq!(consumer["state"], "pulling");
    assert!(consumer.get("queues").is_none() && consumer.get("credit").is_none(), "{consumer}");
    let id = consumer["consumer"].to_string();
    let told = server.run(&["consumer", "detach", id.trim_matches('"'), "--grace", "5s"]).fails(3);
    assert!(told.contains("is not attached: it pulls"), "{told}");
}
