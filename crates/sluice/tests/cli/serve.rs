use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Server, alone, command, signal_to, until, until_said, wait};

/// What a server says, started with this PATH.
fn banner(path: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let said = home.path().join("said");
    let mut child = command(home.path(), &["serve", "--listen", "127.0.0.1:0"])
        .env("PATH", path)
        .stdout(std::fs::File::create(&said).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("its last line", || std::fs::read_to_string(&said).unwrap().contains("SLUICE_SERVER"));
    signal_to(&child, "TERM");
    assert!(wait(&mut child).success());
    std::fs::read_to_string(&said).unwrap()
}

#[test]
fn it_says_what_it_does_and_where() {
    let text = banner("/usr/bin");
    for part in [
        "is ready at http://127.0.0.1:",
        "sluice-data",
        "always",
        "nothing: the server starts without data",
        "sluice send emails hello",
        "SLUICE_SERVER",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn it_names_itself_so_that_a_shell_finds_it() {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_sluice")).canonicalize().unwrap();
    let text = banner("/usr/bin");
    assert!(text.contains(&format!("\n  {} send emails hello\n", program.display())), "{text}");
    let text = banner(&format!("/usr/bin:{}", program.parent().unwrap().display()));
    assert!(text.contains("\n  sluice send emails hello\n"), "{text}");
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let mut server = Server::start();
    assert_eq!(server.ready["recovery"]["fresh"], true);
    let lines: String = (0..500).map(|n| format!("{n}\n")).collect();
    server.feed(&["send", "q", "--lines", "--quiet"], lines.as_bytes()).ok();
    server.ok(&["receive", "q", "--max", "100", "--ack"]);
    let mut sending = server
        .command(&["send", "during", "--lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = sending.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        for n in 0..2_000 {
            if std::io::Write::write_all(&mut stdin, format!("{n}\n").as_bytes()).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    // The kill is to come in the middle: after the first acknowledgement, and before the last.
    let mut output = BufReader::new(sending.stdout.take().unwrap());
    let mut acknowledged = String::new();
    output.read_line(&mut acknowledged).unwrap();
    server = server.kill_and_restart();
    output.read_to_string(&mut acknowledged).unwrap();
    sending.wait().unwrap();
    feeding.join().unwrap();
    assert!(acknowledged.ends_with('\n'), "{acknowledged:?}");
    let kept: Vec<String> = server
        .json(&["message", "list", "during", "--all"])
        .iter()
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect();
    for id in acknowledged.lines() {
        assert!(kept.iter().any(|k| k == id), "{id} was acknowledged and is lost");
    }
    assert_eq!(server.ready["recovery"]["fresh"], false);
    let queue = server.one(&["queue", "show", "q"]);
    assert_eq!((&queue["counts"]["ready"], &queue["totals"]["acked"]), (&400.into(), &100.into()));
}

#[test]
fn a_signal_ends_it_with_0_and_wakes_those_who_wait() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::with(&["--grace", "60s"]);
        let mut waiting = server
            .command(&["receive", "q", "--wait", "60s", "--retry-for", "0"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        server.until_metrics_say("sluice_shard_waiting_receives{shard=\"0\"} 1");
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0));
        wait(&mut waiting);
    }
}

#[test]
fn it_listens_beyond_this_machine_only_when_told() {
    let error = alone(&["serve", "--listen", "0.0.0.0:0", "--memory"]).fails(2);
    assert!(error.contains("0.0.0.0:0 (from flag --listen) can be reached from other machines"), "{error}");
    assert!(error.contains("there is no TLS") && error.contains("--insecure"), "{error}");
    let server = Server::with(&["--memory", "--insecure", "--listen=0.0.0.0:0"]);
    let _ = server;
}

#[test]
fn the_port_or_the_directory_may_be_taken() {
    let server = Server::start();
    let address = server.url.trim_start_matches("http://").to_owned();
    let error = server.run(&["serve", "--listen", &address, "--data-dir", "other"]).fails(4);
    assert!(
        error.contains("cannot listen at") && error.contains("Another process uses this port"),
        "{error}"
    );
    assert!(!server.path("other").exists(), "the data is not touched before the port is taken");
    let error = server.run(&["serve", "--listen", "127.0.0.1:0"]).fails(4);
    assert!(error.contains("in use by another process"), "{error}");
}

#[test]
fn memory_writes_no_file_and_several_shards_serve() {
    let server = Server::with(&["--memory", "--shards", "3"]);
    for name in ["a", "b", "c"] {
        server.ok(&["namespace", "create", name]);
        server.ok(&["send", "q", name, "-n", name]);
    }
    for name in ["a", "b", "c"] {
        assert_eq!(server.ok(&["receive", "q", "-n", name]), format!("{name}\n"));
    }
    assert!(!server.path("sluice-data").exists());
    assert_eq!(server.ready["data_dir"], serde_json::Value::Null);
}

#[test]
fn a_data_directory_that_cannot_be_used_is_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("file"), "x").unwrap();
    let mut serve = command(home.path(), &["serve", "--listen", "127.0.0.1:0", "--data-dir", "file"]);
    let output = serve.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("file is a file, not a data directory"), "{error}");
}

#[test]
fn logs_are_json_when_asked() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(
        home.path(),
        &["serve", "--json", "--memory", "--listen", "127.0.0.1:0", "--log-format", "json"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    signal_to(&child, "TERM");
    wait(&mut child);
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.lines().count() > 0);
    for line in log.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
    }
}

#[test]
fn a_hangup_is_answered_though_nothing_has_changed() {
    let home = tempfile::tempdir().unwrap();
    let mut serve = command(home.path(), &["serve", "--json", "--memory", "--listen", "127.0.0.1:0"]);
    let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    signal_to(&child, "HUP");
    until_said(&mut child, "SIGHUP: certificates and policy have not changed");
    signal_to(&child, "TERM");
    wait(&mut child);
}

#[test]
fn a_journal_that_fails_ends_it_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    // Writes beyond a size fail, as on a disk that breaks.
    let script = "trap '' XFSZ; ulimit -f 12000; exec \"$0\" serve --json --listen 127.0.0.1:0 --reserve 0";
    let mut child = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_sluice")])
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    std::fs::write(home.path().join("big"), vec![b'x'; 1 << 20]).unwrap();
    until("the journal to fail", || {
        let args = ["send", "q", "--file", "big", "--retry-for", "0"];
        let mut send = command(home.path(), &args);
        let _ = send.env("SLUICE_SERVER", ready["url"].as_str().unwrap()).output().unwrap();
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(wait(&mut child).code(), Some(8));
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(
        told.contains("the journal has failed") && told.contains("Nothing that was acknowledged is lost"),
        "{told}"
    );
}

/// A request whose body never comes.
fn half_a_request(server: &Server) -> std::net::TcpStream {
    let mut stream = server.connect().unwrap();
    let head = "POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    // It, and the one for the metrics.
    server.until_metrics_say("sluice_http_requests_in_flight 2");
    stream
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Server::with(&["--grace", "60s"]);
    let _open = half_a_request(&server);
    server.signal("TERM");
    until("the first signal to be heard", || server.connect().is_err());
    assert!(server.is_running(), "it waits for what is in flight");
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn what_does_not_finish_within_the_grace_period_is_cut() {
    let mut server = Server::with(&["--grace", "1s"]);
    let _open = half_a_request(&server);
    let began = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(
        (Duration::from_millis(800)..Duration::from_secs(20)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
}
