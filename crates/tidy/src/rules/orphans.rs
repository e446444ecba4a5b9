//! No Rust file under `src` or `tests` of a crate that no module declares: nothing compiles it.
//!
//! A file counts as declared when a root file (`lib.rs`, `main.rs`, a test) reaches it by `mod`, or a module
//! that is reached has an `include!` of it. Exempt are the files that a test compiles by itself, since they
//! must not compile: it names them in its text as `tests/FOLDER/*.rs`.

use std::collections::{BTreeSet, HashMap};

use syn::visit::{self, Visit};

use crate::Finding;
use crate::files::{Language, TextFile};
use crate::modules::{Module, beside};

/// The name of the rule.
pub(crate) const RULE: &str = "orphan";

/// The files of modules, with those that they include.
pub(crate) fn declared(modules: &[Module]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for Module { source, .. } in modules {
        files.insert(source.path.clone());
        let mut includes = Includes { path: &source.path, files: &mut files };
        includes.visit_file(&source.whole);
    }
    files
}

/// The files that are not among the declared ones.
pub(crate) fn check(files: &HashMap<&str, &TextFile>, declared: &BTreeSet<String>) -> Vec<Finding> {
    let orphans = files.values().filter(|file| {
        file.language == Language::Rust
            && is_held(&file.path)
            && !declared.contains(&file.path)
            && !is_compiled_by_a_test(&file.path, files)
    });
    let finding = |file: &&TextFile| Finding {
        rule: RULE,
        subject: file.path.clone(),
        file: file.path.clone(),
        line: 1,
        advice: "no module declares this file: declare it, or delete it".to_owned(),
    };
    orphans.map(finding).collect()
}

fn is_held(path: &str) -> bool {
    let folder = path.strip_prefix("crates/").and_then(|inside| inside.split('/').nth(1));
    matches!(folder, Some("src" | "tests"))
}

/// True if the test `tests/FOLDER.rs` names the files of `tests/FOLDER`.
fn is_compiled_by_a_test(path: &str, files: &HashMap<&str, &TextFile>) -> bool {
    let Some((folder, _)) = path.rsplit_once('/') else { return false };
    let test = files.get(format!("{folder}.rs").as_str());
    let name = folder.rsplit('/').next().unwrap_or_default();
    test.is_some_and(|test| test.text.contains(&format!("\"tests/{name}/*.rs\"")))
}

/// Collects the files of `include!`.
struct Includes<'a> {
    path: &'a str,
    files: &'a mut BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Includes<'_> {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.is_ident("include")
            && let Ok(relative) = call.parse_body::<syn::LitStr>()
        {
            self.files.insert(beside(self.path, &relative.value()));
        }
        visit::visit_macro(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules;

    fn orphans(roots: &[&str], texts: &[(&str, &str)]) -> Vec<String> {
        let texts: Vec<TextFile> = texts
            .iter()
            .map(|(path, text)| TextFile {
                path: (*path).into(),
                language: Language::Rust,
                text: (*text).into(),
            })
            .collect();
        let files = texts.iter().map(|file| (file.path.as_str(), file)).collect();
        let modules = roots.iter().flat_map(|root| modules::read(root, &files).unwrap());
        let modules: Vec<Module> = modules.collect();
        check(&files, &declared(&modules)).into_iter().map(|finding| finding.subject).collect()
    }

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let found = orphans(
            &["crates/x/src/lib.rs", "crates/x/tests/all/main.rs"],
            &[
                ("crates/x/src/lib.rs", "mod a;"),
                ("crates/x/src/a.rs", ""),
                ("crates/x/src/b.rs", ""),
                ("crates/x/tests/all/main.rs", "mod support;"),
                ("crates/x/tests/all/support.rs", ""),
            ],
        );
        assert_eq!(found, ["crates/x/src/b.rs"]);
    }

    #[test]
    fn what_an_orphan_declares_is_one_too() {
        let found = orphans(
            &["crates/x/src/lib.rs"],
            &[("crates/x/src/lib.rs", ""), ("crates/x/src/a/mod.rs", "mod b;"), ("crates/x/src/a/b.rs", "")],
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn included_files_and_examples_are_none() {
        let found = orphans(
            &["crates/x/src/lib.rs"],
            &[
                ("crates/x/src/lib.rs", "mod v1 { include!(\"made/v1.rs\"); }"),
                ("crates/x/src/made/v1.rs", ""),
                ("crates/x/examples/serve.rs", ""),
            ],
        );
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn files_that_must_not_compile_are_none() {
        let found = orphans(
            &["crates/x/tests/refused.rs"],
            &[
                ("crates/x/tests/refused.rs", "fn f() { compile_fail(\"tests/refused/*.rs\") }"),
                ("crates/x/tests/refused/a.rs", ""),
                ("crates/x/tests/other/a.rs", ""),
            ],
        );
        assert_eq!(found, ["crates/x/tests/other/a.rs"]);
    }
}
