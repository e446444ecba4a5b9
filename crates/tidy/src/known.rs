//! The exceptions in `known.txt`: findings from before a rule existed. The list only shrinks: a finding
//! beyond it fails the test, and so does an exception that no longer occurs.
//!
//! A line is `<rule> <subject> <count>`; `#` begins a comment.

use std::collections::BTreeMap;

use crate::Finding;

/// The number of known findings by rule and subject.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<(String, String), usize>);

impl Known {
    /// Reads `known.txt`.
    ///
    /// # Errors
    ///
    /// A line that does not have the three fields, or that repeats an earlier one.
    pub fn parse(text: &str) -> Result<Known, String> {
        let mut known = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry =
                parse_line(line).ok_or(format!("known.txt:{}: not `<rule> <subject> <count>`", index + 1))?;
            if known.insert(entry.0, entry.1).is_some() {
                return Err(format!("known.txt:{}: repeats an earlier line", index + 1));
            }
        }
        Ok(Known(known))
    }

    /// What the test has to report: findings beyond the exceptions, and exceptions beyond the findings. Empty
    /// when the two agree.
    pub fn compare(&self, findings: &[Finding]) -> Vec<String> {
        let mut found: BTreeMap<(String, String), Vec<&Finding>> = BTreeMap::new();
        for finding in findings {
            found.entry((finding.rule.to_owned(), finding.subject.clone())).or_default().push(finding);
        }
        let mut report = Vec::new();
        for (key, findings) in &found {
            let allowed = self.0.get(key).copied().unwrap_or(0);
            if findings.len() > allowed {
                report.extend(findings.iter().map(ToString::to_string));
            }
            if findings.len() > allowed && allowed > 0 {
                report.push(format!(
                    "  {} of these {} are in known.txt, for {}",
                    allowed,
                    findings.len(),
                    key.1
                ));
            }
        }
        for ((rule, subject), &allowed) in &self.0 {
            let count = found.get(&(rule.clone(), subject.clone())).map_or(0, Vec::len);
            if count < allowed {
                report.push(format!(
                    "known.txt: `{rule} {subject} {allowed}`: {count} are left; lower the count or delete the line"
                ));
            }
        }
        report
    }
}

/// The lines of a `known.txt` that allows exactly `findings`.
pub fn lines_for(findings: &[Finding]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry((finding.rule, &finding.subject)).or_default() += 1;
    }
    counts.into_iter().map(|((rule, subject), count)| format!("{rule} {subject} {count}")).collect()
}

fn parse_line(line: &str) -> Option<((String, String), usize)> {
    let mut fields = line.split(' ');
    let (rule, subject, count) = (fields.next()?, fields.next()?, fields.next()?.parse().ok()?);
    (fields.next().is_none() && count > 0).then(|| ((rule.to_owned(), subject.to_owned()), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(subject: &str, line: usize) -> Finding {
        Finding {
            rule: "lines",
            subject: subject.into(),
            file: subject.into(),
            line,
            advice: "too long".into(),
        }
    }

    #[test]
    fn a_finding_that_is_not_known_is_reported() {
        let report = Known::default().compare(&[finding("a.rs", 3)]);
        assert_eq!(report, ["a.rs:3: lines: too long"]);
    }

    #[test]
    fn known_findings_are_not_reported() {
        let known = Known::parse("# why\nlines a.rs 2\n").unwrap();
        assert_eq!(known.compare(&[finding("a.rs", 3), finding("a.rs", 9)]), [""; 0]);
    }

    #[test]
    fn one_more_than_known_reports_all_of_the_subject() {
        let known = Known::parse("lines a.rs 1").unwrap();
        assert_eq!(known.compare(&[finding("a.rs", 3), finding("a.rs", 9)]).len(), 3);
    }

    #[test]
    fn an_exception_that_no_longer_occurs_is_reported() {
        let report = Known::parse("lines a.rs 2").unwrap().compare(&[finding("a.rs", 3)]);
        assert_eq!(report.len(), 1);
        assert!(report[0].contains("1 are left"), "{report:?}");
    }

    #[test]
    fn malformed_and_repeated_lines_are_refused() {
        assert!(Known::parse("lines a.rs").is_err());
        assert!(Known::parse("lines a.rs 0").is_err());
        assert!(Known::parse("lines a.rs 1 more").is_err());
        assert!(Known::parse("lines a.rs 1\nlines a.rs 2").is_err());
    }

    #[test]
    fn the_lines_for_findings_allow_exactly_these() {
        let findings = [finding("a.rs", 3), finding("a.rs", 9), finding("b.rs", 1)];
        let lines = lines_for(&findings);
        assert_eq!(lines, ["lines a.rs 2", "lines b.rs 1"]);
        assert_eq!(Known::parse(&lines.join("\n")).unwrap().compare(&findings), [""; 0]);
    }
}
