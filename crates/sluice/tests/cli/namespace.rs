use crate::support::Server;

#[test]
fn a_namespace_lives_and_ends() {
    let server = Server::start();
    let created = server.ok(&["namespace", "create", "shop", "--queues", "1", "--bytes", "1MiB"]);
    assert!(created.starts_with("created\n") && created.contains("0 of 1"), "{created}");
    assert!(server.run(&["namespace", "create", "shop"]).fails(4).contains("exists already"));
    server.ok(&["send", "orders", "x", "-n", "shop"]);
    assert!(
        server.run(&["queue", "show", "orders"]).fails(3).contains("does not exist"),
        "it is in shop, not default"
    );
    let error = server.run(&["send", "other", "x", "--namespace", "shop"]).fails(6);
    assert!(error.contains("the namespace may hold 1"), "{error}");
    let set = server.one(&["namespace", "set", "shop", "--queues", "5"]);
    assert_eq!((&set["quotas"]["queues"], &set["quotas"]["bytes"]), (&5.into(), &1_048_576.into()));
    server.ok(&["send", "other", "x", "--namespace", "shop"]);
    assert_eq!(server.one(&["namespace", "show", "shop"])["messages"], 2);
    assert!(server.ok(&["namespace", "list"]).contains("default"));
    let error = server.run(&["namespace", "delete", "shop", "--yes"]).fails(4);
    assert!(error.contains("--force deletes its queues and documents, too"), "{error}");
    server.ok(&["namespace", "delete", "shop", "--yes", "--force"]);
    assert!(server.run(&["namespace", "show", "shop"]).fails(3).contains("\"shop\" does not exist"));
    server.run(&["send", "q", "x", "-n", "shop"]).fails(3);
}

#[test]
fn the_environment_names_a_namespace() {
    let server = Server::start();
    server.ok(&["namespace", "create", "shop"]);
    let mut command = server.command(&["send", "q", "x"]);
    assert!(command.env("SLUICE_NAMESPACE", "shop").status().unwrap().success());
    assert_eq!(server.one(&["queue", "show", "q", "-n", "shop"])["namespace"], "shop");
}
