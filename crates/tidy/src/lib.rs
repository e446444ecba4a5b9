//! Rules about the text of this repository, which `tests/repository.rs` holds. Nothing else uses this crate.
//!
//! Rules that the compiler, rustfmt or Clippy can hold are theirs and not here.
//!
//! - `rules`: one file for each rule;
//! - `files`, `source`, `modules`: the text files, the parsed Rust files, and the modules of a crate;
//! - `imports`, `resolve`: what a module takes from elsewhere, and where that is defined;
//! - `finding`: a place that breaks a rule.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod files;
mod finding;
mod imports;
mod modules;
mod resolve;
mod rules;
mod source;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::thread;

use files::{Language, TextFile};
use modules::Module;
use rules::layers::Manifest;
use source::Source;

pub use finding::Finding;

/// Checks every rule on the repository at `root`. Findings come in the order of rules, files and lines.
///
/// # Errors
///
/// A file that cannot be read or parsed, with its path.
pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let files = files::read_all(root).map_err(|error| error.to_string())?;
    let by_path: HashMap<&str, &TextFile> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut findings = check_texts(&files);
    findings.extend(rules::layers::check(&manifests(&files))?);
    // Parsing is most of the work, and spans stay on the thread that parsed.
    let parsed = thread::scope(|scope| {
        let roots = files.iter().filter_map(|file| Some((crate_of_root(&file.path)?, file.path.as_str())));
        let crates = roots.map(|(krate, path)| scope.spawn(|| check_crate(krate, path, &by_path)));
        let workers: Vec<_> = crates.chain([scope.spawn(|| check_outside(&files, &by_path))]).collect();
        workers.into_iter().map(|worker| worker.join().map_err(|_| "a rule panicked".to_owned())?).collect()
    });
    let parsed: Result<Vec<Checked>, String> = parsed;
    let mut declared = BTreeSet::new();
    for checked in parsed? {
        findings.extend(checked.findings);
        declared.extend(checked.declared);
    }
    findings.extend(rules::orphans::check(&by_path, &declared));
    findings.sort_by(|a, b| (a.rule, &a.file, a.line).cmp(&(b.rule, &b.file, b.line)));
    Ok(findings)
}

/// The findings in parsed files.
struct Checked {
    findings: Vec<Finding>,
    /// The files that are modules.
    declared: BTreeSet<String>,
}

/// The rules that look at text.
fn check_texts(files: &[TextFile]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().flat_map(rules::lines::check).collect();
    let code = files.iter().filter(|file| file.language != Language::Markdown);
    findings.extend(code.filter_map(|file| rules::sizes::check_file(&file.path, &file.text)));
    let sources = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && !file.path.starts_with("crates/tidy/"));
    findings.extend(rules::wildcards::check_list(sources.map(|file| file.text.as_str())));
    findings
}

/// The rules that look at the modules of one crate.
fn check_crate(krate: &str, root: &str, files: &HashMap<&str, &TextFile>) -> Result<Checked, String> {
    let modules = modules::read(root, files)?;
    let sources = modules.iter().map(|module: &Module| &module.source);
    let mut findings: Vec<Finding> = sources
        .flat_map(|source| {
            let rules = [rules::sizes::check_functions, rules::banned::check, rules::wildcards::check];
            rules.into_iter().flat_map(|rule| rule(source)).chain(rules::openings::check(source))
        })
        .collect();
    let imports: Vec<_> = modules.iter().flat_map(imports::collect).collect();
    findings.extend(rules::circles::check(krate, &imports));
    Ok(Checked { findings, declared: rules::orphans::declared(&modules) })
}

/// The rules for Rust outside of a crate's `src`: tests, examples, fuzz targets.
fn check_outside(files: &[TextFile], by_path: &HashMap<&str, &TextFile>) -> Result<Checked, String> {
    let mut findings = Vec::new();
    let mut declared = BTreeSet::new();
    for file in files.iter().filter(|file| file.language == Language::Rust && !file.path.contains("/src/")) {
        findings.extend(rules::sizes::check_functions(&Source::parse(&file.path, &file.text, true)?));
        if is_root_of_tests(&file.path) {
            declared.extend(rules::orphans::declared(&modules::read(&file.path, by_path)?));
        }
    }
    Ok(Checked { findings, declared })
}

fn manifests(files: &[TextFile]) -> Vec<Manifest<'_>> {
    let named = |file| -> Option<Manifest<'_>> {
        let file: &TextFile = file;
        let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some(Manifest { name, text: &file.text })
    };
    files.iter().filter_map(named).collect()
}

/// The crate whose root a file is.
fn crate_of_root(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("crates/")?;
    inside.strip_suffix("/src/lib.rs").or(inside.strip_suffix("/src/main.rs"))
}

/// True for the root file of a test: `tests/NAME.rs` or `tests/NAME/main.rs` of a crate.
fn is_root_of_tests(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "tests", _] | ["crates", _, "tests", _, "main.rs"])
}
