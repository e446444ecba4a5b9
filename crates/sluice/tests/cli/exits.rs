//! The same fault ends every verb that meets it with the same exit code.

use std::path::Path;

use crate::support::{Done, Server, command};

/// What is wrong, the exit code, and command lines that meet it. `SERVER` stands for the address of a server,
/// `DATA` for the directory that it uses, `TLS` for the address of one that speaks TLS.
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
        "a file that is named cannot be written",
        2,
        &[
            &["backup", "nowhere/x", "--server", "SERVER"],
            &["backup", "full", "--overwrite", "--server", "SERVER"],
            &["restore", "whole", "file/x", "--key-source", "file:sluice-data.key"],
            &["cert", "ca", "--dir", "file/x"],
            &["cert", "server", "localhost", "--dir", "file/x"],
            &["serve", "--listen=127.0.0.1:0", "--data-dir", "file/x"],
            &["serve", "--listen=127.0.0.1:0", "--data-dir", "new", "--key-source", "file:file/key"],
            &["serve", "--listen=127.0.0.1:0", "--memory", "--tls", "auto", "--tls-dir", "file/x"],
        ],
    ),
    (
        "a data directory that is a file",
        2,
        &[&["serve", "--listen=127.0.0.1:0", "--data-dir", "file"], &["check", "file"]],
    ),
    (
        "a root key is missing or wrong",
        2,
        &[
            &[
                "serve",
                "--listen=127.0.0.1:0",
                "--data-dir",
                "used",
                "--shards=2",
                "--key-source",
                "file:nowhere",
            ],
            &[
                "serve",
                "--listen=127.0.0.1:0",
                "--data-dir",
                "used",
                "--shards=2",
                "--key-source",
                "file:wrong.key",
            ],
            &["serve", "--listen=127.0.0.1:0", "--data-dir", "used", "--shards=2", "--no-encryption"],
            &["check", "used", "--key-source", "file:nowhere"],
            &["check", "used", "--key-source", "file:wrong.key"],
            &["restore", "whole", "new", "--key-source", "file:nowhere"],
            &["restore", "whole", "new", "--key-source", "file:wrong.key"],
        ],
    ),
    (
        "a source gives no root keys",
        2,
        &[
            &["serve", "--listen=127.0.0.1:0", "--data-dir", "new", "--key-source", "env:NOWHERE"],
            &["serve", "--listen=127.0.0.1:0", "--data-dir", "new", "--key-source", "command:false"],
            &["check", "used", "--key-source", "env:NOWHERE"],
            &["check", "used", "--key-source", "command:false"],
            &["restore", "whole", "new", "--key-source", "env:NOWHERE"],
            &["restore", "whole", "new", "--key-source", "command:false"],
        ],
    ),
    (
        "fewer shards than the directory has",
        2,
        &[&["serve", "--listen=127.0.0.1:0", "--data-dir", "used", "--shards", "1"]],
    ),
    (
        "an address that is not this machine's",
        2,
        &[&["serve", "--memory", "--insecure", "--listen=192.0.2.1:0"]],
    ),
    (
        "TLS meets clear text, or a certificate that nobody knows",
        2,
        &[
            &["send", "q", "x", "--server", "https://SERVER"],
            &["backup", "x", "--server", "https://SERVER"],
            &["work", "q", "--server", "https://SERVER", "--", "true"],
            &["send", "q", "x", "--server", "http://TLS"],
            &["backup", "x", "--server", "http://TLS"],
            &["work", "q", "--server", "http://TLS", "--", "true"],
            &["send", "q", "x", "--server", "https://TLS"],
        ],
    ),
    (
        "it is there already",
        4,
        &[
            &["backup", "file", "--server", "SERVER"],
            &["restore", "file", "full"],
            &["restore", "whole", "file"],
            &["restore", "whole", "file", "--key-source", "file:sluice-data.key"],
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

/// Leaves the data of a server with two shards, `used`, and a backup of it, `whole`.
fn make_used(home: &Path) {
    let mut used = Server::with(&["--shards", "2"]);
    used.ok(&["send", "q", "x"]);
    used.ok(&["backup", "whole"]);
    used.signal("TERM");
    used.wait();
    for (from, to) in [("sluice-data", "used"), ("sluice-data.key", "sluice-data.key"), ("whole", "whole")] {
        std::fs::rename(used.path(from), home.join(to)).unwrap();
    }
}

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
    std::fs::write(home.path().join("wrong.key"), "5a".repeat(32)).unwrap();
    make_used(home.path());
    let tls = Server::with(&["--memory", "--tls", "auto"]);
    let address = |url: &str| url.split_once("://").unwrap().1.to_owned();
    let (clear, tls) = (address(&server.url), address(&tls.url));
    let data = server.path("sluice-data").display().to_string();
    let mut wrong = Vec::new();
    for (fault, code, lines) in FAULTS {
        for line in *lines {
            let named = |arg: &&str| match *arg {
                "SERVER" => server.url.clone(),
                "DATA" => data.clone(),
                other => {
                    other.replace("//SERVER", &format!("//{clear}")).replace("//TLS", &format!("//{tls}"))
                }
            };
            let args: Vec<String> = line.iter().map(named).collect();
            let done = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            if done.code != Some(*code) {
                wrong.push(format!("{fault}: {line:?}: expected {code}, {done:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
