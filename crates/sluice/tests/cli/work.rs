use std::process::{Child, Stdio};
use std::time::Instant;

use crate::support::{Done, PATIENCE, Server, command, signal_to, until, until_said, wait};

/// What a worker says to the first signal.
const HEARD: &str = "finishing the running commands; a second signal ends them";

/// Starts a worker with its output kept.
fn start(server: &Server, args: &[&str]) -> Child {
    let mut command = server.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn dead_error(server: &Server) -> String {
    let dead = server.json(&["dead", "list", "q"]);
    dead[0]["history"].as_array().unwrap().last().unwrap()["error"].as_str().unwrap().to_owned()
}

#[test]
fn the_command_gets_payload_and_fields_and_its_output_passes() {
    let server = Server::start();
    server.ok(&["send", "q", "hello", "-p", "3", "-H", "Trace-Id=t1", "--content-type", "text/plain"]);
    let script = "cat; echo; echo $SLUICE_QUEUE $SLUICE_ATTEMPT/$SLUICE_MAX_ATTEMPTS $SLUICE_PRIORITY \
                  $SLUICE_HEADER_TRACE_ID $SLUICE_CONTENT_TYPE ${#SLUICE_RECEIPT} ${#SLUICE_MESSAGE_ID} $SLUICE_NAMESPACE";
    let done = server.run(&["work", "q", "--until-empty", "--", "sh", "-c", script]);
    assert_eq!(done.out, "hello\nq 1/5 3 t1 text/plain 45 20 default\n");
    assert!(done.err.contains("1 message acked"), "{}", done.err);
    assert_eq!(server.one(&["queue", "show", "q"])["totals"]["acked"], 1);
}

#[test]
fn the_command_reaches_the_server_of_its_worker_as_the_same_caller() {
    let server = Server::with(&["--memory", "--tls", "auto"]);
    server.ok(&["send", "q", "x"]);
    let of = |name: &str| server.ready["credentials"][name].as_str().unwrap().to_owned();
    let (ca, cert, key) = (of("ca"), of("cert"), of("key"));
    let flags = ["--server", &server.url, "--ca", &ca, "--cert", &cert, "--cert-key", &key];
    let script = format!("{} extend $SLUICE_RECEIPT --lease 1m && {0} whoami", env!("CARGO_BIN_EXE_sluice"));
    let args = [&["work", "q", "--until-empty"], &flags[..], &["--", "sh", "-c", &script]].concat();
    let done = Done::of(command(server.home.path(), &args).output().unwrap());
    assert!(done.out.contains("admin") && done.err.contains("1 message acked"), "{done:?}");
}

#[test]
fn the_command_does_not_show_the_server_of_a_context_the_token_for_another() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    server.ok(&["context", "add", "here", "--server", &server.url]);
    let script = "echo [$SLUICE_TOKEN] [$SLUICE_TOKEN_FILE] $SLUICE_SERVER";
    let args = ["work", "q", "--until-empty", "--context", "here", "--", "sh", "-c", script];
    let mut work = command(server.home.path(), &args);
    let done = Done::of(work.env("SLUICE_TOKEN", "t").env("SLUICE_TOKEN_FILE", "f").output().unwrap());
    assert_eq!(done.out, format!("[] [] {}\n", server.url), "{done:?}");
}

#[test]
fn the_exit_code_decides() {
    let server = Server::start();
    server.ok(&["queue", "set", "q", "--create", "--backoff", "none", "--max-attempts", "2"]);
    server.feed(&["send", "q", "--lines"], b"0\n65\n7\nsignal\n").ok();
    let script = "read x; echo said $x >&2; if [ $x = signal ]; then kill -9 $$; fi; exit $x";
    let done = server.run(&["work", "q", "--until-empty", "--", "sh", "-c", script]);
    assert!(done.err.contains("1 message acked, 4 nacked, 1 rejected"), "{}", done.err);
    let dead = server.json(&["dead", "list", "q"]);
    let errors: Vec<String> = dead
        .iter()
        .map(|m| {
            format!(
                "{} {}",
                m["reason"].as_str().unwrap(),
                m["history"].as_array().unwrap().last().unwrap()["error"].as_str().unwrap()
            )
        })
        .collect();
    for expected in [
        "rejected exit code 65: said 65",
        "max_attempts exit code 7: said 7",
        "max_attempts killed by signal 9: said signal",
    ] {
        assert!(errors.iter().any(|e| e == expected), "{expected}: {errors:?}");
    }
    server.ok(&["send", "q", "9"]);
    server.ok(&["work", "q", "--until-empty", "--reject-code", "9", "--", "sh", "-c", "read x; exit $x"]);
    assert!(server.json(&["dead", "list", "q"]).iter().any(|m| m["history"][0]["error"] == "exit code 9"));
}

#[test]
fn several_run_at_once_and_each_message_runs_once() {
    let server = Server::start();
    let lines: String = (0..60).map(|n| format!("{n}\n")).collect();
    server.feed(&["send", "q", "--lines", "--quiet"], lines.as_bytes()).ok();
    // None goes on before 12 have begun.
    let script = "read -r n; touch begun-$n
        for look in $(seq 200); do
            [ $(ls | grep -c begun-) -lt 12 ] || exec echo $n
            sleep 0.05
        done";
    let out = server.ok(&["work", "q", "-c", "12", "--until-empty", "--", "sh", "-c", script]);
    let mut seen: Vec<u32> = out.lines().map(|l| l.parse().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..60).collect::<Vec<_>>());
}

#[test]
fn a_long_command_keeps_its_lease() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    server.ok(&["work", "q", "--lease", "3s", "--until-empty", "--", "sleep", "5"]);
    let totals = server.one(&["queue", "show", "q"])["totals"].clone();
    assert_eq!(
        (&totals["acked"], &totals["expired"], &totals["delivered"]),
        (&1.into(), &0.into(), &1.into())
    );
}

#[test]
fn a_paused_queue_is_told() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    server.ok(&["queue", "pause", "q"]);
    let done = server.run(&["work", "q", "--until-empty", "--", "true"]);
    let told = "q is paused: it delivers nothing until `sluice queue resume q`";
    assert!(done.code == Some(0) && done.err.contains(told), "{done:?}");
}

/// Runs a worker until its command has begun, changes something with its message, and returns the message's
/// id and what the worker tells after that.
fn told_after(transport: &str, change: impl Fn(&Server, &str)) -> (String, String) {
    let server = Server::start();
    let id = server.ok(&["send", "q", "x"]).trim().to_owned();
    let command = ["--", "sh", "-c", "echo begun >&2; sleep 60"];
    let flags = ["work", "q", "--lease", "2s", "--transport", transport, "--until-empty"];
    let mut work = start(&server, &[&flags[..], &command].concat());
    until_said(&mut work, "begun\n");
    change(&server, &id);
    (id, Done::of(work.wait_with_output().unwrap()).err)
}

#[test]
fn a_message_that_is_cancelled_is_told_as_such() {
    for transport in ["session", "http"] {
        let (id, told) = told_after(transport, |server, id| drop(server.ok(&["message", "cancel", id])));
        let expected = format!("{id} was cancelled: ending its command\n0 messages acked, 1 cancelled\n");
        assert_eq!(told, expected, "{transport}");
    }
}

#[test]
fn a_message_that_is_gone_is_not_told_as_somebody_elses() {
    for transport in ["session", "http"] {
        let (id, told) =
            told_after(transport, |server, _| drop(server.ok(&["queue", "delete", "q", "--yes"])));
        let expected = format!(
            "lost the lease of {id}: ending its command, because another worker has the message, or it was settled \
             or deleted\n\
             0 messages acked, 1 not settled because the lease was over\n"
        );
        assert_eq!(told, expected, "{transport}");
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_what_it_started() {
    let server = Server::start();
    server.ok(&["send", "q", "x", "--max-attempts", "1"]);
    let started = Instant::now();
    server.ok(&[
        "work",
        "q",
        "--timeout",
        "500ms",
        "--until-empty",
        "--",
        "sh",
        "-c",
        "echo begun >&2; sleep 60; true",
    ]);
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(dead_error(&server), "timed out after 500ms: begun");
}

#[test]
fn a_command_need_not_read_and_may_leave_children() {
    let server = Server::start();
    let big = vec![b'x'; 900_000];
    server.feed(&["send", "q"], &big).ok();
    server.ok(&["work", "q", "--until-empty", "--", "true"]);
    server.ok(&["send", "q", "x"]);
    let started = Instant::now();
    server.ok(&["work", "q", "--until-empty", "--", "sh", "-c", "sleep 60 >/dev/null & exit 0"]);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert_eq!(server.one(&["queue", "show", "q"])["totals"]["acked"], 2);
}

#[test]
fn a_command_that_does_not_exist_costs_no_attempt() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let error = server.run(&["work", "q", "--", "no-such-command"]).fails(2);
    assert!(error.contains("cannot run no-such-command: No such file"), "{error}");
    let message = &server.json(&["message", "peek", "q"])[0];
    assert_eq!((&message["state"], &message["attempts"]), (&"ready".into(), &0.into()));
}

#[test]
fn the_first_signal_lets_commands_finish() {
    for signal in ["INT", "TERM"] {
        let server = Server::start();
        server.feed(&["send", "q", "--lines"], b"1\n2\n3\n").ok();
        let mut worker = start(&server, &["work", "q", "--", "sh", "-c", "touch begun; sleep 1; cat"]);
        until("the command", || server.path("begun").exists());
        signal_to(&worker, signal);
        assert_eq!(wait(&mut worker).code(), Some(0));
        let done = Done::of(worker.wait_with_output().unwrap());
        assert_eq!(done.out, "1");
        assert!(done.err.contains(HEARD), "{}", done.err);
        let queue = server.one(&["queue", "show", "q"]);
        assert_eq!((&queue["counts"]["ready"], &queue["counts"]["leased"]), (&2.into(), &0.into()));
        assert_eq!(queue["totals"]["acked"], 1);
    }
}

#[test]
fn the_second_signal_ends_commands_and_releases() {
    let server = Server::start();
    server.feed(&["send", "q", "--lines"], b"1\n2\n").ok();
    let script = "trap 'touch trapped; exit 1' TERM; touch begun; sleep 60 & wait";
    let mut worker = start(&server, &["work", "q", "--prefetch", "1", "--", "sh", "-c", script]);
    until("the command", || server.path("begun").exists());
    signal_to(&worker, "TERM");
    until_said(&mut worker, HEARD);
    assert!(worker.try_wait().unwrap().is_none(), "it waits for the command");
    signal_to(&worker, "TERM");
    assert_eq!(wait(&mut worker).code(), Some(0));
    assert!(server.path("trapped").exists(), "the command got the signal");
    let queue = server.one(&["queue", "show", "q"]);
    assert_eq!((&queue["counts"]["ready"], &queue["totals"]["released"]), (&2.into(), &2.into()));
}

#[test]
fn it_goes_on_when_the_server_comes_back() {
    let server = Server::at_one_address();
    server.feed(&["send", "q", "--lines"], b"1\n2\n3\n4\n5\n6\n").ok();
    let worker =
        start(&server, &["work", "q", "--until-empty", "--lease", "10s", "--", "sh", "-c", "sleep 0.3; cat"]);
    until("the first ack", || server.one(&["queue", "show", "q"])["totals"]["acked"] != 0);
    let server = server.kill_and_restart();
    let done = Done::of(worker.wait_with_output().unwrap());
    assert_eq!(done.code, Some(0), "{done:?}");
    until("all to be acked", || server.one(&["queue", "show", "q"])["totals"]["acked"] == 6);
}

#[test]
fn a_name_that_is_not_valid_ends_it() {
    let server = Server::start();
    let error = server.run(&["work", "bad name", "--", "true"]).fails(2);
    assert!(error.contains("\"bad name\" is not valid"), "{error}");
    let error = server.run(&["work", "q"]).fails(2);
    assert!(error.contains("COMMAND"), "{error}");
}

#[test]
fn until_empty_waits_for_a_nack_that_makes_a_message_ready_again() {
    let server = Server::start();
    server.ok(&["queue", "set", "q", "--create", "--backoff", "none", "--max-attempts", "30"]);
    server.ok(&["send", "q", "x"]);
    let script = "exit 1";
    let done = server.run(&["work", "q", "--until-empty", "--", "sh", "-c", script]);
    assert!(done.err.contains("30 nacked"), "{}", done.err);
    assert_eq!((server.count("q", "ready"), server.count("q", "dead")), (0, 1));
}

#[test]
fn what_a_command_leaves_running_does_not_take_its_last_words() {
    let server = Server::start();
    server.ok(&["send", "q", "x", "--max-attempts", "1"]);
    let started = Instant::now();
    let script = "echo 'no such address' >&2; sleep 60 & exit 7";
    let output = server.path("err");
    // A file: the pipe of a test would be held open by what is left running, too.
    let status = server
        .command(&["work", "q", "--until-empty", "--", "sh", "-c", script])
        .stderr(std::fs::File::create(&output).unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert_eq!(dead_error(&server), "exit code 7: no such address");
}

#[test]
fn a_worker_that_is_cut_off_ends_its_command_when_the_lease_is_over() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let script = "trap 'touch trapped; exit 1' TERM; touch begun; sleep 60 & wait";
    let mut worker = start(&server, &["work", "q", "--lease", "2s", "--", "sh", "-c", script]);
    until("the command", || server.path("begun").exists());
    server.signal("STOP");
    until("the command's end", || server.path("trapped").exists());
    // First this, or the worker would take the message again.
    signal_to(&worker, "TERM");
    let mut said = until_said(&mut worker, HEARD);
    server.signal("CONT");
    assert_eq!(wait(&mut worker).code(), Some(0));
    said += &Done::of(worker.wait_with_output().unwrap()).err;
    assert!(said.contains("the lease of"), "{said}");
    assert!(said.contains("ended before it could be extended"), "{said}");
}

#[test]
fn a_worker_that_is_killed_costs_its_message_an_attempt() {
    let server = Server::start();
    server.ok(&["send", "q", "x", "--max-attempts", "1"]);
    let script = "touch begun; sleep 5";
    let mut worker = start(&server, &["work", "q", "--lease", "2s", "--", "sh", "-c", script]);
    until("the command", || server.path("begun").exists());
    signal_to(&worker, "KILL");
    wait(&mut worker);
    until("the dead letter", || server.count("q", "dead") == 1);
}

#[test]
fn a_worker_has_a_name_and_tells_of_a_queue_that_is_not_there() {
    let server = Server::start();
    server.ok(&["send", "emails", "x"]);
    let done = server.run(&["work", "emials", "--until-empty", "--", "true"]);
    assert!(
        done.err.contains("queue emials does not exist yet") && done.err.contains("mean emails?"),
        "{done:?}"
    );
    let script = format!("{} consumer list --json > consumers", env!("CARGO_BIN_EXE_sluice"));
    let done = server.run(&["work", "emails", "--until-empty", "--", "sh", "-c", &script]);
    assert!(done.code == Some(0) && !done.err.contains("does not exist yet"), "{done:?}");
    let consumers = std::fs::read_to_string(server.path("consumers")).unwrap();
    let name =
        serde_json::from_str::<serde_json::Value>(&consumers).unwrap()["name"].as_str().unwrap().to_owned();
    let (machine, process) = name.rsplit_once('-').unwrap();
    assert!(!machine.is_empty() && process.parse::<u32>().is_ok(), "{name}");
}

#[test]
fn a_message_that_its_command_has_acked_beside_the_transaction_is_told_as_that() {
    let server = Server::start();
    server.ok(&["send", "q", "x"]);
    let script = format!(
        "echo x | {sluice} doc put a; {sluice} ack $SLUICE_RECEIPT",
        sluice = env!("CARGO_BIN_EXE_sluice")
    );
    let work = ["work", "q", "--transactional", "--until-empty", "--", "sh", "-c", &script];
    let told = server.run(&work).err;
    assert!(told.contains("the command has settled it itself, so nothing that it staged was done"), "{told}");
    let summary = "0 messages acked, 1 settled by their commands, without what these staged\n";
    assert!(told.ends_with(summary) && !told.contains("nack"), "{told}");
    server.run(&["doc", "get", "a"]).fails(3);
    server.ok(&["send", "q", "x"]);
    let told = server.run(&[&["--json"], &work[..]].concat()).err;
    let events: Vec<serde_json::Value> =
        told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(events.iter().any(|event| event["outcome"] == "settled_by_command"), "{told}");
    let end = events.iter().find(|event| event["event"] == "end").unwrap();
    assert_eq!((&end["acked"], &end["settled_by_command"]), (&0.into(), &1.into()));
}
