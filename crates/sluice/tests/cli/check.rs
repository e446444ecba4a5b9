use std::path::{Path, PathBuf};

use crate::support::{Done, Server, command};

/// A data directory that a server has left in order, and the home it lies in.
fn left_behind() -> (tempfile::TempDir, Server) {
    let mut server = Server::start();
    let lines: String = (0..300).map(|n| format!("payload number {n}\n")).collect();
    server.feed(&["send", "q", "--lines", "--quiet"], lines.as_bytes()).ok();
    // What was written later tells that what came before was on the disk.
    server.ok(&["send", "q", "one more"]);
    server.signal("TERM");
    assert!(server.wait().success());
    (std::mem::replace(&mut server.home, tempfile::tempdir().unwrap()), server)
}

fn run(home: &Path, args: &[&str]) -> Done {
    Done::of(command(home, args).output().unwrap())
}

/// The longest segment of the log, without what was prefilled.
fn longest(dir: &Path) -> (PathBuf, Vec<u8>) {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|extension| extension == "log"));
    let read = logs.map(|file| {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        (file, bytes)
    });
    read.max_by_key(|(_, bytes)| bytes.len()).unwrap()
}

#[test]
fn what_is_whole_is_ok() {
    let (home, _server) = left_behind();
    let text = run(home.path(), &["check", "sluice-data"]).ok();
    assert!(text.contains("shard-000: ok") && text.contains("301 payloads"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&run(home.path(), &["check", "sluice-data", "--json"]).ok()).unwrap();
    assert_eq!((&json["ok"], &json["blobs"]), (&true.into(), &301.into()));
}

#[test]
fn a_flipped_bit_is_found_and_named() {
    let (home, _server) = left_behind();
    let (file, mut bytes) = longest(&home.path().join("sluice-data/shard-000"));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let done = run(home.path(), &["check", "sluice-data"]);
    assert_eq!(done.code, Some(8), "{done:?}");
    assert!(done.out.contains("DAMAGED") && done.out.contains("is damaged at byte"), "{done:?}");
    assert!(done.err.contains("sluice restore"), "{done:?}");
    let done = run(home.path(), &["serve", "--listen=127.0.0.1:0"]);
    assert_eq!(done.code, Some(8), "as when a server starts on it: {done:?}");
}

#[test]
fn a_missing_manifest_or_shard_is_damage() {
    let (home, _server) = left_behind();
    let data = home.path().join("sluice-data");
    std::fs::rename(data.join("shard-000"), data.join("shard-001")).unwrap();
    let done = run(home.path(), &["check", "sluice-data"]);
    assert!(done.code == Some(8) && done.out.contains("shard-000 is missing"), "{done:?}");
    std::fs::rename(data.join("shard-001"), data.join("shard-000")).unwrap();
    std::fs::remove_file(data.join("shard-000/manifest")).unwrap();
    let done = run(home.path(), &["check", "sluice-data"]);
    assert!(done.code == Some(8) && done.out.contains("there is no manifest"), "{done:?}");
}

#[test]
fn a_missing_last_shard_is_damage_and_so_is_a_restore_that_was_cut() {
    let (home, _server) = left_behind();
    let marker = home.path().join("sluice-data/directory");
    let text = std::fs::read_to_string(&marker).unwrap();
    let body = text.replace("shards 1\n", "shards 2\n");
    let body = &body[..body.find("checksum").unwrap()];
    std::fs::write(&marker, format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()))).unwrap();
    let done = run(home.path(), &["check", "sluice-data"]);
    assert!(done.code == Some(8) && done.out.contains("shard-001 is missing"), "{done:?}");
    let body = body.replace("state complete", "state restoring");
    std::fs::write(&marker, format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()))).unwrap();
    let done = run(home.path(), &["check", "sluice-data"]);
    assert!(done.code == Some(8) && done.out.contains("not finished"), "{done:?}");
}

#[test]
fn what_cannot_be_checked_is_said() {
    let server = Server::start();
    let error = server.run(&["check", "sluice-data"]).fails(4);
    assert!(error.contains("a server uses"), "{error}");
    assert!(server.run(&["check", "."]).fails(2).contains("is not a data directory of Sluice"));
    assert!(server.run(&["check", "nowhere"]).fails(2).contains("cannot read nowhere"));
}

#[test]
fn a_shard_in_the_place_of_another_is_damage_to_a_check_and_to_a_start() {
    let mut server = Server::with(&["--shards", "3"]);
    server.ok(&["namespace", "create", "n1"]);
    server.ok(&["send", "q", "kept", "--namespace", "n1"]);
    server.signal("TERM");
    assert!(server.wait().success());
    let data = server.home.path().join("sluice-data");
    let exchange = || {
        for (from, to) in [("shard-001", "aside"), ("shard-002", "shard-001"), ("aside", "shard-002")] {
            std::fs::rename(data.join(from), data.join(to)).unwrap();
        }
    };
    exchange();
    let told = "shard-001 is not where it belongs: it holds shard 2 of this server";
    let done = run(server.home.path(), &["check", "sluice-data"]);
    assert!(done.code == Some(8) && done.out.contains(told), "{done:?}");
    let done = run(server.home.path(), &["serve", "--listen=127.0.0.1:0", "--shards=3"]);
    assert!(done.code == Some(8) && done.err.contains(told), "{done:?}");
    exchange();
    run(server.home.path(), &["check", "sluice-data"]).ok();
}
