use crate::support::{Done, Server, command, until};

#[test]
fn a_backup_under_load_restores_what_was_there() {
    let server = Server::start();
    let lines: String = (0..3_000).map(|n| format!("{n}\n")).collect();
    let before = server.feed(&["send", "q", "--lines"], lines.as_bytes()).ok();
    server.ok(&["receive", "q", "--max", "500", "--ack"]);
    let sending = {
        let mut command = server.command(&["send", "noise", "--lines", "--quiet"]);
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = lines.repeat(10);
        std::thread::spawn(move || {
            let _ = std::io::Write::write_all(&mut stdin, text.as_bytes());
            drop(stdin);
            child.wait().unwrap()
        })
    };
    let told = server.ok(&["backup", "copy.sluice"]);
    let key = server.ready["encryption"]["root_key"].as_str().unwrap();
    assert!(told.starts_with("wrote copy.sluice, "), "{told}");
    assert!(told.ends_with(&format!(": {key}\n")), "the key that a restore takes: {told}");
    sending.join().unwrap();
    let url = server.ready["url"].as_str().unwrap();
    let (_, port) = url.rsplit_once(':').unwrap();
    server.ok(&[
        "backup",
        "second.sluice",
        "--server",
        &format!("http://127.0.0.1:1,http://127.0.0.1:{port}"),
    ]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(server.path("copy.sluice")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600, "what is in it is nobody else's");
    assert!(server.run(&["backup", "copy.sluice"]).fails(4).contains("--overwrite"));

    let home = server.home.path().to_owned();
    let run = |args: &[&str]| Done::of(command(&home, args).output().unwrap());
    let error = run(&["restore", "copy.sluice", "restored"]).fails(2);
    assert!(error.contains("takes the root key") && !home.join("restored").exists(), "{error}");
    let key_source = format!("file:{}", home.join("sluice-data.key").display());
    let told = run(&["restore", "copy.sluice", "restored", "--key-source", &key_source]).ok();
    let next = format!("sluice serve --data-dir restored --key-source {key_source}");
    assert!(told.contains(&next), "{told}");
    assert!(run(&["restore", "copy.sluice", "restored"]).fails(4).contains("not empty"));
    let dir = home.join("restored");
    let restored = Server::with(&["--data-dir", dir.to_str().unwrap(), "--key-source", &key_source]);
    let queue = restored.one(&["queue", "show", "q"]);
    assert_eq!((&queue["counts"]["ready"], &queue["totals"]["acked"]), (&2_500.into(), &500.into()));
    let kept = restored.json(&["message", "list", "q", "--all", "--payload"]);
    for (n, message) in kept.iter().enumerate() {
        assert_eq!(message["payload"], (n + 500).to_string());
        assert_eq!(message["id"], before.lines().nth(n + 500).unwrap());
    }
}

#[test]
fn the_command_that_a_restore_prints_starts_every_shard() {
    let mut server = Server::with(&["--shards", "3"]);
    server.ok(&["send", "q", "x"]);
    server.ok(&["backup", "copy"]);
    server.signal("TERM");
    server.wait();
    let home = server.home.path();
    let run = |args: &[&str]| Done::of(command(home, args).output().unwrap());
    let told = run(&["restore", "copy", "restored", "--key-source", "file:sluice-data.key"]).ok();
    let line = told.lines().find_map(|line| line.strip_prefix("start it with: sluice ")).unwrap();
    assert_eq!(line, "serve --data-dir restored --shards 3 --key-source file:sluice-data.key");
    let flags: Vec<&str> = line.split(' ').skip(1).collect();
    let data = home.join("restored").display().to_string();
    let keys = format!("file:{}", home.join("sluice-data.key").display());
    let flags: Vec<&str> = flags
        .into_iter()
        .map(|flag| match flag {
            "restored" => data.as_str(),
            "file:sluice-data.key" => keys.as_str(),
            other => other,
        })
        .collect();
    assert_eq!(Server::with(&flags).count("q", "ready"), 1);
}

#[test]
fn a_backup_goes_through_a_pipe_and_a_cut_one_is_refused() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let output = server.command(&["backup", "-"]).output().unwrap();
    assert!(output.status.success());
    let whole = output.stdout;
    let key_source = ["--key-source", "file:sluice-data.key"];
    let mut restore = server.feed(&[&["restore", "-", "whole"], &key_source[..]].concat(), &whole);
    assert_eq!(restore.code, Some(0), "{restore:?}");
    for cut in [14, 20, whole.len() / 2, whole.len() - 1] {
        restore = server.feed(&[&["restore", "-", "cut"], &key_source[..]].concat(), &whole[..cut]);
        assert_eq!(restore.code, Some(8), "{cut}: {restore:?}");
        assert!(restore.err.contains("backup"), "{cut}: {}", restore.err);
        assert!(!restore.err.contains("fill whole buffer"), "{cut}: {}", restore.err);
        assert!(!server.path("cut").exists(), "{cut}: nothing half done");
    }
}

#[test]
fn a_restore_goes_into_a_folder_of_its_own_that_nobody_can_foresee() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let whole = server.command(&["backup", "-"]).output().unwrap().stdout;
    let mut restore = server.command(&["restore", "-", "new", "--key-source", "file:sluice-data.key"]);
    let mut restore = restore.stdin(std::process::Stdio::piped()).spawn().unwrap();
    restore.stdin.as_mut().unwrap().write_all(&whole[..whole.len() / 2]).unwrap();
    let parts = || {
        let entries = std::fs::read_dir(server.home.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "part")).collect::<Vec<_>>()
    };
    until("it has begun", || !parts().is_empty());
    let part = parts().remove(0);
    assert!(!part.ends_with(format!("new.{}.part", restore.id())), "{part:?}");
    assert_eq!(std::fs::metadata(&part).unwrap().permissions().mode() & 0o777, 0o700);
    drop(restore.stdin.take());
    assert_eq!(restore.wait().unwrap().code(), Some(8));
    assert!(parts().is_empty() && !server.path("new").exists());
}

#[test]
fn what_is_no_backup_is_a_wrong_argument() {
    let server = Server::start();
    std::fs::write(server.path("note.txt"), "buy milk").unwrap();
    for (file, expected) in [
        ("note.txt", "note.txt is not a backup made by `sluice backup`"),
        ("missing.sluice", "cannot read missing.sluice: No such file"),
        (".", ". is a directory, not a backup"),
    ] {
        let error = server.run(&["restore", file, "restored"]).fails(2);
        assert!(error.contains(expected), "{error}");
    }
    for piped in [&b""[..], b"SLUIC", b"something else"] {
        let error = server.feed(&["restore", "-", "restored"], piped).fails(2);
        assert!(error.contains("stdin is not a backup"), "{error}");
    }
    assert!(!server.path("restored").exists());
}
