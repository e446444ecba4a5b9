//! No catch-all arm in a `match` over an enum that grows with each feature, so that the compiler names every
//! place that a new variant concerns.
//!
//! The list has the enums to which a new command, record, event or call adds a variant. Not on it are enums
//! of answers and errors (`Reply`, `Error`): whoever has asked expects one or two of them, and treats the
//! others alike.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{ExprMatch, Pat, Path, Type};

use crate::Finding;
use crate::source::Source;

/// The name of the rule.
pub(crate) const RULE: &str = "wildcard";

/// The enums that grow, each with the folder in which it is matched without a catch-all arm. The compiler
/// demands such an arm of other crates for an enum that is `#[non_exhaustive]`: there the folder is that of
/// its crate.
const GROWING: [(&str, &str); 12] = [
    ("Body", "crates/replica/"),
    ("ChangeAction", "crates/"),
    ("Command", "crates/engine/"),
    ("Completion", "crates/"),
    ("Consequence", "crates/"),
    ("EventDetail", "crates/"),
    ("EventKind", "crates/"),
    ("Hot", "crates/"),
    ("Operation", "crates/"),
    ("RareRecord", "crates/"),
    ("Request", "crates/"),
    ("Special", "crates/"),
];

/// The catch-all arms in the product's part of a file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut matches = Matches { path: &source.path, self_type: None, findings: Vec::new() };
    matches.visit_file(&source.product);
    matches.findings
}

/// The names of the list that no text defines as an enum.
pub(crate) fn check_list<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> Vec<Finding> {
    let is_defined = |name: &str| texts.clone().any(|text| defines(text, name));
    GROWING
        .iter()
        .filter(|(name, _)| !is_defined(name))
        .map(|(name, _)| Finding {
            rule: RULE,
            subject: (*name).to_owned(),
            file: "crates/tidy/src/rules/wildcards.rs".to_owned(),
            line: 1,
            advice: format!("there is no enum {name}: take it off the list, or name what it has become"),
        })
        .collect()
}

fn defines(text: &str, name: &str) -> bool {
    text.match_indices("enum ").any(|(at, word)| {
        let rest = text[at + word.len()..].strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

struct Matches<'a> {
    path: &'a str,
    /// The type of the enclosing `impl`.
    self_type: Option<String>,
    findings: Vec<Finding>,
}

impl Matches<'_> {
    /// The enum of the list whose variants a pattern names.
    fn growing(&self, pattern: &Pat) -> Option<&'static str> {
        match pattern {
            Pat::Path(path) => self.growing_path(&path.path),
            Pat::Struct(fields) => self.growing_path(&fields.path),
            Pat::TupleStruct(tuple) => self
                .growing_path(&tuple.path)
                .or_else(|| tuple.elems.iter().find_map(|inner| self.growing(inner))),
            Pat::Or(cases) => cases.cases.iter().find_map(|case| self.growing(case)),
            Pat::Tuple(tuple) => tuple.elems.iter().find_map(|inner| self.growing(inner)),
            Pat::Reference(inner) => self.growing(&inner.pat),
            Pat::Paren(inner) => self.growing(&inner.pat),
            Pat::Guard(inner) => self.growing(&inner.pat),
            Pat::Ident(binding) => self.growing(&binding.subpat.as_ref()?.1),
            _ => None,
        }
    }

    fn growing_path(&self, path: &Path) -> Option<&'static str> {
        let before_last = path.segments.iter().rev().nth(1)?.ident.to_string();
        let name = if before_last == "Self" { self.self_type.clone()? } else { before_last };
        let is_held = |(growing, folder): &(&str, &str)| *growing == name && self.path.starts_with(folder);
        GROWING.into_iter().find(is_held).map(|(growing, _)| growing)
    }
}

impl<'ast> Visit<'ast> for Matches<'_> {
    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let outer = self.self_type.take();
        if let Type::Path(path) = &*block.self_ty {
            self.self_type = path.path.segments.last().map(|segment| segment.ident.to_string());
        }
        visit::visit_item_impl(self, block);
        self.self_type = outer;
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        let name = expression.arms.iter().find_map(|arm| self.growing(&arm.pat));
        let catch_all = expression.arms.iter().find_map(|arm| catch_all(&arm.pat));
        if let (Some(name), Some(span)) = (name, catch_all) {
            self.findings.push(Finding {
                rule: RULE,
                subject: format!("{}:{name}", self.path),
                file: self.path.to_owned(),
                line: span.start().line,
                advice: format!("a catch-all arm over {name}, which grows: name the variants"),
            });
        }
        visit::visit_expr_match(self, expression);
    }
}

/// Where a pattern stands that holds for every value: `_`, or a name.
fn catch_all(pattern: &Pat) -> Option<Span> {
    match pattern {
        Pat::Wild(wild) => Some(wild.underscore_token.spans[0]),
        Pat::Ident(name) if name.subpat.is_none() => {
            let is_binding =
                name.ident.to_string().starts_with(|first: char| first.is_lowercase() || first == '_');
            is_binding.then(|| name.ident.span())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        lines_in("crates/engine/src/a.rs", text)
    }

    fn lines_in(path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text, false).unwrap();
        check(&source).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn catch_all_arms_over_growing_enums_are_found() {
        assert_eq!(lines("fn f() { match a {\nCommand::Tick => 1,\n_ => 2 } }"), [3]);
        assert_eq!(lines("fn f() { match a {\nCommand::Send(send) => 1,\nother => 2 } }"), [3]);
        assert_eq!(
            lines("fn f() { match a {\n(Command::Tick, 1) | (Command::Send { .. }, _) => 1,\n_ => 2 } }"),
            [3]
        );
        assert_eq!(lines("impl Command<'_> { fn f() { match a {\nSelf::Tick => 1,\n_ => 2 } } }"), [3]);
    }

    #[test]
    fn complete_matches_and_other_enums_are_not() {
        assert_eq!(lines("fn f() { match a { Command::Tick => 1, Command::Send(_) => 2 } }"), [0; 0]);
        assert_eq!(
            lines("fn f() { match a { Command::Tick => 1, _ if b => 2, Command::Send(_) => 3 } }"),
            [0; 0]
        );
        assert_eq!(lines("fn f() { match a { Reply::Done => 1, other => 2 } }"), [0; 0]);
        assert_eq!(lines("impl Other { fn f() { match a { Self::Tick => 1, _ => 2 } } }"), [0; 0]);
    }

    #[test]
    fn other_crates_need_a_catch_all_over_a_non_exhaustive_enum() {
        let text = "fn f() { match a { Command::Tick => 1, _ => 2 } }";
        assert_eq!(lines_in("crates/node/src/a.rs", text), [0; 0]);
        assert_eq!(lines_in("crates/node/src/a.rs", &text.replace("Command", "Request")), [1]);
    }

    #[test]
    fn a_name_on_the_list_that_is_no_enum_is_found() {
        let missing = |text: &'static str| check_list([text].into_iter()).len();
        assert_eq!(missing("pub enum Command<'a> {}"), GROWING.len() - 1);
        assert_eq!(missing("enum Commands {}"), GROWING.len());
    }
}
