//! The same fault ends every verb that meets it with the same exit code.

use crate::support::{Done, Server, command};

/// What is wrong, the exit code, and command lines that meet it. `SERVER` stands for the address of a server,
/// `DATA` for the directory that it uses.
const FAULTS: &[(&str, i32, &[&[&str]])] = &[
    (
        "nobody listens",
        7,
        &[
            &["send", "q", "x", "--server", "http://127.0.0.1:1"],
            &["receive", "q", "--server", "http://127.0.0.1:1"],
            &["status", "--server", "http://127.0.0.1:1"],
            &["backup", "x", "--server", "http://127.0.0.1:1"],
            &["events", "--server", "http://127.0.0.1:1"],
            &["top", "--once", "--server", "http://127.0.0.1:1"],
        ],
    ),
    (
        "a file that is named is not there",
        2,
        &[
            &["send", "q", "--file", "nowhere", "--server", "SERVER"],
            &["send", "q", "--lines", "--file", "nowhere", "--server", "SERVER"],
            &["send", "q", "x", "--chain", "nowhere", "--server", "SERVER"],
            &["request", "q", "@nowhere", "--server", "SERVER"],
            &["ack", "r", "--result", "@nowhere", "--server", "SERVER"],
            &["schedule", "set", "s", "q", "--every", "1m", "--file", "nowhere", "--server", "SERVER"],
            &["group", "send", "nowhere", "--server", "SERVER"],
            &["queue", "list", "--ca", "nowhere", "--server", "SERVER"],
            &["queue", "list", "--token-file", "nowhere", "--server", "SERVER"],
            &["serve", "--config", "nowhere"],
            &["check", "nowhere"],
            &["restore", "nowhere", "new"],
            &["cert", "show", "nowhere"],
            &["cert", "client", "a", "--dir", "nowhere"],
        ],
    ),
    (
        "it is there already",
        4,
        &[
            &["backup", "file", "--server", "SERVER"],
            &["restore", "file", "full"],
            &["cert", "ca", "--dir", "ca"],
            &["cert", "server", "localhost", "--dir", "ca"],
            &["cert", "client", "a", "--dir", "ca"],
            &["namespace", "create", "default", "--server", "SERVER"],
        ],
    ),
    (
        "another process uses it",
        4,
        &[&["check", "DATA"], &["serve", "--listen=127.0.0.1:0", "--data-dir", "DATA"]],
    ),
    (
        "there is no such queue",
        3,
        &[
            &["queue", "show", "nowhere", "--server", "SERVER"],
            &["queue", "pause", "nowhere", "--server", "SERVER"],
            &["queue", "purge", "nowhere", "--yes", "--server", "SERVER"],
            &["message", "list", "nowhere", "--server", "SERVER"],
            &["message", "peek", "nowhere", "--server", "SERVER"],
            &["dead", "list", "nowhere", "--server", "SERVER"],
            &["bulk", "start", "hold", "--queue", "nowhere", "--server", "SERVER"],
        ],
    ),
    (
        "it cannot be undone, and nobody was asked",
        2,
        &[
            &["queue", "purge", "q", "--server", "SERVER"],
            &["queue", "delete", "q", "--server", "SERVER"],
            &["dead", "delete", "q", "--all", "--server", "SERVER"],
            &["namespace", "delete", "default", "--server", "SERVER"],
            &["bulk", "start", "cancel", "--queue", "q", "--server", "SERVER"],
        ],
    ),
    (
        "the command line is wrong",
        2,
        &[
            &["send", "q", "x", "--priority", "10"],
            &["schedule", "set", "s", "q", "--every", "500ms"],
            &["limit", "set", "l", "--rate", "0/1s"],
            &["receive"],
            &["sned"],
            &["serve", "--shards", "100"],
        ],
    ),
];

#[test]
fn a_fault_has_one_exit_code() {
    let server = Server::start();
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| Done::of(command(home.path(), args).output().unwrap());
    std::fs::write(home.path().join("file"), "x").unwrap();
    std::fs::create_dir(home.path().join("full")).unwrap();
    std::fs::write(home.path().join("full/file"), "x").unwrap();
    run(&["cert", "ca", "--dir", "ca"]).ok();
    run(&["cert", "server", "localhost", "--dir", "ca"]).ok();
    run(&["cert", "client", "a", "--dir", "ca", "--scope", "default=r"]).ok();
    let data = server.path("sluice-data").display().to_string();
    let mut wrong = Vec::new();
    for (fault, code, lines) in FAULTS {
        for line in *lines {
            let args: Vec<&str> = line
                .iter()
                .map(|arg| match *arg {
                    "SERVER" => server.url.as_str(),
                    "DATA" => data.as_str(),
                    other => other,
                })
                .collect();
            let done = run(&args);
            if done.code != Some(*code) {
                wrong.push(format!("{fault}: {line:?}: expected {code}, {done:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
