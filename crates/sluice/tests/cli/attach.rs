//! What `sluice attach` says of files, and leaves of puts that are refused.

use serde_json::{Value, json};

use crate::support::Server;

/// A server with a document `d` and a file `f`.
fn with_document() -> Server {
    let server = Server::start();
    server.feed(&["doc", "put", "d"], b"x").ok();
    std::fs::write(server.path("f"), b"content").unwrap();
    server
}

#[test]
fn what_is_no_file_or_too_long_is_told_with_its_path() {
    let server = with_document();
    std::fs::create_dir(server.path("folder")).unwrap();
    for (path, name) in [(".", "."), ("folder", "folder"), ("folder/../folder", "folder/../folder")] {
        let told = server.run(&["attach", "put", "d", path]).fails(2);
        assert!(told.contains(&format!("{name} is a directory: give the path of a file")), "{told}");
    }
    let long = std::fs::File::create(server.path("long")).unwrap();
    long.set_len((5 << 30) + 1).unwrap();
    let told = server.run(&["attach", "put", "d", "long", "--server", "http://127.0.0.1:1"]).fails(5);
    assert!(
        told.contains("long has 5368709121 bytes") && told.contains("at most 5368709120 (5.0 GiB)"),
        "{told}"
    );
}

#[test]
fn a_media_type_that_was_not_given_is_absent_everywhere() {
    let server = with_document();
    server.ok(&["attach", "put", "d", "f"]);
    server.ok(&["attach", "put", "d", "f", "--name", "g", "--type", "a/b"]);
    let listed = server.json(&["attach", "list", "d"]);
    let got = |name| server.one(&["attach", "get", "d", name, "-o", "copy"]);
    assert_eq!(listed, [got("f"), got("g")]);
    let types: Vec<Option<&Value>> = listed.iter().map(|one| one.get("content_type")).collect();
    assert_eq!(types, [None, Some(&json!("a/b"))]);
    let table = server.ok(&["attach", "list", "d"]);
    let typed = table.lines().nth(1).unwrap().split_whitespace().rev().nth(1);
    assert_eq!(typed, Some("-"), "{table}");
}

#[test]
fn what_is_written_through_a_link_is_told() {
    let server = with_document();
    server.ok(&["attach", "put", "d", "f"]);
    std::fs::write(server.path("file"), b"").unwrap();
    std::os::unix::fs::symlink("file", server.path("link")).unwrap();
    assert_eq!(server.ok(&["attach", "get", "d", "f", "-o", "link"]), "7 B written to link\n");
    assert_eq!(std::fs::read(server.path("file")).unwrap(), b"content");
    // Bytes on stdout have nothing behind them, be stdout a file or a pipe.
    assert_eq!(server.ok(&["attach", "get", "d", "f", "-o", "/dev/stdout"]), "content");
    let stdout = std::fs::File::create(server.path("stdout")).unwrap();
    let mut command = server.command(&["attach", "get", "d", "f", "-o", "/dev/stdout"]);
    assert!(command.stdout(stdout).status().unwrap().success());
    assert_eq!(std::fs::read(server.path("stdout")).unwrap(), b"content");
}

#[test]
fn what_has_no_room_leaves_no_upload_and_is_not_to_be_resumed() {
    let server = with_document();
    server.ok(&["namespace", "create", "small", "--bytes", "1MiB"]);
    let small = |args: &[&str]| server.run(&[args, &["--namespace", "small"]].concat());
    server.feed(&["doc", "put", "d", "--namespace", "small"], b"x").ok();
    std::fs::write(server.path("large"), vec![b'x'; 3 << 20]).unwrap();
    let bytes = || server.one(&["namespace", "show", "small"])["bytes"].as_u64().unwrap();
    let before = bytes();
    let told = small(&["attach", "put", "d", "large"]).fails(6);
    assert!(!told.contains("--resume"), "{told}");
    crate::support::until("its bytes are let go of", || bytes() == before);
}
