//! Golden scripts: commands and the whole of what comes of them, one file per behaviour, in
//! `tests/golden`: a folder for the core and one for each module; beside them what uses all.
//!
//! A line that is not indented is a command (or empty, or a comment after `#`); the indented lines below it
//! are what must come of it. `SLUICE_BLESS=1 cargo test -p sluice-engine --test golden` writes what does come
//! of it; read what you bless. The language is described in `tests/script/mod.rs`.

#![allow(clippy::unwrap_used)]

mod common;
mod script;

use std::path::{Path, PathBuf};

#[test]
fn golden_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("SLUICE_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut files = Vec::new();
    find_scripts(&folder, &mut files);
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let expected = std::fs::read_to_string(&file).unwrap();
        let Ok((got, _)) = std::panic::catch_unwind(|| script::play(&expected)) else {
            wrong.push(format!("{}: panicked, see above", file.display()));
            continue;
        };
        if got == expected {
            continue;
        }
        if bless {
            std::fs::write(&file, got).unwrap();
        } else {
            let line = got.lines().zip(expected.lines()).position(|(got, expected)| got != expected);
            let line = line.unwrap_or(got.lines().count().min(expected.lines().count()));
            let [got, expected] = [&got, &expected].map(|text| text.lines().nth(line).unwrap_or("(end)"));
            wrong.push(format!("{}:{}\n  expected {expected}\n  got      {got}", file.display(), line + 1));
        }
    }
    assert!(wrong.is_empty(), "{}\nSLUICE_BLESS=1 accepts what came", wrong.join("\n"));
}

/// Appends the files of a folder and of those in it.
fn find_scripts(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { find_scripts(&path, files) } else { files.push(path) }
    }
}
