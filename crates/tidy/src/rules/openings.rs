//! A doc comment begins with a noun or verb of the field. A pronoun or a question word as its first word
//! makes a riddle of it: "Who waits", "Which.", "Of those: not changed", "What it holds".

use syn::visit::Visit;
use syn::{Attribute, Expr, Lit, Meta};

use crate::Finding;
use crate::source::Source;

/// The name of the rule.
pub(crate) const RULE: &str = "opening";

/// First words, without punctuation.
const BANNED: [&str; 11] =
    ["How", "It", "Of", "They", "Those", "What", "Whether", "Which", "Who", "Whoever", "Whose"];

/// The doc comments of a file that begin with a banned word.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut docs = Docs { path: &source.path, last_line: None, findings: Vec::new() };
    docs.visit_file(&source.product);
    docs.findings
}

struct Docs<'a> {
    path: &'a str,
    /// The line of the doc comment seen last; the next line continues it.
    last_line: Option<usize>,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Docs<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Some(text) = doc_text(attribute) else { return };
        let line = attribute.pound_token.span.start().line;
        let is_first = self.last_line.replace(line) != Some(line - 1);
        let word = text.split(|letter: char| !letter.is_alphanumeric()).find(|word| !word.is_empty());
        if let Some(word) = word.filter(|word| is_first && BANNED.contains(word)) {
            self.findings.push(Finding {
                rule: RULE,
                subject: self.path.to_owned(),
                file: self.path.to_owned(),
                line,
                advice: format!("begins with \"{word}\": begin with what it is"),
            });
        }
    }
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        Lit::Str(text) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::parse("a.rs", text, false).unwrap();
        check(&source).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_pronoun_or_question_opens_no_comment() {
        for word in ["What", "Whether", "How"] {
            assert_eq!(lines(&format!("/// {word} it holds.\nstruct A;")), [1]);
        }
        assert_eq!(lines("/// Who waits.\nstruct A {\n/// Which.\na: u8 }"), [1, 3]);
        assert_eq!(lines("//! It is what waits."), [1]);
    }

    #[test]
    fn nouns_verbs_and_later_lines_are_free() {
        assert_eq!(lines("/// The caller that waits.\n/// Who it is, is known.\nstruct A;"), [0; 0]);
        assert_eq!(lines("/// Offset in bytes.\nstruct A;"), [0; 0]);
        assert_eq!(lines("#[serde(rename = \"Who\")]\nstruct A;"), [0; 0]);
    }
}
