use crate::support::{Done, alone, command};

#[test]
fn every_setting_is_shown_with_its_origin() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("sluice.toml"), "shards = 2\n[log]\nlevel = \"warn\"\n").unwrap();
    let mut run = command(home.path(), &["config", "--grace", "5s"]);
    let text = Done::of(run.env("SLUICE_CACHE", "1MiB").output().unwrap()).ok();
    let line = |start: &str| {
        text.lines().find(|l| l.starts_with(start)).unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("shards"), ["shards", "2", "file", "sluice.toml"]);
    assert_eq!(line("log.level"), ["log.level", "warn", "file", "sluice.toml"]);
    assert_eq!(line("cache"), ["cache", "1MiB", "env", "SLUICE_CACHE"]);
    assert_eq!(line("grace"), ["grace", "5s", "flag", "--grace"]);
    assert_eq!(line("listen"), ["listen", "127.0.0.1:7070", "default"]);
    let json = Done::of(command(home.path(), &["config", "--json"]).output().unwrap()).ok();
    assert_eq!(json.lines().count(), text.lines().count() - 1);
}

#[test]
fn one_error_lists_all_mistakes_and_the_server_does_not_start() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("bad.toml"), "shard = 2\ndurability = \"sometimes\"\n").unwrap();
    for verb in ["config", "serve"] {
        let mut run = command(home.path(), &[verb, "--config", "bad.toml", "--cache", "lots"]);
        let error = Done::of(run.env("SLUICE_GRACE", "soon").output().unwrap()).fails(2);
        for part in [
            "has 4 mistakes",
            "did you mean shards?",
            "durability = \"sometimes\"",
            "--cache = \"lots\"",
            "SLUICE_GRACE",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    assert!(!home.path().join("sluice-data").exists());
}

#[test]
fn switches_are_on_by_name_alone() {
    for (args, value) in [(&["--memory"][..], "true"), (&["--memory=false"], "false")] {
        let text = alone(&[&["config"], args].concat()).ok();
        let line = text.lines().find(|l| l.starts_with("memory ")).unwrap();
        assert!(line.contains(value) && line.contains("flag --memory"), "{line}");
    }
}
