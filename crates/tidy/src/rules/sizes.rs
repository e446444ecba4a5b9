//! A function has at most 70 lines, and a file of code 600.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Block, Signature};

use crate::Finding;
use crate::source::Source;

/// The name of the rule for functions.
pub(crate) const FUNCTION_RULE: &str = "function";

/// The name of the rule for files.
pub(crate) const FILE_RULE: &str = "file";

/// Lines of a function, from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Lines of a file.
const FILE_LINES_MAX: usize = 600;

/// The functions of a file that are too long, those of tests too.
pub(crate) fn check_functions(source: &Source) -> Vec<Finding> {
    let mut functions = Functions { path: &source.path, findings: Vec::new() };
    functions.visit_file(&source.whole);
    functions.findings
}

/// The finding that a file is too long.
pub(crate) fn check_file(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > FILE_LINES_MAX).then(|| Finding {
        rule: FILE_RULE,
        subject: path.to_owned(),
        file: path.to_owned(),
        line: FILE_LINES_MAX,
        advice: format!("{lines} lines; at most {FILE_LINES_MAX}: give each concern a file"),
    })
}

struct Functions<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &Signature, block: &Block) {
        let first = line(signature.fn_token.span);
        let lines = line(block.brace_token.span.close()) + 1 - first;
        if lines > FUNCTION_LINES_MAX {
            self.findings.push(Finding {
                rule: FUNCTION_RULE,
                subject: format!("{}:{}", self.path, signature.ident),
                file: self.path.to_owned(),
                line: first,
                advice: format!("{} has {lines} lines; at most {FUNCTION_LINES_MAX}", signature.ident),
            });
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(text: &str) -> Vec<String> {
        let source = Source::parse("a.rs", text, false).unwrap();
        check_functions(&source).into_iter().map(|found| found.subject).collect()
    }

    #[test]
    fn functions_methods_and_defaults_are_measured() {
        let body = "\n".repeat(FUNCTION_LINES_MAX - 1);
        assert_eq!(functions(&format!("fn f() {{{body}}}")), [""; 0]);
        assert_eq!(functions(&format!("fn f() {{{body}\n}}")), ["a.rs:f"]);
        assert_eq!(functions(&format!("impl A {{ fn f() {{{body}\n}} }}")), ["a.rs:f"]);
        assert_eq!(functions(&format!("trait A {{ fn f() {{{body}\n}} }}")), ["a.rs:f"]);
    }

    #[test]
    fn tests_are_measured_too() {
        let body = "\n".repeat(FUNCTION_LINES_MAX);
        assert_eq!(functions(&format!("#[cfg(test)] mod tests {{ fn f() {{{body}}} }}")), ["a.rs:f"]);
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(check_file("a.rs", &"\n".repeat(FILE_LINES_MAX)).is_none());
        assert!(check_file("a.rs", &"\n".repeat(FILE_LINES_MAX + 1)).is_some());
    }
}
