use crate::support::Server;

fn dead(server: &Server, count: usize) -> Vec<String> {
    let lines: String = (0..count).map(|n| format!("{n}\n")).collect();
    let ids = server.feed(&["send", "q", "--lines"], lines.as_bytes()).ok();
    let received = server.json(&["receive", "q", "--max", "100"]);
    let receipts: Vec<&str> = received.iter().map(|m| m["receipt"].as_str().unwrap()).collect();
    server.ok(&[&["reject", "--error", "bad luck"][..], &receipts].concat());
    ids.lines().map(str::to_owned).collect()
}

#[test]
fn dead_letters_are_listed_with_why() {
    let server = Server::start();
    dead(&server, 2);
    let list = server.ok(&["dead", "list", "q"]);
    assert!(list.contains("rejected") && list.contains("bad luck"), "{list}");
    let all = server.json(&["dead", "list", "q"]);
    assert_eq!((&all[0]["reason"], &all[0]["history"][0]["end"]), (&"rejected".into(), &"rejected".into()));
}

#[test]
fn one_or_all_are_redriven_or_deleted() {
    let server = Server::start();
    let ids = dead(&server, 5);
    assert_eq!(server.one(&["dead", "redrive", "q", &ids[0], &ids[1]])["redriven"], 2);
    assert_eq!(server.one(&["dead", "delete", "q", &ids[2], "--yes"])["deleted"], 1);
    assert!(server.run(&["dead", "delete", "q", "--all"]).fails(2).contains("--yes"));
    assert_eq!(server.ok(&["dead", "redrive", "q", "--all"]), "redriven 2 messages\n");
    assert_eq!((server.count("q", "ready"), server.count("q", "dead")), (4, 0));
    assert!(server.run(&["dead", "redrive", "q"]).fails(2).contains("<ID>"));
}

#[test]
fn dead_letters_are_counted_by_error() {
    let server = Server::start();
    dead(&server, 2);
    let counted = server.one(&["dead", "errors", "q"]);
    assert_eq!((&counted["scanned"], &counted["errors"][0]["messages"]), (&2.into(), &2.into()));
    let table = server.ok(&["dead", "errors", "q"]);
    assert!(table.starts_with("MESSAGES  LAST ERROR\n       2  "), "{table}");
    assert!(server.run(&["dead", "errors", "q", "--cursor", "x"]).fails(2).contains("cursor"));
}
