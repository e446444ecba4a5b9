//! Holds the repository to the rules, apart from the exceptions in `known.txt`.

use std::fs;
use std::path::Path;

use sluice_tidy::{Known, check, lines_for};

/// Set it to write `known.txt` anew, after a rename. What it adds has to be a rename of what it removes.
const WRITE: &str = "SLUICE_WRITE_KNOWN";

#[test]
fn the_repository_is_tidy() -> Result<(), String> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known_file = crate_folder.join("known.txt");
    let text = fs::read_to_string(&known_file).map_err(|error| error.to_string())?;
    let findings = check(&crate_folder.join("../.."))?;
    if std::env::var_os(WRITE).is_some() {
        let head = text.lines().take_while(|line| line.starts_with('#')).map(str::to_owned);
        let lines: Vec<String> = head.chain(lines_for(&findings)).collect();
        return fs::write(&known_file, lines.join("\n") + "\n").map_err(|error| error.to_string());
    }
    let report = Known::parse(&text)?.compare(&findings);
    assert!(
        report.is_empty(),
        "{}\n\n{} lines; see Tidy in CONTRIBUTING.md",
        report.join("\n"),
        report.len()
    );
    Ok(())
}
