use serde_json::json;

use crate::support::Server;

#[test]
fn a_document_is_written_under_conditions_and_read() {
    let server = Server::start();
    std::fs::write(server.path("order.json"), b"{\"state\":\"new\"}").unwrap();
    let put = ["doc", "put", "orders/17"];
    let args = ["order.json", "--attribute", "by=ann", "--history", "2", "--if-absent"];
    let told = server.ok(&[&put[..], &args].concat());
    assert!(told.starts_with("created, version 1, etag "), "{told}");
    let told = server.run(&[&put[..], &args].concat()).fails(4);
    assert!(told.contains("is there with version 1"), "{told}");
    assert_eq!(server.ok(&["doc", "get", "orders/17"]), "{\"state\":\"new\"}");
    let first = server.one(&["doc", "get", "orders/17"]);
    assert_eq!(first["content_type"], "application/json");
    assert_eq!(first["attributes"], json!({"by": "ann"}));
    let etag = first["etag"].as_str().unwrap();
    let told = server.feed(&[&put[..], &["--if-etag", etag]].concat(), b"\xff\0").ok();
    assert!(told.starts_with("changed, version 2, etag "), "{told}");
    let shown = server.ok(&["doc", "get", "orders/17", "--show"]);
    assert!(shown.contains("size     2 B\n") && shown.contains("is binary"), "{shown}");
    assert_eq!(server.one(&["doc", "get", "orders/17"])["content_base64"], "/wA=");
    assert_eq!(server.ok(&["doc", "get", "orders/17", "--version", "1"]), "{\"state\":\"new\"}");
    let versions = server.json(&["doc", "history", "orders/17"]);
    assert_eq!((versions.len(), &versions[1]["etag"]), (2, &first["etag"]));
    server.run(&["doc", "delete", "orders/17", "--if-etag", etag]).fails(4);
    assert_eq!(server.ok(&["doc", "delete", "orders/17", "--if-version", "2"]), "deleted orders/17\n");
    server.run(&["doc", "get", "orders/17"]).fails(3);
}

#[test]
fn documents_are_listed_by_key() {
    let server = Server::start();
    for key in ["b", "a/2", "a/1"] {
        server.feed(&["doc", "put", key, "-", "--ttl", "1h"], b"").ok();
    }
    let keys = |args: &[&str]| -> Vec<String> {
        let documents = server.json(&[&["doc", "list"], args].concat());
        documents.iter().map(|document| document["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&[]), ["a/1", "a/2", "b"]);
    assert_eq!(keys(&["a/"]), ["a/1", "a/2"]);
    assert!(server.ok(&["doc", "list", "b"]).starts_with("KEY  VERSION  SIZE  "));
    let told = server.feed(&["doc", "put", "c"], b"").fails(2);
    assert!(told.contains("stdin is empty"), "{told}");
}

#[test]
fn what_was_edited_is_written_or_kept() {
    let server = Server::start();
    // The tests make the editor of a script, as `$EDITOR FILE`.
    let edit = |script: &str| {
        let mut command = server.command(&["doc", "edit", "flags"]);
        command.env("TMPDIR", server.home.path()).env_remove("VISUAL");
        crate::support::Done::of(command.env("EDITOR", format!("sh -c '{script}' -")).output().unwrap())
    };
    assert!(edit("echo on > $1").ok().starts_with("created, version 1, "));
    assert!(edit("echo off > $1").ok().starts_with("changed, version 2, "));
    let same = edit("touch $1");
    assert!(same.err.contains("nothing was written"), "{same:?}");
    same.ok();
    assert_eq!(server.ok(&["doc", "get", "flags"]), "off\n");
    let drafts = || {
        let names = std::fs::read_dir(server.home.path()).unwrap();
        let paths = names.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some());
        paths.filter(|path| path.extension().unwrap() == "txt").collect::<Vec<_>>()
    };
    assert!(drafts().is_empty(), "{:?}", drafts());
    let failed = edit("exit 3").fails(1);
    assert!(failed.contains("exit status: 3") && drafts().is_empty(), "{failed}");
    let overtaken = format!("echo mine > $1; echo theirs | {} doc put flags", env!("CARGO_BIN_EXE_sluice"));
    let told = edit(&overtaken).fails(4);
    let [draft] = &drafts()[..] else { panic!("{:?}", drafts()) };
    assert!(told.contains(&draft.display().to_string()), "{told}");
    assert_eq!(std::fs::read(draft).unwrap(), b"mine\n");
    assert_eq!(server.ok(&["doc", "get", "flags"]), "theirs\n");
}

#[test]
fn changes_are_printed_as_they_happen() {
    let server = Server::start();
    for key in ["a/1", "a/2", "b"] {
        server.feed(&["doc", "put", key, "-"], b"x").ok();
    }
    let told = server.ok(&["doc", "watch", "a/", "--max", "2"]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.len() == 2 && lines[0].ends_with("Z  version 1          1 B  a/1"), "{told}");
    let mut command = server.command(&["doc", "watch", "a/", "--new", "--json", "--max", "1"]);
    let mut watching = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    // What is written before it looks is not new: it is written until it was told.
    while watching.try_wait().unwrap().is_none() {
        server.feed(&["doc", "put", "b", "-"], b"y").ok();
        server.feed(&["doc", "put", "a/1", "-"], b"yy").ok();
    }
    let told = crate::support::Done::of(watching.wait_with_output().unwrap()).ok();
    let change: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&change["key"], &change["document"]["content_bytes"]), (&json!("a/1"), &json!(2)));
    let etag = server.one(&["doc", "get", "a/1"])["etag"].clone();
    server.ok(&["doc", "delete", "a/1"]);
    let told = server.ok(&["doc", "watch", "a/", "--since", etag.as_str().unwrap(), "--max", "1"]);
    assert!(told.contains("Z  gone ") && told.ends_with("  a/1\n"), "{told}");
    let told = server.run(&["doc", "watch", "--since", "x"]).fails(2);
    assert!(told.contains("--since: expected") && told.contains("etag of a change"), "{told}");
}

#[test]
fn a_patch_is_of_one_kind() {
    let server = Server::start();
    server.feed(&["doc", "put", "counts"], b"{\"n\":1}").ok();
    let kinds = [["--merge", "{\"m\":1}"], ["--json-patch", "[]"], ["--increment", "/n"]];
    for (at, one) in kinds.iter().enumerate() {
        for other in kinds.iter().skip(at + 1) {
            let told = server.run(&[&["doc", "patch", "counts"], &one[..], other].concat()).fails(2);
            assert!(told.contains("cannot be used with"), "{told}");
        }
    }
    server.run(&["doc", "patch", "counts"]).fails(2);
    assert_eq!(server.ok(&["doc", "get", "counts"]), "{\"n\":1}");
    server.ok(&["doc", "patch", "counts", "--increment", "/n", "--increment", "/m=2"]);
    assert_eq!(server.one(&["doc", "get", "counts"])["content"], "{\"m\":2,\"n\":2}");
}

#[test]
fn a_content_that_is_too_large_is_told_as_that() {
    let server = Server::start();
    std::fs::write(server.path("large"), vec![b'x'; (4 << 20) + 1]).unwrap();
    let told = server.run(&["doc", "put", "a", "large"]).fails(5);
    assert!(told.contains("large has more than 4.0 MiB"), "{told}");
    server.feed(&["doc", "put", "a"], &vec![b'x'; (4 << 20) + 1]).fails(5);
}

#[test]
fn an_index_that_names_nothing_counts_no_documents() {
    let server = Server::start();
    server.feed(&["doc", "put", "a"], b"{\"n\":1}").ok();
    let told = || server.run(&["doc", "query", "--where", "{\"/n\":2}"]).err;
    assert_eq!(told(), "none of 1 documents in namespace default matches\n");
    server.ok(&["doc", "index", "put", "n", "/n"]);
    crate::support::until("the index is used", || told() == "no document in namespace default matches\n");
}
