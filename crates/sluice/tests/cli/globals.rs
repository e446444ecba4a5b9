//! Options of the server before a verb.

use crate::support::{Server, alone};

#[test]
fn options_of_the_server_may_stand_before_the_verb() {
    let server = Server::start();
    assert!(alone(&["--server", &server.url, "-n", "default", "send", "q", "x"]).ok().len() > 10);
    assert_eq!(alone(&["--server", &server.url, "receive", "q", "--ack"]).ok(), "x\n");
    assert!(alone(&["queue", "--server", &server.url, "list"]).ok().contains("q "));
    assert!(alone(&["--server", "u", "serve"]).fails(2).contains("unexpected argument '--server'"));
}
