use std::process::Stdio;

use crate::support::{Server, wait};

#[test]
fn a_request_gets_what_the_worker_writes() {
    let server = Server::start();
    let mut command =
        server.command(&["work", "sums", "--result", "--", "sh", "-c", "read x; echo \"answer to $x\""]);
    let mut worker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(server.ok(&["request", "sums", "6*7", "--wait", "20s"]), "answer to 6*7\n");
    worker.kill().unwrap();
    wait(&mut worker);
    assert_eq!(server.count("sums", "done"), 1);
}

#[test]
fn results_are_given_waited_for_and_shown() {
    let server = Server::start();
    let id = server.one(&["send", "q", "x", "--keep-result", "1m"])["id"].as_str().unwrap().to_owned();
    let receipt = server.one(&["receive", "q"])["receipt"].as_str().unwrap().to_owned();
    server.ok(&["extend", &receipt, "--progress", "40", "--note", "two of five"]);
    let pending = server.run(&["message", "result", &id]).fails(1);
    assert!(pending.contains("40% done: two of five"), "{pending}");
    let file = server.path("result.bin");
    std::fs::write(&file, [255, 0]).unwrap();
    server.ok(&["ack", &receipt, "--result", &format!("@{}", file.display()), "--result-type", "image/x"]);
    let result = server.one(&["message", "result", &id, "--wait", "1s"]);
    assert_eq!(
        (&result["result_base64"], &result["result_content_type"]),
        (&"/wA=".into(), &"image/x".into())
    );
    assert!(server.ok(&["message", "show", &id]).contains("kept until"));
    let dead = server.one(&["send", "q", "x"])["id"].as_str().unwrap().to_owned();
    let receipt = server.one(&["receive", "q"])["receipt"].as_str().unwrap().to_owned();
    server.ok(&["reject", &receipt]);
    assert!(server.run(&["message", "result", &dead]).fails(1).contains("dead letter: rejected"));
}

#[test]
fn the_next_command_finds_the_checkpoint() {
    let server = Server::start();
    server.ok(&["send", "q", "x", "--backoff", "none"]);
    let program = env!("CARGO_BIN_EXE_sluice");
    let script = format!(
        "if [ -n \"$SLUICE_CHECKPOINT_FILE\" ]; then cat $SLUICE_CHECKPOINT_FILE; \
         echo \"$SLUICE_CHECKPOINT_FILE\" | grep -q \"$SLUICE_RECEIPT\" && echo ' and the receipt for all to see'; true; \
         else {program} extend --checkpoint 'row 2' $SLUICE_RECEIPT >&2; exit 1; fi"
    );
    let done = server.run(&["work", "q", "--until-empty", "--", "sh", "-c", &script]);
    assert_eq!(done.out, "row 2");
    let shown = server.ok(&["queue", "set", "q", "--retain-done", "1h", "--retain-done-count", "5"]);
    assert!(shown.contains("retain done count"), "{shown}");
}
