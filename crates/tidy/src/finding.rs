//! What a rule found.

use std::fmt;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule's name, as in `known.txt`.
    pub rule: &'static str,
    /// What the exception in `known.txt` names: a file, a function, or an import. Never a line number, so
    /// that an exception survives edits elsewhere in the file. One word.
    pub subject: String,
    /// The file, relative to the root of the repository.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.advice)
    }
}
