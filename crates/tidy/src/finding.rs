//! A place that breaks a rule.

use std::fmt;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The file, function or import that breaks it. One word.
    pub subject: String,
    /// The file, relative to the root of the repository.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Description of the fault, and of what would be right.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.advice)
    }
}
