use crate::support::Server;

fn receipt(server: &Server) -> String {
    server.one(&["receive", "q"])["receipt"].as_str().unwrap().to_owned()
}

#[test]
fn each_outcome_has_a_verb() {
    let server = Server::start();
    server.feed(&["send", "q", "--lines"], b"1\n2\n3\n4\n").ok();
    let [ack, nack, reject, release] = [0; 4].map(|_| receipt(&server));
    assert_eq!(server.ok(&["ack", &ack]), format!("acked {ack}\n"));
    assert_eq!(server.ok(&["ack", &ack]), format!("settled before: {ack}\n"));
    server.ok(&["nack", &nack, "--error", "not today", "--delay", "1h"]);
    server.ok(&["reject", &reject, "--error", "never"]);
    server.ok(&["extend", &release, "--lease", "5m"]);
    server.ok(&["release", &release]);
    let queue = server.one(&["queue", "show", "q"]);
    let counts = &queue["counts"];
    assert_eq!((&counts["delayed"], &counts["dead"], &counts["ready"]), (&1.into(), &1.into(), &1.into()));
    let again = server.one(&["receive", "q"]);
    assert_eq!((&again["attempt"], &again["deliveries"]), (&1.into(), &2.into()), "a release does not count");
}

#[test]
fn receipts_come_from_stdin_and_fail_one_by_one() {
    let server = Server::start();
    server.feed(&["send", "q", "--lines"], b"1\n2\n").ok();
    let (a, b) = (receipt(&server), receipt(&server));
    server.ok(&["nack", &a]);
    let input = format!("{a}\n{b}\nrubbish\n");
    let done = server.feed(&["ack", "-"], input.as_bytes());
    assert!(done.out.contains(&format!("acked {b}")), "{done:?}");
    assert!(done.err.contains("is not a receipt"), "{done:?}");
    assert!(done.code == Some(4) || done.code == Some(2), "{done:?}");
    let results = server.feed(&["ack", "-", "--json"], b"rubbish").out;
    let line: serde_json::Value = serde_json::from_str(results.trim()).unwrap();
    assert_eq!((&line["ok"], &line["error"]["code"]), (&false.into(), &"invalid_receipt".into()));
}

#[test]
fn a_late_receipt_is_refused() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let late = server.one(&["receive", "q", "--lease", "1s"])["receipt"].as_str().unwrap().to_owned();
    let holder = server.one(&["receive", "q", "--wait", "20s"])["receipt"].as_str().unwrap().to_owned();
    for verb in ["ack", "nack", "release", "reject", "extend"] {
        let error = server.run(&[verb, &late]).fails(4);
        assert!(error.contains("the lease behind receipt"), "{verb}: {error}");
    }
    server.ok(&["ack", &holder]);
}
