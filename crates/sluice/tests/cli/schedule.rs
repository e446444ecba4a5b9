use crate::support::Server;

#[test]
fn a_trigger_says_when_the_unique_key_kept_it_from_sending() {
    let server = Server::start();
    server.ok(&["schedule", "set", "s", "q", "x", "--every", "1h", "--unique", "k"]);
    let first = server.run(&["schedule", "trigger", "s"]);
    assert!(!first.err.contains("nothing was sent"), "{}", first.err);
    let id = first.ok();
    let again = server.run(&["schedule", "trigger", "s"]);
    assert!(
        again.err.contains("nothing was sent: a message with the same unique key is there"),
        "{}",
        again.err
    );
    assert_eq!(again.ok(), id);
    let shown = server.one(&["schedule", "trigger", "s"]);
    assert_eq!(shown, serde_json::json!({"id": id.trim(), "duplicate": true}));
    assert_eq!(server.count("q", "ready"), 1);
}
