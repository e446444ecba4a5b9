use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{Done, Server, command};

fn run(home: &Path, args: &[&str]) -> Done {
    Done::of(command(home, args).output().unwrap())
}

/// The report, whose exit code fits its worst finding.
fn report(home: &Path, args: &[&str]) -> Value {
    let done = run(home, &[&["doctor", "--json"], args].concat());
    let report: Value = serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    let code = match report["worst"].as_str().unwrap() {
        "ok" => 0,
        "warning" => 1,
        _ => 8,
    };
    assert_eq!(done.code, Some(code), "{done:?}");
    let findings = report["findings"].as_array().unwrap();
    let advised = |it: &&Value| matches!(it["level"].as_str(), Some("warning" | "problem"));
    for finding in findings.iter().filter(advised) {
        assert!(finding["seen"].is_string(), "{finding}");
    }
    report
}

/// The findings of a check: each its level and what was seen.
fn found(report: &Value, check: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap().iter().filter(|it| it["check"] == check);
    findings.map(|it| (text(&it["level"]), text(&it["seen"]))).collect()
}

fn level(report: &Value, check: &str) -> String {
    let levels: Vec<String> = found(report, check).into_iter().map(|it| it.0).collect();
    assert_eq!(levels.len(), 1, "{check}: {report}");
    levels.into_iter().next().unwrap()
}

#[test]
fn a_machine_is_looked_at_before_there_is_a_server() {
    let home = tempfile::tempdir().unwrap();
    let seen = report(home.path(), &["--listen", "127.0.0.1:0", "--server", "http://127.0.0.1:1"]);
    for check in ["port", "data_directory", "root_key"] {
        assert_eq!(level(&seen, check), "ok", "{check}: {seen}");
    }
    for check in ["disk_speed", "file_system", "open_files", "memory", "processors", "backlog"] {
        assert_eq!(found(&seen, check).len(), 1, "{check}: {seen}");
    }
    assert_eq!(level(&seen, "server"), "problem", "one was named: {seen}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing stays");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let seen = report(home.path(), &["--listen", &taken]);
    assert_eq!(level(&seen, "port"), "problem");
    assert!(found(&seen, "port")[0].1.contains(&format!("process {}", std::process::id())), "{seen}");
    let text = run(home.path(), &["doctor", "--listen", &taken]).out;
    assert!(text.contains("PROBLEM  port") && text.contains("stop that process"), "{text}");
}

#[test]
fn mistakes_of_settings_and_files_are_findings() {
    let home = tempfile::tempdir().unwrap();
    let seen = report(home.path(), &["--shards", "100", "--cache", "lots"]);
    assert_eq!(found(&seen, "configuration").len(), 2, "{seen}");
    std::fs::write(home.path().join("file"), "").unwrap();
    assert_eq!(level(&report(home.path(), &["--data-dir", "file"]), "data_directory"), "problem");
    run(home.path(), &["cert", "ca", "--dir", "tls"]).ok();
    run(home.path(), &["cert", "server", "localhost", "--dir", "tls", "--days", "3"]).ok();
    let key = home.path().join("tls/server.key");
    set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let tls = ["--tls-cert", "tls/server.pem", "--tls-key", "tls/server.key"];
    let levels = |args: &[&str]| found(&report(home.path(), args), "certificates");
    let seen = levels(&tls);
    assert!(seen.iter().any(|(level, seen)| level == "warning" && seen.contains("ends at")), "{seen:?}");
    assert!(seen.iter().any(|(level, seen)| level == "warning" && seen.contains("private key")), "{seen:?}");
    let other = ["--tls-cert", "tls/server.pem", "--tls-key", "tls/ca.key"];
    assert_eq!(levels(&other)[0].0, "problem");
    assert_eq!(levels(&["--tls-cert", "nowhere", "--tls-key", "nowhere"])[0].0, "problem");
}

#[test]
fn a_running_server_is_looked_at_too() {
    let server = Server::at_one_address();
    server.ok(&["send", "q", "a"]);
    let listen = server.url.trim_start_matches("http://");
    let seen = report(server.home.path(), &["--listen", listen, "--server", &server.url]);
    for check in ["port", "format", "server", "root_key"] {
        assert_eq!(level(&seen, check), "ok", "{check}: {seen}");
    }
    assert_eq!(level(&seen, "disk_speed"), "skipped", "{seen}");
    let clocks = found(&seen, "clock");
    assert!(
        clocks.contains(&("ok".to_owned(), "the server's clock and this one agree".to_owned())),
        "{seen}"
    );
    let remote = report(server.home.path(), &["--remote", "--server", &server.url]);
    assert_eq!((level(&remote, "server"), &remote["worst"]), ("ok".to_owned(), &Value::from("ok")));
    assert!(found(&remote, "port").is_empty());
    assert_eq!(server.ok(&["receive", "q", "--ack", "--raw"]), "a", "nothing is taken");
}

#[test]
fn a_server_with_another_data_directory_is_no_reason_to_stop_it() {
    for tls in [&[][..], &["--tls", "auto"]] {
        let (server, elsewhere) = (Server::with(tls), tempfile::tempdir().unwrap());
        let listen = format!("127.0.0.1:{}", server.url.rsplit_once(':').unwrap().1);
        let seen = report(elsewhere.path(), &["--listen", &listen, "--server", "http://127.0.0.1:1"]);
        let [(level, told)] = &found(&seen, "port")[..] else { panic!("{seen}") };
        assert!(level == "ok" && told.contains("a Sluice server listens there"), "{told}");
    }
}

#[test]
fn certificates_that_are_shown_are_looked_at() {
    let server = Server::with(&["--tls", "auto"]);
    let (ca, cert) = ("sluice-data-tls/ca.pem", "sluice-data-tls/admin.pem");
    let args = [
        "--remote",
        "--server",
        &server.url,
        "--ca",
        ca,
        "--cert",
        cert,
        "--cert-key",
        "sluice-data-tls/admin.key",
    ];
    let seen = report(server.home.path(), &args);
    assert_eq!(
        (level(&seen, "server"), level(&seen, "certificates")),
        ("ok".to_owned(), "ok".to_owned()),
        "{seen}"
    );
    let unknown = report(server.home.path(), &args[..3]);
    assert_eq!(level(&unknown, "server"), "problem", "{unknown}");
}
