//! Lines of comments and documentation have at most 110 columns, others 120. A column is a character.
//!
//! Exempt is what cannot be broken: a line with a string literal in Rust; in Markdown tables, fenced code,
//! and a line whose URL alone is too long for it; elsewhere a line with a URL.

use std::collections::BTreeSet;
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};

use crate::Finding;
use crate::files::{Language, TextFile};

/// The name of the rule.
pub(crate) const RULE: &str = "line";

/// Columns of comments and documentation.
const PROSE_COLUMNS_MAX: usize = 110;

/// Columns of other lines.
const CODE_COLUMNS_MAX: usize = 120;

/// The lines of a file that are too long.
pub(crate) fn check(file: &TextFile) -> Vec<Finding> {
    let mut fence = Fence::default();
    let mut with_literal = None;
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let is_fenced = file.language == Language::Markdown && fence.holds(line);
        let columns = line.chars().count();
        let limit = limit(file.language, line);
        if columns <= limit || is_fenced || is_unbreakable(file.language, line, limit) {
            continue;
        }
        if file.language == Language::Rust && limit == CODE_COLUMNS_MAX {
            let lines = with_literal.get_or_insert_with(|| lines_with_literals(&file.text));
            if lines.contains(&(index + 1)) {
                continue;
            }
        }
        findings.push(Finding {
            rule: RULE,
            subject: file.path.clone(),
            file: file.path.clone(),
            line: index + 1,
            advice: format!("{columns} columns; at most {limit}"),
        });
    }
    findings
}

fn limit(language: Language, line: &str) -> usize {
    let start = line.trim_start();
    let is_prose = match language {
        Language::Rust | Language::Proto => start.starts_with("//"),
        Language::Script => start.starts_with('#'),
        Language::Markdown => true,
    };
    if is_prose { PROSE_COLUMNS_MAX } else { CODE_COLUMNS_MAX }
}

fn is_unbreakable(language: Language, line: &str, limit: usize) -> bool {
    let is_table = language == Language::Markdown && line.trim_start().starts_with('|');
    let has_long_url = line.split(' ').any(|word| word.contains("://") && word.chars().count() > limit / 2);
    is_table || has_long_url
}

/// True when the present line of Markdown is inside a fence of "```".
#[derive(Default)]
struct Fence(bool);

impl Fence {
    fn holds(&mut self, line: &str) -> bool {
        let is_mark = line.trim_start().starts_with("```");
        self.0 ^= is_mark;
        self.0 || is_mark
    }
}

/// The numbers of the lines, from 1, that a string literal touches.
fn lines_with_literals(text: &str) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    if let Ok(tokens) = TokenStream::from_str(text) {
        add_literals(tokens, &mut lines);
    }
    lines
}

fn add_literals(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => add_literals(group.stream(), lines),
            TokenTree::Literal(literal) if literal.to_string().contains('"') => {
                lines.extend(literal.span().start().line..=literal.span().end().line);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(language: Language, text: &str) -> Vec<usize> {
        check(&TextFile { path: "a".into(), language, text: text.into() })
            .iter()
            .map(|found| found.line)
            .collect()
    }

    #[test]
    fn comments_have_110_columns_and_code_120() {
        let comment = format!("//{}", "x".repeat(108));
        assert_eq!(lines(Language::Rust, &comment), [0; 0]);
        assert_eq!(lines(Language::Rust, &format!("\n{comment}x")), [2]);
        let code = format!("let {};", "x".repeat(115));
        assert_eq!(lines(Language::Rust, &code), [0; 0]);
        assert_eq!(lines(Language::Rust, &format!("{code} ")), [1]);
        assert_eq!(lines(Language::Script, &format!("#{}", "é".repeat(109))), [0; 0]);
    }

    #[test]
    fn string_literals_are_exempt() {
        assert_eq!(lines(Language::Rust, &format!("let a = \"{}\";", "x".repeat(130))), [0; 0]);
        assert_eq!(lines(Language::Rust, &format!("let a = \"\n{}\n\";", "x".repeat(130))), [0; 0]);
    }

    #[test]
    fn tables_fences_and_urls_are_exempt_in_markdown() {
        let long = "x ".repeat(80);
        assert_eq!(lines(Language::Markdown, &long), [1]);
        assert_eq!(lines(Language::Markdown, &format!("| {long}")), [0; 0]);
        assert_eq!(lines(Language::Markdown, &format!("```\n{long}\n```\n{long}")), [4]);
        assert_eq!(lines(Language::Markdown, &format!("[a](https://{}) b", "x".repeat(100))), [0; 0]);
    }
}
