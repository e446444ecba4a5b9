use crate::support::{Done, Server, alone, command};

#[test]
fn a_context_names_a_server() {
    let server = Server::start();
    let home = server.home.path().to_owned();
    let run = |args: &[&str]| Done::of(command(&home, args).output().unwrap());
    assert!(run(&["context", "list"]).err.contains("sluice context add NAME --server URL"));
    run(&["context", "add", "local", "--server", &server.url]).ok();
    run(&["context", "add", "nowhere", "--server", "http://127.0.0.1:1", "--namespace", "shop"]).ok();
    run(&["send", "q", "x"]).ok();
    let list = run(&["context", "list"]).ok();
    assert!(list.lines().any(|l| l.starts_with("local") && l.ends_with("in use")), "{list}");
    run(&["context", "use", "nowhere"]).ok();
    let error = run(&["queue", "list"]).fails(7);
    assert!(error.contains("the context \"nowhere\", chosen by `sluice context use`"), "{error}");
    run(&["queue", "list", "--context", "local"]).ok();
    assert!(run(&["queue", "list", "--context", "else"]).fails(2).contains("local, nowhere"));
    run(&["context", "remove", "nowhere"]).ok();
    assert_eq!(run(&["context", "list", "--json"]).ok().lines().count(), 1);
}

#[test]
fn an_empty_name_is_refused_and_an_empty_variable_counts_as_not_set() {
    let server = Server::start();
    for args in [
        &["send", "q", "x", "--namespace", ""][..],
        &["--namespace=", "send", "q", "x"],
        &["queue", "list", "--context", ""],
        &["queue", "list", "--server", ""],
        &["context", "add", "", "--server", &server.url],
        &["context", "add", "x", "--server", &server.url, "--namespace", ""],
    ] {
        let error = server.run(args).fails(2);
        assert!(error.contains("it is empty: is a variable not set?"), "{args:?}: {error}");
    }
    assert!(server.json(&["context", "list"]).is_empty());
    let mut send = server.command(&["send", "q", "x"]);
    Done::of(send.env("SLUICE_NAMESPACE", "").env("SLUICE_CONTEXT", "").output().unwrap()).ok();
    assert_eq!(server.one(&["queue", "list"])["name"], "q");
}

#[test]
fn a_bad_address_is_refused_when_it_is_added() {
    let error = alone(&["context", "add", "x", "--server", "ftp://a"]).fails(2);
    assert!(error.contains("expected http://"), "{error}");
    let error = alone(&["context", "add", "x", "--server", "https://a", "--ca", "nowhere.pem"]).fails(2);
    assert!(error.contains("cannot read the CA nowhere.pem"), "{error}");
}
