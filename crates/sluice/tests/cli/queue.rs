use crate::support::Server;

#[test]
fn list_show_and_set() {
    let server = Server::start();
    assert!(server.run(&["queue", "list"]).err.contains("no queues in namespace default"));
    server.ok(&["send", "mail", "x"]);
    server.ok(&["send", "sms", "xyz"]);
    let list = server.ok(&["queue", "list"]);
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines[0].starts_with("QUEUE") && lines[1].starts_with("mail") && lines[2].starts_with("sms"),
        "{list}"
    );
    assert_eq!(server.json(&["queue", "list", "s"]).len(), 1);
    let set =
        server.one(&["queue", "set", "mail", "--lease", "5m", "--max-attempts", "3", "--backoff", "none"]);
    assert_eq!(set["settings"]["lease_ms"], 300_000);
    for args in [&["queue", "show", "mail"][..], &["queue", "list", "mail"]] {
        assert_eq!(server.one(args)["settings"].get("description"), None, "there is none");
    }
    let described = server.one(&["queue", "set", "mail", "--description", "letters"]);
    assert_eq!(described["settings"]["description"], "letters");
    let bounds = ["--max-messages", "9", "--overflow", "dead_letter_oldest", "--max-age", "2h"];
    let bounded = server.one(&[&["queue", "set", "mail"], &bounds[..]].concat());
    assert_eq!(bounded["settings"]["max_age_ms"], 7_200_000);
    assert_eq!(set["settings"]["max_attempts"], 3);
    let show = server.ok(&["queue", "show", "mail"]);
    for part in ["lease", "5m", "max attempts", "1 sent", "READY", "dead_letter_oldest", "2h"] {
        assert!(show.contains(part), "{part}: {show}");
    }
}

#[test]
fn more_queues_than_a_page_are_listed() {
    let server = Server::start();
    let client = sluice_client::Client::new(&server.url).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for n in 0..520 {
            client.queue_set(&format!("q{n:04}"), &Default::default(), true).await.unwrap();
        }
    });
    let names: Vec<String> =
        server.json(&["queue", "list"]).iter().map(|q| q["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 520);
    assert!(names.is_sorted());
}

#[test]
fn an_unknown_queue_is_not_made_by_looking_or_setting() {
    let server = Server::start();
    for args in [
        &["queue", "show", "q"][..],
        &["queue", "set", "q", "--lease", "1s"],
        &["queue", "purge", "q", "--yes"],
        &["queue", "delete", "q", "--yes"],
        &["message", "peek", "q"],
    ] {
        let error = server.run(args).fails(3);
        assert!(error.contains("queue \"q\" does not exist"), "{args:?}: {error}");
    }
    assert!(server.run(&["queue", "set", "q"]).fails(2).contains("no setting given"));
    assert!(server.ok(&["queue", "set", "q", "--create", "--lease", "1s"]).starts_with("created q\n"));
    assert!(server.ok(&["queue", "set", "q", "--create", "--lease", "2s"]).starts_with("changed q\n"));
}

#[test]
fn purge_and_delete_need_consent() {
    let server = Server::start();
    server.feed(&["send", "q", "--lines"], b"1\n2\n3\n").ok();
    server.ok(&["receive", "q"]);
    for verb in ["purge", "delete"] {
        assert!(server.run(&["queue", verb, "q"]).fails(2).contains("confirm it with --yes"));
    }
    assert_eq!(server.one(&["queue", "purge", "q", "--yes"])["purged"], 2);
    assert_eq!(server.count("q", "leased"), 1);
    assert_eq!(server.ok(&["queue", "delete", "q", "--yes"]), "deleted q with 1 message\n");
    server.run(&["queue", "show", "q"]).fails(3);
}

#[test]
fn queues_are_paused_and_closed() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    assert_eq!(server.ok(&["queue", "pause", "q"]), "paused q: 1 ready\n");
    assert!(server.ok(&["queue", "list"]).contains("q (paused)"));
    assert!(server.ok(&["queue", "show", "q"]).contains("paused"));
    server.ok(&["queue", "resume", "q"]);
    assert_eq!(server.ok(&["queue", "close", "q"]), "closed q\n");
    assert!(server.run(&["send", "q", "y"]).fails(4).contains("is closed"));
    assert_eq!(server.ok(&["queue", "open", "q"]), "opened q\n");
    assert!(server.run(&["queue", "pause", "none"]).fails(3).contains("does not exist"));
    let set = server.one(&["queue", "set", "later", "--create", "--paused", "--dead-letter-queue", "buried"]);
    assert_eq!(set["settings"]["paused"], true);
    assert_eq!(set["settings"]["dead_letter_queue"], "buried");
}

#[test]
fn new_queues_begin_with_the_settings_of_their_pattern() {
    let server = Server::start();
    let set = server.ok(&[
        "queue",
        "defaults",
        "set",
        "mail.*",
        "--lease",
        "5m",
        "--dead-letter-queue",
        "mail.dead",
    ]);
    assert_eq!(set, "created mail.*: dead_letter_queue=mail.dead lease_ms=300000\n");
    server.ok(&["send", "mail.eu", "x"]);
    let shown = server.one(&["queue", "show", "mail.eu"]);
    assert_eq!(shown["settings"]["lease_ms"], 300_000);
    assert_eq!(server.json(&["queue", "defaults", "list"])[0]["pattern"], "mail.*");
    assert_eq!(server.ok(&["queue", "defaults", "delete", "mail.*"]), "deleted mail.*\n");
    assert!(server.run(&["queue", "defaults", "delete", "mail.*"]).fails(3).contains("no queue defaults"));
    assert!(server.run(&["queue", "defaults", "set", "bad!"]).fails(2).contains("is not valid"));
}

#[test]
fn dead_letters_are_redriven_at_a_rate() {
    let server = Server::start();
    for n in 0..3 {
        server.ok(&["send", "q", &n.to_string()]);
        let receipt = server.one(&["receive", "q"])["receipt"].as_str().unwrap().to_owned();
        server.ok(&["reject", &receipt]);
    }
    let begun = std::time::Instant::now();
    assert_eq!(server.ok(&["dead", "redrive", "q", "--all", "--per-second", "5"]), "redriven 3 messages\n");
    assert!(begun.elapsed() >= std::time::Duration::from_millis(400));
    assert_eq!(server.count("q", "ready"), 3);
    assert_eq!(
        server.ok(&["dead", "redrive", "q", "--end"]),
        "ended the redrive; 0 messages left as dead letters\n"
    );
}

#[test]
fn a_fair_key_has_one_weight() {
    let server = Server::start();
    let twice = ["--fair-weight", "a=1", "--fair-weight", "b=1", "--fair-weight", "a=2"];
    for verb in [&["queue", "set", "q", "--create"][..], &["queue", "defaults", "set", "q*"]] {
        let error = server.run(&[verb, &twice].concat()).fails(2);
        assert!(error.contains("--fair-weight: the key \"a\" is given twice"), "{error}");
    }
    server.ok(&["queue", "set", "q", "--create", "--fair-weight", "a=1", "--fair-weight", "b=2"]);
    assert_eq!(server.one(&["queue", "show", "q"])["settings"]["fair_weights"]["b"], 2);
}
