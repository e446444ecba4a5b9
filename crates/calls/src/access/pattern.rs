//! Patterns of names: `*` stands for any run of characters, everything else for itself.

use sluice_engine::limits::NAME_BYTES_MAX;

/// Longest pattern, in bytes.
pub(super) const PATTERN_BYTES_MAX: usize = 256;

/// Several patterns; a name fits when it fits one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patterns(Box<[Box<str>]>);

impl Patterns {
    /// Parses patterns.
    ///
    /// # Errors
    /// What is wrong with one of them, and which.
    pub fn new<S: AsRef<str>>(texts: &[S]) -> Result<Patterns, (usize, String)> {
        for (at, text) in texts.iter().enumerate() {
            check(text.as_ref()).map_err(|reason| (at, reason))?;
        }
        Ok(Patterns(texts.iter().map(|text| text.as_ref().into()).collect()))
    }

    /// Parses patterns of the names of queues or namespaces: a pattern that no such name could match is an
    /// error.
    ///
    /// # Errors
    /// As [`Patterns::new`].
    pub fn of_names<S: AsRef<str>>(texts: &[S]) -> Result<Patterns, (usize, String)> {
        for (at, text) in texts.iter().enumerate() {
            check(text.as_ref())
                .and_then(|()| check_fits_names(text.as_ref()))
                .map_err(|reason| (at, reason))?;
        }
        Patterns::new(texts)
    }

    /// The one that every name fits.
    pub fn any() -> Patterns {
        Patterns(Box::new(["*".into()]))
    }

    /// Patterns that no name fits.
    pub fn none() -> Patterns {
        Patterns(Box::new([]))
    }

    /// The patterns as text.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(|pattern| String::from(&**pattern)).collect()
    }

    /// True if a name matches.
    pub fn fit(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
    }

    /// True if every name matches.
    pub fn fit_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern.bytes().all(|byte| byte == b'*'))
    }
}

fn check(text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
        return Err(format!(
            "expected a pattern of 1 to {PATTERN_BYTES_MAX} bytes, such as shop or emails.*, got {} bytes",
            text.len()
        ));
    }
    match text.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => Err(format!("{text:?} has the character {c:?}, which no name has")),
        None => Ok(()),
    }
}

/// Checks that a pattern can match a name that the engine allows, the server's own names with `$` included.
fn check_fits_names(text: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-$*".contains(c);
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        return Err(format!(
            "{text:?} has the character {c:?}, which no queue and no namespace has in its name"
        ));
    }
    match text.chars().filter(|c| *c != '*').count() {
        count if count > NAME_BYTES_MAX => Err(format!(
            "{text:?} needs {count} characters beside its stars, and names have {NAME_BYTES_MAX} at most"
        )),
        _ => Ok(()),
    }
}

/// Matches a name. Backtracks to the latest `*` only, which is enough: at worst the product of the lengths.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && pattern[p] == name[n] {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (p, n) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run() {
        for (pattern, fitting, others) in [
            ("shop", &["shop"][..], &["shop2", "sho", ""][..]),
            ("*", &["", "a", "a.b"], &[]),
            ("emails.*", &["emails.", "emails.a.b"], &["emails", "xemails.a"]),
            ("*-dead", &["a-dead", "-dead", "a-dead-dead"], &["a-deadx"]),
            ("a*b*c", &["abc", "axxbxxc", "abbcc"], &["ab", "acb", "abcx"]),
        ] {
            let patterns = Patterns::new(&[pattern]).unwrap();
            assert!(fitting.iter().all(|name| patterns.fit(name)), "{pattern}");
            assert!(others.iter().all(|name| !patterns.fit(name)), "{pattern}");
        }
    }

    #[test]
    fn bad_patterns_are_named() {
        assert_eq!(Patterns::new(&["a", ""]).unwrap_err().0, 1);
        assert!(Patterns::new(&["a b"]).unwrap_err().1.contains("' '"));
        assert!(Patterns::new(&["x".repeat(257)]).unwrap_err().1.ends_with("got 257 bytes"));
        assert!(Patterns::of_names(&["$sys", "a-*.b_C9"]).is_ok());
        assert!(Patterns::of_names(&["ok", "a/b"]).unwrap_err().1.contains("'/'"));
        assert!(Patterns::of_names(&[format!("{}*", "x".repeat(129))]).unwrap_err().1.contains("129"));
    }
}
