use crate::support::Server;

#[test]
fn messages_are_shown_without_taking_them() {
    let server = Server::start();
    let id = server.ok(&["send", "q", "first \u{1b}[31mred", "--header", "k=v"]);
    server.ok(&["send", "q", "second", "--priority", "9"]);
    let peek = server.json(&["message", "peek", "q"]);
    assert_eq!(peek.iter().map(|m| m["priority"].as_u64().unwrap()).collect::<Vec<_>>(), [9, 0]);
    let table = server.ok(&["message", "peek", "q"]);
    assert!(table.starts_with("ID") && table.contains("second") && !table.contains('\u{1b}'), "{table}");
    let show = server.ok(&["message", "show", id.trim()]);
    for part in ["ready", "k: v", "0 of 5", "first"] {
        assert!(show.contains(part), "{part}: {show}");
    }
    assert!(!show.contains('\u{1b}'), "a payload does not steer the terminal");
    assert_eq!(server.ok(&["message", "show", id.trim(), "--raw"]), "first \u{1b}[31mred");
    assert_eq!(server.count("q", "ready"), 2);
}

#[test]
fn lists_go_page_by_page_and_by_state() {
    let server = Server::start();
    let lines: String = (0..1_200).map(|n| format!("{n}\n")).collect();
    server.feed(&["send", "q", "--lines", "--quiet"], lines.as_bytes()).ok();
    server.ok(&["receive", "q"]);
    assert_eq!(server.json(&["message", "list", "q", "--all"]).len(), 1_200);
    assert_eq!(server.json(&["message", "list", "q", "--limit", "7"]).len(), 7);
    assert_eq!(server.json(&["message", "list", "q", "--state", "leased"]).len(), 1);
    let first = server.run(&["message", "list", "q", "--limit", "700"]);
    let cursor = first.err.split("--cursor ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    assert_eq!(server.json(&["message", "list", "q", "--limit", "700", "--cursor", &cursor]).len(), 500);
    assert!(
        server
            .run(&["message", "list", "q", "--state", "gone"])
            .fails(2)
            .contains("possible values: delayed")
    );
}

#[test]
fn what_is_not_there_is_said() {
    let server = Server::start();
    let id = server.ok(&["send", "q", "x"]);
    server.ok(&["receive", "q", "--ack"]);
    assert!(server.run(&["message", "show", id.trim()]).fails(3).contains("is not here"));
    assert!(server.run(&["message", "show", "nonsense"]).fails(2).contains("is not a message id"));
}
