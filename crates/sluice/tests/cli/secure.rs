//! TLS, identities and rights, as a stranger meets them.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Done, Server, alone, command, until};

/// A command in a folder, without a server.
fn at(home: &Path, args: &[&str]) -> Done {
    Done::of(command(home, args).output().unwrap())
}

/// A server with certificates that `sluice cert` has made, for callers of its CA.
fn with_files(flags: &[&str]) -> (tempfile::TempDir, Server) {
    let certs = tempfile::tempdir().unwrap();
    at(certs.path(), &["cert", "ca"]).ok();
    at(certs.path(), &["cert", "server", "localhost", "127.0.0.1"]).ok();
    let path = |name: &str| certs.path().join("sluice-tls").join(name).display().to_string();
    let (cert, key, ca) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let files = ["--memory", "--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca];
    let server = Server::with(&[&files[..], flags].concat());
    (certs, server)
}

#[test]
fn tls_auto_makes_what_is_needed_and_keeps_it() {
    let server = Server::with(&["--tls", "auto"]);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    server.ok(&["send", "emails", "hello"]);
    assert_eq!(server.ok(&["receive", "emails", "--ack"]), "hello\n");
    let who = server.one(&["whoami"]);
    assert_eq!((&who["name"], &who["proof"]), (&"admin".into(), &"certificate".into()));
    let folder = server.path("sluice-data-tls");
    for name in ["ca.key", "server.key", "admin.key"] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
    }
    let before = std::fs::read(folder.join("server.pem")).unwrap();
    server.ok(&["token", "create", "ops", "--scope", "*=admin"]);
    let server = server.kill_and_restart();
    assert_eq!(
        std::fs::read(folder_of(&server).join("server.pem")).unwrap(),
        before,
        "what is there is kept"
    );
    assert!(server.ok(&["token", "list"]).contains("ops"));
}

#[test]
fn a_ca_that_was_lost_takes_its_certificates_along() {
    let server = Server::with(&["--tls", "auto"]);
    let server_pem = folder_of(&server).join("server.pem");
    let before = std::fs::read(&server_pem).unwrap();
    for name in ["ca.pem", "ca.key"] {
        std::fs::remove_file(folder_of(&server).join(name)).unwrap();
    }
    let server = server.kill_and_restart();
    assert_ne!(std::fs::read(&server_pem).unwrap(), before, "no client could trust it");
    server.ok(&["send", "emails", "hello"]);
    let names = |path: &std::path::Path| {
        std::fs::read_dir(path)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>()
    };
    assert!(names(&folder_of(&server)).iter().all(|name| !name.ends_with(".part")));
}

fn folder_of(server: &Server) -> std::path::PathBuf {
    server.path("sluice-data-tls")
}

/// The names in a certificate.
fn names(server: &Server, file: &str) -> Vec<String> {
    let path = folder_of(server).join(file);
    let shown = server.one(&["cert", "show", &path.display().to_string()]);
    shown["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_certificate_names_what_other_machines_call_the_server() {
    let named = ["--tls-name", "queue.example.org,192.0.2.7", "--tls-name=mq.example.org"];
    let server = Server::with(&[&["--memory", "--tls", "auto", "--listen=0.0.0.0:0"][..], &named].concat());
    let names = names(&server, "server.pem");
    for name in ["localhost", "127.0.0.1", "queue.example.org", "192.0.2.7", "mq.example.org"] {
        assert!(names.contains(&name.to_owned()), "{name} is missing in {names:?}");
    }
    assert_eq!(server.ready["names"], serde_json::json!(names));
    // Within this machine any address of 127/8 reaches it, and the certificate has one of them.
    let other = server.url.replace("localhost", "127.0.0.2");
    for args in [&["queue", "list"][..], &["work", "q", "--until-empty", "--", "true"]] {
        let error = server.run(&[args, &[][..]].concat()).code;
        assert_eq!(error, Some(0), "by its own name: {args:?}");
        let with = [&args[..2], &["--server", &other, "--retry-for", "0s"], &args[2..]].concat();
        let error = server.run(&with).fails(2);
        assert!(error.contains("is not for 127.0.0.2: it is for localhost, 127.0.0.1"), "{error}");
        assert!(error.contains("--tls-name 127.0.0.2") && !error.contains("--ca FILE"), "{error}");
    }
}

#[test]
fn a_certificate_is_made_once_however_its_names_are_spelt() {
    let named =
        ["--tls", "auto", "--listen", "[0:0:0:0:0:0:0:1]:0", "--tls-name", "2001:DB8:0::7,Mq.Example.ORG"];
    let server = Server::with(&named);
    let before = std::fs::read(folder_of(&server).join("server.pem")).unwrap();
    let server = server.kill_and_restart();
    assert!(std::fs::read(folder_of(&server).join("server.pem")).unwrap() == before, "it was made anew");
    let names = names(&server, "server.pem");
    for name in ["::1", "2001:db8::7", "mq.example.org"] {
        assert_eq!(names.iter().filter(|found| *found == name).count(), 1, "{name}: {names:?}");
    }
}

#[test]
fn what_a_renewal_has_left_half_done_is_made_anew() {
    let server = Server::with(&["--tls", "auto"]);
    let folder = folder_of(&server);
    for (pair, other) in [("server", "admin"), ("admin", "server")] {
        // The certificate has its name, the key of the one before has its own still.
        std::fs::copy(folder.join(format!("{other}.key")), folder.join(format!("{pair}.key"))).unwrap();
    }
    server.kill_and_restart().ok(&["send", "emails", "hello"]);
}

#[test]
fn a_ca_key_that_was_taken_off_the_machine_is_needed_for_new_certificates_only() {
    let server = Server::with(&["--tls", "auto"]);
    let key = folder_of(&server).join("ca.key");
    let taken_off = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    // Another name is to come in: as long as it cannot, the certificate does for those that it has.
    let server = server.then_with(&["--tls-name", "mq.example.org"]).kill_and_restart();
    server.ok(&["send", "emails", "hello"]);
    assert!(!names(&server, "server.pem").contains(&"mq.example.org".to_owned()));
    std::fs::write(folder_of(&server).join("ca.key"), &taken_off).unwrap();
    let server = server.kill_and_restart();
    assert!(names(&server, "server.pem").contains(&"mq.example.org".to_owned()));
    // The administrator's pair may be elsewhere, too.
    let folder = folder_of(&server);
    for name in ["ca.key", "admin.pem", "admin.key"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let server = server.kill_and_restart();
    assert!(!folder_of(&server).join("admin.pem").exists());
    // Without the server's there is nothing to start with.
    for name in ["server.pem", "server.key"] {
        std::fs::remove_file(folder_of(&server).join(name)).unwrap();
    }
    let error = at(server.home.path(), &["serve", "--tls", "auto", "--listen=127.0.0.1:0"]);
    assert!(error.err.contains("ca.key") && error.err.contains("move its whole folder away"), "{error:?}");
}

#[test]
fn a_certificate_that_somebody_else_made_is_kept() {
    let server = Server::with(&["--tls", "auto"]);
    let dir = folder_of(&server).display().to_string();
    let mine = ["cert", "server", "queue.example.org", "127.0.0.1", "--dir", &dir, "--overwrite"];
    server.ok(&mine);
    let before = std::fs::read(folder_of(&server).join("server.pem")).unwrap();
    let server = server.kill_and_restart();
    assert_eq!(std::fs::read(folder_of(&server).join("server.pem")).unwrap(), before);
    assert_eq!(server.ready["names"], serde_json::json!(["queue.example.org", "127.0.0.1"]));
    server.ok(&["send", "q", "x"]);
    // What cannot be read is not replaced either.
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("sluice-data-tls")).unwrap();
    let key = home.path().join("sluice-data-tls/server.key");
    std::fs::write(&key, "mine").unwrap();
    let error = at(home.path(), &["serve", "--memory", "--tls", "auto", "--listen=127.0.0.1:0"]).fails(2);
    assert!(error.contains("server.key") && error.contains("not made by --tls auto"), "{error}");
    assert_eq!(std::fs::read(&key).unwrap(), b"mine");
}

#[test]
fn a_scope_that_would_allow_nothing_is_refused() {
    let server = Server::start();
    let error = server.run(&["token", "create", "a", "--scope", "$sys=rw"]).fails(2);
    assert!(error.contains("a scope in namespace $sys would allow nothing"), "{error}");
    assert!(server.run(&["cert", "client", "a", "--scope", "$sys=r"]).fails(2).contains("$sys"));
}

#[test]
fn a_client_without_the_ca_is_told_what_is_missing() {
    let server = Server::with(&["--memory", "--tls", "auto"]);
    let error = at(server.home.path(), &["queue", "list", "--server", &server.url]).fails(2);
    assert!(error.contains("cannot agree on TLS") && error.contains("--ca FILE"), "{error}");
    let clear = server.url.replace("https://", "http://");
    for args in [&["queue", "list"][..], &["backup", "x"], &["work", "q", "--until-empty"]] {
        let command = if args[0] == "work" { &["--", "true"][..] } else { &[] };
        let error = at(server.home.path(), &[args, &["--server", &clear], command].concat()).fails(2);
        assert!(error.contains("this port speaks TLS") && error.contains(&server.url), "{error}");
    }
    let ca = server.ready["credentials"]["ca"].as_str().unwrap();
    let error = at(server.home.path(), &["queue", "list", "--server", &server.url, "--ca", ca]).fails(9);
    assert!(error.contains("requires authentication") && error.contains("--token-file"), "{error}");
}

#[test]
fn a_token_says_who_somebody_is_from_its_making_to_its_end() {
    let server = Server::with(&["--memory", "--tls", "auto"]);
    let ca = server.ready["credentials"]["ca"].as_str().unwrap().to_owned();
    let token = server.ok(&["token", "create", "billing", "--scope", "default=rw"]);
    std::fs::write(server.path("billing.token"), &token).unwrap();
    let billing = |args: &[&str]| {
        let with = ["--server", &server.url, "--ca", &ca, "--token-file", "billing.token"];
        at(server.home.path(), &[args, &with].concat())
    };
    billing(&["send", "emails", "hello"]).ok();
    assert_eq!(billing(&["receive", "emails", "--ack"]).ok(), "hello\n");
    let error = billing(&["queue", "delete", "emails", "--yes"]);
    assert_eq!(error.code, Some(9), "{error:?}");
    assert!(error.err.contains("\"billing\" may not operate in queue \"emails\""), "{}", error.err);
    let listed = server.one(&["token", "list"]);
    assert!(listed["last_used_at_ms"].as_u64().is_some() && listed.get("token").is_none(), "{listed}");
    server.ok(&["token", "revoke", "billing"]);
    assert!(billing(&["send", "emails", "x"]).fails(9).contains("was revoked"));
    let audit = server.ok(&["audit"]);
    let acts: Vec<&str> = audit.lines().map(|line| line.split_once(" at 127.0.0.1  ").unwrap().1).collect();
    assert_eq!(
        acts,
        [
            "token_create /v1/tokens/billing  201",
            "queue_delete /v1/queues/emails  403",
            "token_revoke /v1/tokens/billing  200"
        ]
    );
}

#[test]
fn certificates_of_a_ca_and_a_policy_decide() {
    let policy = tempfile::tempdir().unwrap();
    let file = policy.path().join("policy.toml");
    let rules = "[[rule]]\nname = 'look'\nidentities = ['watch*']\nrole = 'observer'\nnamespaces = ['*']\n";
    std::fs::write(&file, rules).unwrap();
    let (certs, server) = with_files(&["--access-policy", &file.display().to_string()]);
    for args in [&["cert", "client", "watcher"][..], &["cert", "client", "billing", "--scope", "default=w"]] {
        at(certs.path(), args).ok();
    }
    let by = |name: &str, args: &[&str]| {
        let path = |file: String| certs.path().join("sluice-tls").join(file).display().to_string();
        let (ca, cert, key) =
            (path("ca.pem".into()), path(format!("{name}.pem")), path(format!("{name}.key")));
        let with = ["--server", &server.url, "--ca", &ca, "--cert", &cert, "--cert-key", &key];
        at(server.home.path(), &[args, &with].concat())
    };
    by("billing", &["send", "q", "x"]).ok();
    by("watcher", &["queue", "show", "q"]).ok();
    assert!(by("watcher", &["send", "q", "x"]).fails(9).contains("rule \"look\" (observer)"));
    assert!(by("billing", &["queue", "list"]).fails(9).contains("sluice://ns/default?perm=w"));
    let shown = at(certs.path(), &["cert", "show", "sluice-tls/billing.pem", "--json"]).ok();
    let serial =
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()["serial"].as_str().unwrap().to_owned();
    std::fs::write(&file, format!("{rules}\n[revoked]\nserials = ['{serial}']\n")).unwrap();
    let written = Instant::now();
    until("the revocation", || by("billing", &["send", "q", "x"]).code == Some(9));
    assert!(written.elapsed() < Duration::from_secs(5), "it was seen after {:?}", written.elapsed());
    assert!(by("billing", &["send", "q", "x"]).err.contains("is revoked"));
    by("watcher", &["queue", "show", "q"]).ok();
    // A new certificate of the server, while it runs.
    let pem = certs.path().join("sluice-tls/server.pem");
    let before = std::fs::read(&pem).unwrap();
    at(certs.path(), &["cert", "server", "localhost", "127.0.0.1", "--overwrite"]).ok();
    assert_ne!(std::fs::read(&pem).unwrap(), before);
    server.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    by("watcher", &["queue", "show", "q"]).ok();
}

#[test]
fn what_cannot_be_used_stops_the_start_with_its_cause() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("policy.toml"), "[[rule]]\nname = 'a'\nrole = 'boss'\n").unwrap();
    std::fs::write(home.path().join("bad.pem"), "rubbish").unwrap();
    for (flags, told) in [
        (&["--access-policy", "policy.toml"][..], "line 3: rule 1: role: \"boss\" is not a role"),
        (&["--access-policy", "nowhere.toml"], "cannot read the policy file nowhere.toml"),
        (&["--tls-cert", "bad.pem", "--tls-key", "bad.pem"], "bad.pem holds no certificate"),
        (&["--tls-cert", "nowhere.pem", "--tls-key", "bad.pem"], "cannot read the certificate nowhere.pem"),
        (&["--tls-cert", "bad.pem"], "only one of tls_cert and tls_key is set"),
        (&["--tls-client-ca", "bad.pem"], "tls_client_ca is set without"),
        (&["--tls-name", "queue.example.org"], "tls_name is set, but tls is files"),
        (&["--tls", "auto", "--tls-name", "a b"], "--tls-name = \"a b\": \"a b\" is neither"),
        (&["--tls", "auto", "--tls-cert", "bad.pem"], "tls_cert is set, but tls is auto"),
    ] {
        let done = at(home.path(), &[&["serve", "--memory", "--listen", "127.0.0.1:0"][..], flags].concat());
        assert!(done.fails(2).contains(told), "{flags:?}: expected {told}");
    }
    assert!(!home.path().join("sluice-data-tls").exists());
}

#[test]
fn others_may_reach_it_only_when_it_is_safe() {
    let certs = tempfile::tempdir().unwrap();
    at(certs.path(), &["cert", "ca"]).ok();
    at(certs.path(), &["cert", "server", "localhost"]).ok();
    let tls = ["--tls-cert", "sluice-tls/server.pem", "--tls-key", "sluice-tls/server.key"];
    let open = [&["serve", "--memory", "--listen", "0.0.0.0:0"][..], &tls].concat();
    let error = at(certs.path(), &open).fails(2);
    assert!(error.contains("callers need not authenticate") && error.contains("--tls auto"), "{error}");
    let server = Server::with(&["--memory", "--tls", "auto", "--listen=0.0.0.0:0"]);
    assert!(server.url.starts_with("https://localhost:"), "{}", server.url);
    server.ok(&["send", "q", "x"]);
}

#[test]
fn a_context_keeps_who_somebody_is() {
    let server = Server::with(&["--memory", "--tls", "auto"]);
    let made = |name: &str| server.ready["credentials"][name].as_str().unwrap().to_owned();
    let (ca, cert, key) = (made("ca"), made("cert"), made("key"));
    let home = server.home.path();
    at(
        home,
        &[
            "context",
            "add",
            "prod",
            "--server",
            &server.url,
            "--ca",
            &ca,
            "--cert",
            &cert,
            "--cert-key",
            &key,
        ],
    )
    .ok();
    assert!(at(home, &["whoami"]).ok().contains("admin"));
    let error = at(home, &["context", "add", "x", "--server", &server.url, "--cert", &cert]).fails(2);
    assert!(error.contains("--cert-key"), "{error}");
}

#[test]
fn certificates_are_made_and_never_replaced_by_accident() {
    let home = tempfile::tempdir().unwrap();
    let error = at(home.path(), &["cert", "client", "a"]).fails(2);
    assert!(error.contains("sluice cert ca"), "{error}");
    at(home.path(), &["cert", "ca"]).ok();
    assert!(at(home.path(), &["cert", "ca"]).fails(4).contains("there is a CA"));
    at(home.path(), &["cert", "client", "a", "--scope", "shop=rw", "--days", "7"]).ok();
    assert!(at(home.path(), &["cert", "client", "a"]).fails(4).contains("--overwrite replaces it"));
    at(home.path(), &["cert", "client", "a", "--overwrite"]).ok();
    for (args, told) in [
        (&["cert", "client", "../a"][..], "is not a name"),
        (&["cert", "client", "b", "--scope", "shop"], "expected NAMESPACE=PERM"),
        (&["cert", "client", "b", "--scope", "shop=x"], "is not a permission"),
        (&["cert", "server", "a b"], "neither a DNS name nor an address"),
    ] {
        assert!(at(home.path(), args).fails(2).contains(told), "{args:?}");
    }
    assert!(alone(&["cert", "show", "/dev/null"]).fails(2).contains("no PEM of a certificate"));
}
