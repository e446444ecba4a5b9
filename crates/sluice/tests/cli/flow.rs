use crate::support::Server;

#[test]
fn a_chain_goes_from_queue_to_queue() {
    let server = Server::start();
    let flags = "--then resize --then store --on-failure oops";
    let args: Vec<&str> = ["send", "fetch", "url"].into_iter().chain(flags.split(' ')).collect();
    let id = server.ok(&args);
    let shown = server.ok(&["flow", "show", id.trim()]);
    assert_eq!(shown, format!("{} fetch ready, then resize, store, on failure oops\n", id.trim()));
    let first = server.one(&["receive", "fetch"]);
    server.ok(&["ack", first["receipt"].as_str().unwrap(), "--result", "picture"]);
    let second = server.one(&["receive", "resize"]);
    assert_eq!(second["payload"], "picture");
    server.ok(&["reject", second["receipt"].as_str().unwrap()]);
    let failed = server.one(&["receive", "oops"]);
    assert_eq!((&failed["payload"], &failed["from_queue"]), (&"picture".into(), &"resize".into()));
    std::fs::write(
        server.path("chain.json"),
        r#"[{"queue":"b","priority":3},{"queue":"c","payload":"own"}]"#,
    )
    .unwrap();
    let id = server.ok(&["send", "a", "x", "--chain", "chain.json"]);
    let flow = server.one(&["flow", "show", id.trim()]);
    assert_eq!(flow["chain"], serde_json::json!(["b", "c"]));
    std::fs::write(server.path("chain.json"), r#"[{"queue":"b","price":3}]"#).unwrap();
    let wrong = server.run(&["send", "a", "x", "--chain", "chain.json"]).fails(2);
    assert!(wrong.contains("chain[0]: not a message: unknown field `price`"), "{wrong}");
}

#[test]
fn a_group_calls_back_and_shows_how_it_stands() {
    let server = Server::start();
    let group =
        br#"{"messages":[{"queue":"mail","payload":"ann"}],"callback":{"queue":"reports","payload":"out"}}"#;
    let ids = server.feed(&["group", "send", "-"], group).ok();
    let (callback, member) = ids.trim().split_once('\n').unwrap();
    let tree = server.ok(&["flow", "show", member]);
    let expected =
        format!("{member} mail ready\n└─ {callback} reports blocked, group: 1 pending, 0 done, 0 dead\n");
    assert_eq!(tree, expected);
    let first = server.one(&["receive", "mail"]);
    server.ok(&["ack", first["receipt"].as_str().unwrap()]);
    let shown = server.one(&["group", "show", callback]);
    assert_eq!((&shown["done"], &shown["callback"]), (&1.into(), &"ready".into()));
    assert_eq!(server.one(&["receive", "reports"])["headers"]["sluice-done"], "1");
    for (group, expected) in [
        ("{}", "stdin: a group needs messages, a list, and callback"),
        (r#"{"messages":[{"payload":"a"}],"callback":{}}"#, "stdin: messages[0]: queue is missing"),
        (
            r#"{"messages":[],"callback":{"queue":"a"}}"#,
            "stdin: callback: payload or payload_base64 is missing",
        ),
        (r#"{"messages":[],"callbak":{"queue":"a"}}"#, "stdin: unknown field \"callbak\""),
    ] {
        let told = server.feed(&["group", "send", "-"], group.as_bytes()).err;
        assert!(told.contains(expected), "{told}");
    }
}
