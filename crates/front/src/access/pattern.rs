//! Patterns of names: `*` stands for any run of characters, everything else for itself.

/// Longest pattern, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 256;

/// Several patterns; a name fits when it fits one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Patterns(Box<[Box<str>]>);

impl Patterns {
    /// From texts, each of them checked.
    ///
    /// # Errors
    /// What is wrong with one of them, and which.
    pub(crate) fn new<S: AsRef<str>>(texts: &[S]) -> Result<Patterns, (usize, String)> {
        for (at, text) in texts.iter().enumerate() {
            check(text.as_ref()).map_err(|reason| (at, reason))?;
        }
        Ok(Patterns(texts.iter().map(|text| text.as_ref().into()).collect()))
    }

    /// The one that every name fits.
    pub(crate) fn any() -> Patterns {
        Patterns(Box::new(["*".into()]))
    }

    /// Whether a name fits.
    pub(crate) fn fit(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
    }

    /// Whether every name fits.
    pub(crate) fn fit_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern.bytes().all(|byte| byte == b'*'))
    }
}

fn check(text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
        return Err(format!(
            "expected a pattern of 1 to {PATTERN_BYTES_MAX} bytes, such as shop or emails.*"
        ));
    }
    match text.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => Err(format!("{text:?} has the character {c:?}, which no name has")),
        None => Ok(()),
    }
}

/// Goes back to the latest `*` only, which is enough: linear in the product of the lengths at worst.
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
        assert!(Patterns::new(&["x".repeat(257)]).is_err());
    }
}
