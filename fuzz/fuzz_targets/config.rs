//! The configuration: a TOML file, then after a line `---` variables `NAME=text` and flags `key=text`. What
//! is accepted must come out the same when it is given again in the form in which it is shown.
#![no_main]

#[allow(dead_code, unused_imports)]
#[path = "../../crates/cli/src/config/mod.rs"]
mod config;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

use config::{SETTINGS, SettingFlags, Sources, load};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (toml, rest) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let file = FOLDER.path().join("sluice.toml");
    std::fs::write(&file, toml).expect("a file in the temporary folder");
    let (mut env, mut flags) = (BTreeMap::new(), Vec::new());
    for (name, value) in rest.lines().filter_map(|line| line.split_once('=')) {
        match SETTINGS.iter().find(|setting| setting.key == name) {
            Some(setting) => flags.push((setting.key, value.to_owned())),
            None => drop(env.insert(name.to_owned(), value.to_owned())),
        }
    }
    env.remove("SLUICE_CONFIG");
    match load(&Sources { file: Some(file.clone()), env, flags: SettingFlags { given: flags }, is_test: false }) {
        Err(error) => assert!(!error.0.is_empty(), "an error without a reason"),
        Ok(loaded) => again(&file, &loaded),
    }
});

fn again(file: &Path, loaded: &config::Loaded) {
    std::fs::write(file, "").expect("a file in the temporary folder");
    let given = SETTINGS.iter().zip(&loaded.shown).map(|(setting, (value, _))| (setting.key, value.clone()));
    let flags = SettingFlags { given: given.collect() };
    let sources = Sources { file: Some(file.to_owned()), env: BTreeMap::new(), flags, is_test: false };
    let second = load(&sources).expect("what is shown can be given");
    assert_eq!(second.config, loaded.config);
}
