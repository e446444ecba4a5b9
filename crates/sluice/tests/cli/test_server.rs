//! `sluice serve --test`: a server for the tests of programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{alone, command, signal_to, until, wait};

const HOUR_MS: u64 = 3_600_000;

struct TestServer {
    child: Child,
    ready: Value,
    stdin: Option<ChildStdin>,
}

impl TestServer {
    fn start(home: &Path, args: &[&str]) -> TestServer {
        let mut command = command(home, &["serve", "--test"]);
        TestServer::of(command.args(args).stdin(Stdio::piped()))
    }

    fn of(command: &mut Command) -> TestServer {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let stdin = child.stdin.take();
        TestServer { child, ready, stdin }
    }

    fn request(&self, head: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let url = self.ready["url"].as_str().unwrap();
        let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    fn advance(&self, by_ms: u64) -> Value {
        let (status, answer) = self.request("POST /v1/test/time", &json!({"advance_ms": by_ms}));
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_is_ready_soon_writes_nothing_and_heeds_nothing_around_it() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("sluice.toml"), "data_dir = 'elsewhere'\nlisten = '127.0.0.1:1'\n")
        .unwrap();
    let began = Instant::now();
    let mut command = command(home.path(), &["serve", "--test"]);
    let server = TestServer::of(
        command
            .env("SLUICE_DATA_DIR", "d")
            .env("SLUICE_LISTEN", "127.0.0.1:1")
            .env("SLUICE_JOIN", "https://one:7070")
            .env("SLUICE_JOIN_TOKEN", "t"),
    );
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "it joins nothing: {took:?}");
    assert_eq!((&server.ready["test"], &server.ready["data_dir"]), (&json!(true), &Value::Null));
    let other = TestServer::start(home.path(), &[]);
    assert_ne!(server.ready["url"], other.ready["url"]);
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["sluice.toml"]);
}

#[test]
fn a_day_passes_at_once() {
    let home = tempfile::tempdir().unwrap();
    let server = TestServer::start(home.path(), &[]);
    let send = |body| server.request("POST /v1/queues/work/messages", &body);
    let ids = send(json!({"payload": "tomorrow", "delay_ms": 24 * HOUR_MS}));
    assert_eq!(ids.0, 201, "{ids:?}");
    send(json!({"payload": "now"}));
    let receive =
        || server.request("POST /v1/queues/work/receive", &json!({"max": 10})).1["messages"].clone();
    let held = receive();
    assert_eq!(held.as_array().unwrap().len(), 1);
    let schedule = json!({"queue": "report", "every_ms": HOUR_MS, "message": {"payload": "x"}});
    let put = server.request("PUT /v1/schedules/hourly", &schedule);
    assert_eq!(put.0, 201, "{put:?}");
    let before = server.request("GET /v1/test/time", &Value::Null).1;
    let began = Instant::now();
    let after = server.advance(24 * HOUR_MS);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let passed_ms = after["now_ms"].as_u64().unwrap() - before["now_ms"].as_u64().unwrap();
    assert!((24 * HOUR_MS..25 * HOUR_MS).contains(&passed_ms), "{before} {after}");
    assert_eq!(after["ahead_ms"], 24 * HOUR_MS);
    let again = receive();
    let payloads: Vec<_> =
        again.as_array().unwrap().iter().map(|one| one["payload"].as_str().unwrap()).collect();
    assert_eq!(payloads, ["now", "tomorrow"], "{again}");
    let reports = server.request("GET /v1/queues/report", &Value::Null).1;
    assert_eq!(reports["counts"]["ready"], 24, "{reports}");
}

#[test]
fn it_ends_when_its_stdin_is_closed() {
    let home = tempfile::tempdir().unwrap();
    let mut server = TestServer::start(home.path(), &[]);
    server.stdin.as_mut().unwrap().write_all(b"not read\n").unwrap();
    server.advance(1);
    drop(server.stdin.take());
    assert!(wait(&mut server.child).success());
}

#[test]
fn without_a_pipe_it_ends_when_it_is_told_to() {
    let home = tempfile::tempdir().unwrap();
    let mut server = TestServer::of(&mut command(home.path(), &["serve", "--test"]));
    std::thread::sleep(Duration::from_millis(600));
    assert!(server.child.try_wait().unwrap().is_none());
    signal_to(&server.child, "TERM");
    assert!(wait(&mut server.child).success());
}

#[test]
fn it_ends_with_the_process_that_has_started_it() {
    let home = tempfile::tempdir().unwrap();
    let said = home.path().join("said");
    let script = format!("{} serve --test >said </dev/null & wait", env!("CARGO_BIN_EXE_sluice"));
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", &script]).current_dir(home.path()).spawn().unwrap();
    until("it is ready", || std::fs::read_to_string(&said).is_ok_and(|said| said.ends_with('\n')));
    let ready: Value = serde_json::from_str(&std::fs::read_to_string(&said).unwrap()).unwrap();
    let address = ready["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    TcpStream::connect(&address).unwrap();
    shell.kill().unwrap();
    shell.wait().unwrap();
    until("nobody listens", || TcpStream::connect(&address).is_err());
}

#[test]
fn the_script_of_its_page_works() {
    let page = include_str!("../../../../docs/testing.md");
    let (_, script) = page.split_once("```sh\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("script"), script).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_sluice")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let ran = shell.arg("script").current_dir(home.path()).env("PATH", path).status().unwrap();
    assert!(ran.success(), "{ran}");
}

#[test]
fn what_contradicts_it_is_refused_with_what_would_be_right() {
    for (args, told) in [
        (&["--data-dir", "d"][..], "data_dir (from flag --data-dir)"),
        (&["--memory=false"], "leave out memory = false"),
        (&["--join", "https://a:1"], "joins no cluster"),
        (&["--cluster-address", "a:1"], "start one without --test"),
    ] {
        let refused = alone(&[&["serve", "--test"][..], args].concat()).fails(2);
        assert!(refused.contains(told), "{refused}");
    }
    let asked = alone(&["serve", "--help"]).ok();
    assert!(asked.contains("--test") && asked.contains("/v1/test/time"), "{asked}");
}
