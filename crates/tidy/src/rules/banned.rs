//! Calls that the product does not make:
//!
//! - `expect` with less than two words: the text says why it cannot fail;
//! - `print!` and its kin outside of the crates that talk to a terminal;
//! - `std::thread::sleep` in asynchronous code, where it stops everything on its thread;
//! - in the engine, whatever its log does not determine: clocks, threads, files, sockets, the environment,
//!   and maps whose order depends on a seed;
//! - `#[allow]` without a reason: the attribute's `reason`, or a comment on its line or the one before.
//!
//! Clippy denies `unwrap`, `dbg!`, `todo!` and `unimplemented!` (`[workspace.lints]`).

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprMethodCall, Lit, Meta};

use crate::Finding;
use crate::source::Source;

/// The name of the rule.
pub(crate) const RULE: &str = "banned";

/// The crates that write to a terminal.
const PRINTING_CRATES: [&str; 5] =
    ["crates/cli/", "crates/bench/", "crates/bench-rows/", "crates/sim/", "crates/tidy/"];

/// The crate that depends on nothing but its log.
const PURE_CRATE: &str = "crates/engine/";

/// Where paths begin that the pure crate does not take from the standard library.
const IMPURE: [&[&str]; 9] = [
    &["std", "time"],
    &["std", "thread"],
    &["std", "fs"],
    &["std", "net"],
    &["std", "env"],
    &["std", "process"],
    &["std", "collections", "HashMap"],
    &["std", "collections", "HashSet"],
    &["std", "hash", "RandomState"],
];

/// The banned calls in the product's part of a file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut calls = Calls { source, async_depth: 0, findings: Vec::new() };
    calls.visit_file(&source.product);
    calls.findings
}

struct Calls<'a> {
    source: &'a Source,
    /// Number of `async` functions and blocks around the present expression.
    async_depth: usize,
    findings: Vec<Finding>,
}

impl Calls<'_> {
    fn add(&mut self, span: Span, advice: String) {
        let file = self.source.path.clone();
        let line = span.start().line;
        self.findings.push(Finding { rule: RULE, subject: file.clone(), file, line, advice });
    }

    fn check_names(&mut self, names: &[String], span: Span) {
        if self.async_depth > 0 && names.ends_with(&["thread".to_owned(), "sleep".to_owned()]) {
            self.add(span, "thread::sleep in asynchronous code: await tokio::time::sleep".to_owned());
        }
        let starts = |impure: &&&[&str]| {
            names.len() >= impure.len() && names.iter().zip(**impure).all(|(a, b)| a == b)
        };
        if self.source.path.starts_with(PURE_CRATE) && IMPURE.iter().any(|impure| starts(&impure)) {
            let advice =
                format!("{} in the engine: what it needs is in the log or an argument", names.join("::"));
            self.add(span, advice);
        }
    }

    fn check_use(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let (ident, below) = match tree {
            syn::UseTree::Path(part) => (&part.ident, Some(&part.tree)),
            syn::UseTree::Name(name) => (&name.ident, None),
            syn::UseTree::Rename(name) => (&name.ident, None),
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.check_use(tree, prefix));
            }
            syn::UseTree::Glob(_) => return,
        };
        let names: Vec<String> = prefix.iter().cloned().chain([ident.to_string()]).collect();
        match below {
            Some(tree) => self.check_use(tree, &names),
            None => self.check_names(&names, ident.span()),
        }
    }

    fn has_comment(&self, span: Span) -> bool {
        let line = span.start().line;
        let comment = |number: usize| number > 0 && self.source.lines[number - 1].contains("//");
        comment(line) || comment(line - 1)
    }
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method == "expect"
            && let Some(text) = only_text(call)
            && text.split_whitespace().count() < 2
            && !self.has_comment(call.method.span())
        {
            self.add(call.method.span(), format!("expect(\"{text}\") does not say why it cannot fail"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let prints = ["print", "println", "eprint", "eprintln"].iter().any(|name| call.path.is_ident(name));
        if prints && !PRINTING_CRATES.iter().any(|krate| self.source.path.starts_with(krate)) {
            let span = call.bang_token.span;
            self.add(span, "writes to the terminal from a library: return it, or use tracing".to_owned());
        }
        visit::visit_macro(self, call);
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        self.check_use(&import.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(first) = path.segments.first() {
            self.check_names(&names, first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_allow = attribute.path().is_ident("allow");
        let has_reason =
            matches!(&attribute.meta, Meta::List(list) if list.tokens.to_string().contains("reason"));
        if is_allow && !has_reason && !self.has_comment(attribute.pound_token.span) {
            self.add(attribute.pound_token.span, "allow without a reason: say why, in a comment".to_owned());
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(function.sig.asyncness.is_some(), |calls| visit::visit_item_fn(calls, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.within(function.sig.asyncness.is_some(), |calls| visit::visit_impl_item_fn(calls, function));
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.within(true, |calls| visit::visit_expr_async(calls, block));
    }
}

impl Calls<'_> {
    fn within(&mut self, is_async: bool, visit: impl FnOnce(&mut Self)) {
        self.async_depth += usize::from(is_async);
        visit(self);
        self.async_depth -= usize::from(is_async);
    }
}

/// The text of the only argument, when it is a literal.
fn only_text(call: &ExprMethodCall) -> Option<String> {
    match call.args.first()? {
        Expr::Lit(literal) if call.args.len() == 1 => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text, false).unwrap();
        check(&source).into_iter().map(|found| found.line).collect()
    }

    const NODE: &str = "crates/node/src/a.rs";
    const ENGINE: &str = "crates/engine/src/a.rs";

    #[test]
    fn expect_says_why_it_cannot_fail() {
        assert_eq!(lines(NODE, "fn f() { a.expect(\"room\"); }"), [1]);
        assert_eq!(lines(NODE, "fn f() { a.expect(\"split at 4\"); }"), [0; 0]);
        assert_eq!(lines(NODE, "fn f() {\n// it was checked\na.expect(\"room\"); }"), [0; 0]);
        assert_eq!(lines(NODE, "fn f() { self.expect(Kind::Object, \"object\"); }"), [0; 0]);
    }

    #[test]
    fn libraries_do_not_print() {
        assert_eq!(lines(NODE, "fn f() { println!(); }"), [1]);
        assert_eq!(lines("crates/cli/src/a.rs", "fn f() { println!(); }"), [0; 0]);
        assert_eq!(lines(NODE, "#[test] fn f() { println!(); }"), [0; 0]);
    }

    #[test]
    fn asynchronous_code_does_not_sleep_its_thread() {
        assert_eq!(lines(NODE, "async fn f() { std::thread::sleep(a); }"), [1]);
        assert_eq!(lines(NODE, "fn f() { spawn(async { thread::sleep(a) }); }"), [1]);
        assert_eq!(lines(NODE, "fn f() { std::thread::sleep(a); }"), [0; 0]);
    }

    #[test]
    fn the_engine_is_pure() {
        assert_eq!(lines(ENGINE, "use std::{fs, time::Instant};"), [1, 1]);
        assert_eq!(lines(ENGINE, "use std::collections::{BTreeMap, HashMap};"), [1]);
        assert_eq!(lines(ENGINE, "fn f() { let a = std::collections::HashSet::new(); }"), [1]);
        assert_eq!(lines(ENGINE, "use std::fmt;"), [0; 0]);
        assert_eq!(lines(NODE, "use std::fs;"), [0; 0]);
    }

    #[test]
    fn allow_has_a_reason() {
        assert_eq!(lines(NODE, "\n#[allow(dead_code)] fn f() {}"), [2]);
        assert_eq!(lines(NODE, "// generated\n#[allow(dead_code)] fn f() {}"), [0; 0]);
        assert_eq!(lines(NODE, "#[allow(dead_code, reason = \"generated\")] fn f() {}"), [0; 0]);
    }
}
