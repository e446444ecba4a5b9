//! The policy file: who may do what, how often, and which certificates count no more.
//!
//! TOML. Every mistake is told, with its line and its field, and a file with a mistake is not used at all.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::certificate::normal_serial;
use super::identity::Grant;
use super::pattern::Patterns;
use super::rate::{RATE_MAX, RequestRate};
use super::right::{Role, Roles};
use crate::wording::counted;

/// Largest policy file, in bytes.
pub const POLICY_BYTES_MAX: usize = 1 << 20;
/// Most rules, rates and serial numbers.
const ENTRIES_MAX: usize = 10_000;
/// Most patterns of a list.
const PATTERNS_MAX: usize = 1_000;
/// Most characters of a value that a mistake shows.
const SHOWN_CHARS_MAX: usize = 60;
/// Longest name of a rule, in bytes.
const RULE_NAME_BYTES_MAX: usize = 128;
/// Length of the part of a digest that tells policies apart, in bytes.
const FINGERPRINT_BYTES: usize = 4;

/// The contents of a policy file.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    rates: Vec<Rate>,
    /// Serial numbers; `None`: the file does not say.
    revoked: Option<HashSet<String>>,
    /// Digest of the text; empty: there is no file.
    fingerprint: String,
}

#[derive(Clone, Debug)]
struct Rule {
    identities: Patterns,
    grant: Arc<Grant>,
}

#[derive(Clone, Debug)]
struct Rate {
    identities: Patterns,
    rate: RequestRate,
}

/// One thing that is wrong with a policy file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The field, and what would be right.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of its lines.
    pub fn parse(text: &str) -> Result<Policy, Vec<Mistake>> {
        if text.len() > POLICY_BYTES_MAX {
            let message = format!("the file has {} bytes, more than {POLICY_BYTES_MAX}", text.len());
            return Err(vec![Mistake { line: 1, message }]);
        }
        let mut reading = Reading { text, mistakes: Vec::new() };
        let policy = match DeTable::parse(text) {
            Ok(table) => reading.policy(table.get_ref()),
            Err(error) => {
                let at = error.span().unwrap_or_default();
                reading.mistake(at, format!("not valid TOML: {}", error.message()));
                Policy::default()
            }
        };
        reading.mistakes.sort_by_key(|mistake| mistake.line);
        let digest = digest(&SHA256, text.as_bytes());
        let fingerprint = HEXLOWER.encode(&digest.as_ref()[..FINGERPRINT_BYTES]);
        if reading.mistakes.is_empty() { Ok(Policy { fingerprint, ..policy }) } else { Err(reading.mistakes) }
    }

    /// Checks that another policy, which is to count in its place, is not half written.
    ///
    /// # Errors
    /// The end of a sentence whose subject is the other policy: it says nothing of certificates that this one
    /// revokes.
    pub(super) fn check_next(&self, next: &Policy) -> Result<(), String> {
        let revoked = self.revoked.as_ref().map_or(0, HashSet::len);
        if revoked == 0 || next.revoked.is_some() {
            return Ok(());
        }
        Err(format!(
            "has no [revoked], and the policy in force revokes {}: if it is half written, write the rest; if what \
             is revoked is to count again, write [revoked] with serials = []",
            counted(revoked as u64, "certificate")
        ))
    }

    /// A short text that tells it from other policies; empty: there is no file.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// True if it has rules.
    pub(super) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The grants of an identity.
    pub(crate) fn grants_of(&self, identity: &str) -> impl Iterator<Item = Arc<Grant>> {
        let fitting = self.rules.iter().filter(move |rule| rule.identities.fit(identity));
        fitting.map(|rule| Arc::clone(&rule.grant))
    }

    /// The request rate of an identity: the first that names it.
    pub(super) fn rate_of(&self, identity: &str) -> Option<RequestRate> {
        self.rates.iter().find(|rate| rate.identities.fit(identity)).map(|rate| rate.rate)
    }

    /// True if a certificate is revoked.
    pub(super) fn revokes(&self, serial: &str) -> bool {
        let Some(revoked) = self.revoked.as_ref().filter(|revoked| !revoked.is_empty()) else { return false };
        normal_serial(serial).is_ok_and(|serial| revoked.contains(&serial))
    }
}

type Value<'t> = Spanned<DeValue<'t>>;

struct Reading<'t> {
    text: &'t str,
    mistakes: Vec<Mistake>,
}

/// The fields of one table, and the words by which mistakes name it.
struct Fields<'v, 't> {
    table: &'v DeTable<'t>,
    at: Range<usize>,
    name: String,
}

impl<'t> Reading<'t> {
    fn mistake(&mut self, at: Range<usize>, message: String) {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        self.mistakes.push(Mistake { line, message });
    }

    /// A value as it stands in the file, for mistakes.
    fn shown(&self, value: &Value<'t>) -> String {
        let source = self.text.get(value.span()).unwrap_or_default();
        let line =
            source.lines().next().filter(|line| !line.is_empty()).unwrap_or(value.get_ref().type_str());
        match line.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((at, _)) => format!("{}...", &line[..at]),
            None => line.to_owned(),
        }
    }

    fn expected(&mut self, value: &Value<'t>, field: &str, expected: &str) {
        let message = format!("{field}: expected {expected}, got {}", self.shown(value));
        self.mistake(value.span(), message);
    }

    fn policy(&mut self, table: &DeTable<'t>) -> Policy {
        let mut policy = Policy::default();
        self.known(table, "", &["rule", "rate", "revoked"]);
        let mut names = HashSet::new();
        for (at, fields) in self.tables(table, "rule") {
            let fields = Fields { name: format!("rule {}", at + 1), ..fields };
            if let Some(rule) = self.rule(&fields, &mut names) {
                policy.rules.push(rule);
            }
        }
        for (at, fields) in self.tables(table, "rate") {
            let fields = Fields { name: format!("rate {}", at + 1), ..fields };
            if let Some(rate) = self.rate(&fields) {
                policy.rates.push(rate);
            }
        }
        if let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == "revoked") {
            match value.get_ref().as_table() {
                Some(inner) => policy.revoked = self.revoked(inner, value.span()),
                None => self.expected(value, "revoked", "a table [revoked]"),
            }
        }
        policy
    }

    fn rule(&mut self, fields: &Fields<'_, 't>, names: &mut HashSet<String>) -> Option<Rule> {
        self.known(
            fields.table,
            &fields.name,
            &["name", "identities", "role", "namespaces", "queues", "keys"],
        );
        let name = self.rule_name(fields, names);
        let identities = self.patterns(fields, "identities", None);
        let role = self.role(fields);
        let namespaces = self.patterns(fields, "namespaces", Some("default"));
        let queues = self.patterns(fields, "queues", Some("*"));
        // Who has a right in some queues only has it with the keys that the rule names.
        let is_of_some = queues.as_ref().is_some_and(|queues| !queues.fit_all());
        let keys = match self.field(fields, "keys") {
            None if is_of_some => Some(Patterns::none()),
            _ => self.patterns(fields, "keys", Some("*")),
        };
        let grant = Grant {
            rule: format!("rule {:?} ({})", name?, role?.name()).into(),
            roles: Roles::of(&[role?]),
            namespaces: namespaces?,
            queues: queues?,
            keys: keys?,
        };
        Some(Rule { identities: identities?, grant: Arc::new(grant) })
    }

    fn rule_name(&mut self, fields: &Fields<'_, 't>, names: &mut HashSet<String>) -> Option<String> {
        let (name, at) = self.string(fields, "name")?;
        if name.is_empty() || name.len() > RULE_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
            let message = format!(
                "{}: name: expected 1 to {RULE_NAME_BYTES_MAX} bytes without control characters, got {} bytes: {shown:?}",
                fields.name,
                name.len()
            );
            self.mistake(at, message);
            return None;
        }
        if !names.insert(name.clone()) {
            self.mistake(at, format!("{}: name: {name:?} is the name of a rule before", fields.name));
            return None;
        }
        Some(name)
    }

    fn role(&mut self, fields: &Fields<'_, 't>) -> Option<Role> {
        let (text, at) = self.string(fields, "role")?;
        let role = Role::from_name(&text);
        if role.is_none() {
            let known = Role::ALL.map(Role::name).join(", ");
            self.mistake(at, format!("{}: role: {text:?} is not a role: expected {known}", fields.name));
        }
        role
    }

    fn rate(&mut self, fields: &Fields<'_, 't>) -> Option<Rate> {
        self.known(fields.table, &fields.name, &["identities", "requests_per_s", "burst"]);
        let identities = self.patterns(fields, "identities", None);
        let per_s = self.number(fields, "requests_per_s", true);
        let burst = self.number(fields, "burst", false);
        let rate = RequestRate { per_s: per_s??, burst: burst?.or(per_s?)? };
        Some(Rate { identities: identities?, rate })
    }

    fn revoked(&mut self, table: &DeTable<'t>, at: Range<usize>) -> Option<HashSet<String>> {
        self.known(table, "revoked", &["serials"]);
        let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == "serials") else {
            if table.is_empty() {
                self.mistake(at, "revoked: serials is missing: expected a list of strings".to_owned());
            }
            return None;
        };
        let Some(list) = value.get_ref().as_array() else {
            self.expected(value, "revoked: serials", "a list of strings");
            return None;
        };
        if list.len() > ENTRIES_MAX {
            let message = format!("revoked: serials: {} are more than {ENTRIES_MAX}", list.len());
            self.mistake(value.span(), message);
            return None;
        }
        let mut serials = HashSet::new();
        for serial in list.iter() {
            match serial.get_ref().as_str().map(normal_serial) {
                Some(Ok(serial)) => {
                    serials.insert(serial);
                }
                Some(Err(reason)) => self.mistake(serial.span(), format!("revoked: serials: {reason}")),
                None => self.expected(serial, "revoked: serials", "strings"),
            }
        }
        Some(serials)
    }

    /// The tables of a list `[[name]]`.
    fn tables<'v>(&mut self, table: &'v DeTable<'t>, name: &str) -> Vec<(usize, Fields<'v, 't>)> {
        let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.expected(value, name, &format!("tables [[{name}]]"));
            return Vec::new();
        };
        if list.len() > ENTRIES_MAX {
            self.mistake(value.span(), format!("{name}: {} are more than {ENTRIES_MAX}", list.len()));
            return Vec::new();
        }
        let mut found = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            match entry.get_ref().as_table() {
                Some(table) => found.push((at, Fields { table, at: entry.span(), name: String::new() })),
                None => self.expected(entry, name, &format!("tables [[{name}]]")),
            }
        }
        found
    }

    fn known(&mut self, table: &DeTable<'t>, inside: &str, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let inside = if inside.is_empty() { String::new() } else { format!("{inside}: ") };
            let known = known.join(", ");
            self.mistake(key.span(), format!("{inside}{:?} is not a field: expected {known}", key.get_ref()));
        }
    }

    fn field<'v>(&mut self, fields: &Fields<'v, 't>, name: &str) -> Option<&'v Value<'t>> {
        fields.table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
    }

    fn required<'v>(&mut self, fields: &Fields<'v, 't>, name: &str) -> Option<&'v Value<'t>> {
        let found = self.field(fields, name);
        if found.is_none() {
            self.mistake(fields.at.clone(), format!("{}: {name} is missing", fields.name));
        }
        found
    }

    fn string(&mut self, fields: &Fields<'_, 't>, name: &str) -> Option<(String, Range<usize>)> {
        let value = self.required(fields, name)?;
        match value.get_ref().as_str() {
            Some(text) => Some((text.to_owned(), value.span())),
            None => {
                self.expected(value, &format!("{}: {name}", fields.name), "a string");
                None
            }
        }
    }

    /// `None`: there is a mistake; `Some(None)`: it is not given.
    fn number(&mut self, fields: &Fields<'_, 't>, name: &str, required: bool) -> Option<Option<u32>> {
        let value = if required { Some(self.required(fields, name)?) } else { self.field(fields, name) };
        let Some(value) = value else { return Some(None) };
        let read = value.get_ref().as_integer();
        let read = read.and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok());
        match read.filter(|number| (1..=RATE_MAX).contains(number)) {
            Some(number) => Some(Some(number)),
            None => {
                let expected = format!("a number from 1 to {RATE_MAX}");
                self.expected(value, &format!("{}: {name}", fields.name), &expected);
                None
            }
        }
    }

    fn patterns(&mut self, fields: &Fields<'_, 't>, name: &str, default: Option<&str>) -> Option<Patterns> {
        let value = match default {
            None => self.required(fields, name)?,
            Some(default) => match self.field(fields, name) {
                Some(value) => value,
                None => return Patterns::new(&[default]).ok(),
            },
        };
        let field = format!("{}: {name}", fields.name);
        let texts = self.texts(value, &field)?;
        // Identities may be URIs, and keys are free.
        let read = if matches!(name, "namespaces" | "queues") {
            Patterns::of_names(&texts)
        } else {
            Patterns::new(&texts)
        };
        match read {
            Ok(patterns) => Some(patterns),
            Err((at, reason)) => {
                let at = value.get_ref().as_array().and_then(|list| list.get(at));
                self.mistake(at.map_or(value.span(), Spanned::span), format!("{field}: {reason}"));
                None
            }
        }
    }

    fn texts<'v>(&mut self, value: &'v Value<'t>, field: &str) -> Option<Vec<&'v str>> {
        let expected = format!("a list of 1 to {PATTERNS_MAX} strings");
        let list = value.get_ref().as_array().filter(|list| !list.is_empty());
        let Some(list) = list else {
            self.expected(value, field, &expected);
            return None;
        };
        if list.len() > PATTERNS_MAX {
            self.mistake(value.span(), format!("{field}: expected {expected}, got {} of them", list.len()));
            return None;
        }
        let mut texts = Vec::new();
        for item in list.iter() {
            match item.get_ref().as_str() {
                Some(text) => texts.push(text),
                None => {
                    let message = format!("{field}: expected {expected}, got {} in it", self.shown(item));
                    self.mistake(item.span(), message);
                    return None;
                }
            }
        }
        Some(texts)
    }
}

#[cfg(test)]
mod tests;
