//! Holds the repository to the rules.

use std::path::Path;

use sluice_tidy::check;

#[test]
fn the_repository_is_tidy() -> Result<(), String> {
    let findings = check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))?;
    let report: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        report.is_empty(),
        "{}\n\n{} findings; see Tidy in CONTRIBUTING.md",
        report.join("\n"),
        report.len()
    );
    Ok(())
}
