use crate::support::Server;

#[test]
fn messages_are_held_approved_changed_moved_and_cancelled() {
    let server = Server::start();
    server.ok(&["send", "b", "there"]);
    let id = server.ok(&["send", "a", "x", "--tag", "red", "--hold"]);
    let id = id.trim();
    server.ok(&["message", "approve", id, "--by", "ann", "--why", "it is right"]);
    let show = server.ok(&["message", "show", id]);
    for part in ["ready", "red", "by ann: it is right"] {
        assert!(show.contains(part), "{part}: {show}");
    }
    assert!(server.run(&["message", "approve", id]).fails(4).contains("is ready, expected held"));
    server.ok(&["message", "change", id, "--priority", "7", "--set-tag", "blue"]);
    server.ok(&["message", "move", id, "--to", "b"]);
    let shown = server.json(&["message", "show", id]);
    assert_eq!((&shown[0]["queue"], &shown[0]["priority"]), (&"b".into(), &7.into()));
    let received = server.json(&["receive", "b"]);
    assert_eq!(received[0]["tags"][0], "blue");
    server.ok(&["message", "cancel", id]);
    assert!(server.ok(&["message", "show", id]).contains("leased (cancelled)"));
    assert!(server.run(&["message", "change", id]).fails(2).contains("nothing is to change"));
    assert!(server.run(&["message", "move", id, "--to", "nowhere"]).fails(3).contains("nowhere"));
}

#[test]
fn a_bulk_changes_what_matches() {
    let server = Server::start();
    server.ok(&["send", "b", "there"]);
    server.feed(&["send", "a", "--lines", "--quiet", "--tag", "red"], b"1\n2\n3\n").ok();
    server.ok(&["send", "a", "4"]);
    let red = r#"{"/tags":{"contains":"red"}}"#;
    let start = ["bulk", "start", "move", "--queue", "a", "--to", "b", "--where", red];
    let dry = server.ok(&[&start[..], &["--dry-run"]].concat());
    assert!(dry.contains("would change") && dry.contains('3'), "{dry}");
    assert_eq!(server.count("a", "ready"), 4);
    // It cannot be taken back, and there is nobody to ask.
    let error = server.run(&start).fails(2);
    assert!(error.contains("Moving all messages of queue a that match cannot be undone"), "{error}");
    for action in ["cancel", "deny"] {
        assert!(server.run(&["bulk", "start", action, "--queue", "a"]).fails(2).contains("--yes"));
    }
    assert_eq!(server.count("a", "ready"), 4);
    let bulk = server.json(&[&start[..], &["--yes"]].concat());
    assert_eq!((&bulk[0]["state"], &bulk[0]["changed"]), (&"done".into(), &3.into()));
    assert_eq!((server.count("a", "ready"), server.count("b", "ready")), (1, 4));
    let id = bulk[0]["bulk"].as_str().unwrap();
    assert!(server.ok(&["bulk", "show", id]).contains("4 of 4 messages"));
    assert_eq!(server.json(&["bulk", "list"]).len(), 2);
    assert!(server.ok(&["bulk", "cancel", id]).contains("done"));
    let slow = server.ok(&["bulk", "start", "hold", "--queue", "b", "--per-second", "50"]);
    assert!(slow.contains("per second  50") && slow.contains("changed     4"), "{slow}");
    let wrong =
        server.run(&["bulk", "start", "hold", "--queue", "a", "--where", r#"{"/state":"dead"}"#]).fails(2);
    assert!(wrong.contains("hold is possible for"), "{wrong}");
    assert!(server.run(&["bulk", "start", "hold", "--queue", "a", "--to", "b"]).fails(2).contains("--to"));
    assert!(server.run(&["bulk", "start", "move", "--queue", "a"]).fails(2).contains("--to"));
}

#[test]
fn a_search_finds_what_matches() {
    let server = Server::start();
    server.feed(&["send", "a", "--lines", "--quiet", "--tag", "red"], b"{\"n\":1}\n{\"n\":2}\nthree\n").ok();
    server.ok(&["send", "a", "4"]);
    let search = |filter: &str, more: &[&str]| {
        server.json(&[&["message", "search", "a", "--where", filter], more].concat())
    };
    let payloads = |found: &[serde_json::Value]| -> Vec<String> {
        found.iter().map(|one| one["payload"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let found = search(r#"{"/payload/n":{"ge":2}}"#, &["--payload"]);
    assert_eq!(payloads(&found), [r#"{"n":2}"#]);
    assert_eq!(payloads(&search(r#"{"/payload_text":{"contains":"hre"}}"#, &["--payload"])), ["three"]);
    assert_eq!(search(r#"{"/tags":{"contains":"red"}}"#, &[]).len(), 3);
    assert_eq!(search(r#"{"/tags":{"contains":"red"}}"#, &["--limit", "2"]).len(), 2);
    assert!(server.ok(&["message", "search", "a", "--payload"]).contains("three"));
    let wrong = server.run(&["message", "search", "a", "--where", r#"{"/sate":"dead"}"#]).fails(2);
    assert!(wrong.contains("where./sate"), "{wrong}");
}
