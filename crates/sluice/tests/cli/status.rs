//! `sluice status`.

use crate::support::{Server, alone};

#[test]
fn one_screen_tells_how_the_server_is() {
    let server = Server::start();
    server.ok(&["send", "emails", "x"]);
    server.ok(&["send", "emails", "y", "--hold"]);
    let receipt = server.one(&["receive", "emails"])["receipt"].as_str().unwrap().to_owned();
    server.ok(&["reject", &receipt]);
    server.ok(&["queue", "pause", "emails"]);
    let shown = server.ok(&["status"]);
    for part in [
        &server.url[..],
        "up for",
        env!("CARGO_PKG_VERSION"),
        "durability    always",
        "free",
        "default: 1 queue",
        "0 ready, 0 delayed, 0 blocked, 0 leased, 1 held, 1 dead",
        "dead letters in emails: sluice dead list QUEUE",
        "held messages in emails",
        "deliveries are paused in emails",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.lines().count() < 24, "one screen: {shown}");
    let json = server.one(&["status"]);
    assert_eq!((&json["counts"]["held"], json["problems"].as_array().unwrap().len()), (&1.into(), 3));
    assert!(alone(&["status", "--server", "http://127.0.0.1:1"]).fails(7).contains("cannot connect"));
    let memory = Server::with(&["--memory"]).ok(&["status"]);
    assert!(memory.contains("problems      none"), "{memory}");
}
