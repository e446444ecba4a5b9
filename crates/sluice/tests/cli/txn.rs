use serde_json::json;

use crate::support::Server;

#[test]
fn operations_are_done_together_or_not_at_all() {
    let server = Server::start();
    let write = |name: &str, put: serde_json::Value| {
        let operations = json!([{"put": put}, {"send": {"queue": "mail", "payload": "thank you"}},
            {"acquire": {"key": "orders/17"}}]);
        std::fs::write(server.path(name), json!({"operations": operations}).to_string()).unwrap();
    };
    write("paid.json", json!({"key": "orders/17", "content": "paid", "if_absent": true}));
    let commit = ["txn", "commit", "paid.json", "--idempotency-key", "once"];
    let done = server.run(&commit);
    assert_eq!(done.err, "");
    let told = done.ok();
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("written version 1, etag ") && lines[1].starts_with("sent "), "{told}");
    assert!(lines[2].starts_with("granted ") && lines.len() == 3, "{told}");
    let again = server.run(&commit);
    assert!(again.err.starts_with("done before"), "{again:?}");
    assert_eq!(again.ok(), told);

    write("other.json", json!({"key": "orders/18", "content": "paid"}));
    let told = server.run(&["txn", "commit", "other.json"]).fails(4);
    assert!(told.contains("operations[2].acquire: lock \"orders/17\" is held"), "{told}");
    server.run(&["doc", "get", "orders/18"]).fails(3);
    assert_eq!(server.json(&["message", "list", "mail"]).len(), 1);

    let deleted = server.feed(&["txn", "commit"], b"{\"operations\":[{\"delete\":{\"key\":\"orders/17\"}}]}");
    assert_eq!(deleted.ok(), "done\n");
    assert!(server.feed(&["txn", "commit", "-"], b" ").fails(2).contains("stdin is empty"));
    assert!(server.run(&["txn", "commit", "none.json"]).fails(2).contains("cannot read none.json"));
    server.feed(&["txn", "commit"], b"{\"operations\":[").fails(2);
}
