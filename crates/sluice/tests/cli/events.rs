use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Done, Server, until};

/// Reads events while messages are sent, until it has what it wants.
fn watch(server: &Server, args: &[&str]) -> Done {
    let mut command = server.command(args);
    let mut watching: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while watching.try_wait().unwrap().is_none() {
        server.ok(&["send", "mail.eu", "x"]);
        server.ok(&["send", "other", "x"]);
    }
    Done::of(watching.wait_with_output().unwrap())
}

#[test]
fn events_are_printed_as_they_happen() {
    let server = Server::start();
    let text = watch(&server, &["events", "--types", "sent,acked", "--match", "mail.*", "--max", "2"]).ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines.iter().all(|line| line.contains("Z  sent       ") && line.ends_with("  mail.eu")),
        "{text}"
    );

    let text = watch(&server, &["events", "--json", "--max", "3"]).ok();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3);
    let since = events[0]["event_id"].as_str().unwrap();
    let again = server.ok(&["events", "--json", "--since", since, "--max", "2"]);
    assert_eq!(again.lines().collect::<Vec<_>>(), text.lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn a_restart_of_the_server_is_told_and_waited_for() {
    let mut server = Server::at_one_address();
    let mut command = server.command(&["events", "--types", "sent"]);
    let mut watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(watching.stdout.take().unwrap());
    let (seen, lines) = mpsc::channel();
    let reading = std::thread::spawn(move || stdout.lines().try_for_each(|line| seen.send(line.unwrap())));
    let shows = |server: &Server, queue: &str, wanted: &str| {
        until(wanted, || {
            server.ok(&["send", queue, "x"]);
            lines.try_iter().any(|line: String| line.contains(wanted))
        });
    };
    shows(&server, "before", "before");
    server = server.kill_and_restart_after(Duration::from_secs(1));
    shows(&server, "after", "gap: events missed, the server was restarted");
    shows(&server, "after", "after");
    watching.kill().unwrap();
    let told = Done::of(watching.wait_with_output().unwrap()).err;
    assert!(told.contains("Retrying until it answers.") && told.contains("answers again"), "{told}");
    drop(lines);
    let _ = reading.join().unwrap();
}

#[test]
fn mistakes_are_told() {
    let server = Server::start();
    let failed = server.run(&["events", "--types", "eaten"]).fails(2);
    assert!(failed.contains("expected one of sent, delayed, due"), "{failed}");
    let failed = server.run(&["events", "none"]).fails(3);
    assert!(failed.contains("\"none\" does not exist"), "{failed}");
    let failed = server.run(&["events", "q", "--match", "a*"]).fails(2);
    assert!(failed.contains("cannot be used with"), "{failed}");
}
