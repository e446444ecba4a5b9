use serde_json::json;

use crate::support::{Done, Server};

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

/// Runs a command in an open transaction, with this on its stdin.
fn within(server: &Server, transaction: &str, args: &[&str], input: &str) -> Done {
    std::fs::write(server.path("stdin"), input).unwrap();
    let mut command = server.command(args);
    command.env("SLUICE_TRANSACTION", transaction).stdin(std::fs::File::open(server.path("stdin")).unwrap());
    Done::of(command.output().unwrap())
}

fn begun(server: &Server) -> String {
    server.ok(&["txn", "begin"]).trim().to_owned()
}

#[test]
fn an_open_transaction_takes_operations_by_stage_only() {
    let server = Server::start();
    let transaction = begun(&server);
    let operations = r#"{"operations":[{"put":{"key":"a","content":"x"}}]}"#;
    std::fs::write(server.path("ops.json"), operations).unwrap();
    for args in [&["-"][..], &["ops.json"], &["--idempotency-key", "k"]] {
        let told = within(&server, &transaction, &[&["txn", "commit"], args].concat(), operations).fails(2);
        assert!(told.contains("txn stage") && told.contains("SLUICE_TRANSACTION"), "{told}");
        let flag = ["txn", "commit", "--transaction", &transaction];
        server.feed(&[&flag, args].concat(), operations.as_bytes()).fails(2);
    }
    server.run(&["doc", "get", "a"]).fails(3);
    assert_eq!(within(&server, &transaction, &["txn", "commit"], "no operations").ok(), "");
    let help = server.ok(&["txn", "commit", "--help"]);
    assert!(help.contains("stdin is not read for it"), "{help}");
}

#[test]
fn flags_that_a_transaction_could_not_heed_are_refused() {
    let server = Server::start();
    let transaction = begun(&server);
    let told = within(&server, &transaction, &["send", "q", "x", "--idempotency-key", "k"], "").fails(2);
    assert!(told.contains("--idempotency-key") && told.contains("SLUICE_TRANSACTION"), "{told}");
    let told = server.run(&["receive", "q", "--ack", "--transaction", &transaction]).fails(2);
    assert!(told.contains("--ack") && told.contains("commit"), "{told}");
    for flag in [&["--show"][..], &["--version", "1"]] {
        let told = within(&server, &transaction, &[&["doc", "get", "a"], flag].concat(), "").fails(2);
        assert!(told.contains("--version") && told.contains("--show"), "{told}");
    }
    assert_eq!(within(&server, &transaction, &["send", "q", "x"], "").ok(), "");
    within(&server, &transaction, &["txn", "commit"], "").ok();
    assert_eq!(server.json(&["message", "list", "q"]).len(), 1);
}

#[test]
fn a_transaction_of_another_namespace_is_told_as_a_cause() {
    let server = Server::start();
    server.ok(&["namespace", "create", "other"]);
    let transaction = begun(&server);
    let told = server.run(&["txn", "commit", "--transaction", &transaction, "--namespace", "other"]).fails(4);
    assert!(told.contains("another namespace than other") && told.contains("--namespace"), "{told}");
}

#[test]
fn a_document_that_is_not_there_is_told_beside_what_was_read() {
    let server = Server::start();
    server.feed(&["doc", "put", "there"], b"-").ok();
    let transaction = begun(&server);
    let read = r#"{"operations":[{"get":{"key":"none"}},{"get":{"key":"there"}}]}"#;
    let done = within(&server, &transaction, &["txn", "stage"], read);
    assert_eq!(done.err, "operations[0].get: there is no such document\n");
    assert_eq!(done.ok(), "-\n");
}
