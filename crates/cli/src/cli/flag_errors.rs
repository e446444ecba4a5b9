//! Errors of the server in terms of the command line: the flag instead of the JSON field, the value as it was
//! typed, and limits in the flag's unit.

use std::time::Duration;

use clap::Command;
use sluice_units::{parse_duration, parse_size, show_duration, show_size};

use super::CliError;

/// Fields whose flags have other names.
const FLAGS: &[(&str, &str)] =
    &[("result_ttl_ms", "keep-result"), ("after", "since"), ("content_type", "type")];

/// A flag that was given, whose value has a unit.
struct GivenFlag {
    flag: String,
    text: String,
    number: u64,
    is_size: bool,
}

impl GivenFlag {
    fn show(&self, number: u64) -> String {
        if self.is_size { show_size(number) } else { show_duration(Duration::from_millis(number)) }
    }
}

/// Rewrites `error` for the command line `args` of `verb`. Returns it unchanged if it names no field that was
/// given by a flag.
pub(super) fn in_terms_of_flags(error: CliError, args: &[String], verb: &Command) -> CliError {
    let Some(field) = error.details()["field"].as_str() else { return error };
    let rest = error.message().strip_prefix(field).and_then(|rest| rest.strip_prefix(": "));
    let Some(rest) = rest else { return error };
    let Some(given) = given(field, args, verb) else {
        let told = renamed(field, args, verb).map(|flag| format!("--{flag}: {rest}"));
        return if let Some(told) = told { error.with_message(told) } else { error };
    };
    let rest = without_number(rest, given.number);
    let flag = format!("{} {}", given.flag, given.text);
    let told = match rest.strip_prefix(&given.number.to_string()).and_then(|rest| rest.strip_prefix(' ')) {
        Some(rest) => format!("{flag} {}", with_units(rest, &given, args, verb)),
        None => format!("{flag}: {}", with_units(&rest, &given, args, verb)),
    };
    error.with_message(told)
}

/// The flag of another name that gave a field.
fn renamed(field: &str, args: &[String], verb: &Command) -> Option<&'static str> {
    let flag = FLAGS.iter().find(|(of, _)| *of == field).map(|(_, flag)| *flag)?;
    let given = verb.get_arguments().find(|known| known.get_long() == Some(flag))?;
    value(args, flag, given.get_short()).map(|_| flag)
}

/// Finds the flag that gave a field, with its text.
fn given(field: &str, args: &[String], verb: &Command) -> Option<GivenFlag> {
    let is_size = field.ends_with("bytes");
    let name = if is_size { field } else { field.strip_suffix("_ms")? };
    let elsewhere = FLAGS.iter().find(|(of, _)| *of == field).map(|(_, flag)| (*flag).to_owned());
    let long = elsewhere.unwrap_or_else(|| name.replace(['_', '.'], "-"));
    let flag = verb.get_arguments().find(|flag| flag.get_long() == Some(&long))?;
    let text = value(args, &long, flag.get_short())?;
    let number = if is_size { parse_size(&text).ok()? } else { millis(&text)? };
    Some(GivenFlag { flag: format!("--{long}"), text, number, is_size })
}

/// The last value of a flag in `args`.
fn value(args: &[String], long: &str, short: Option<char>) -> Option<String> {
    let args: Vec<&str> = args.iter().map(String::as_str).take_while(|arg| *arg != "--").collect();
    let next = |at: usize| args.get(at + 1).map(|next| (*next).to_owned());
    (0..args.len()).rev().find_map(|at| {
        let (arg, short) = (args[at], short.map(|short| format!("-{short}")));
        match arg.strip_prefix("--") {
            Some(name) if name == long => next(at),
            Some(name) => name.strip_prefix(long)?.strip_prefix('=').map(str::to_owned),
            None => match arg.strip_prefix(&short?)? {
                "" => next(at),
                joined => Some(joined.trim_start_matches('=').to_owned()),
            },
        }
    })
}

/// Replaces other fields by their flags, and numbers by values in the unit of `given`.
fn with_units(rest: &str, given: &GivenFlag, args: &[String], verb: &Command) -> String {
    let words = rest.split(' ').map(|word| {
        let bare = word.trim_end_matches([',', ';', ':', '.']);
        let end = &word[bare.len()..];
        match bare.parse() {
            Ok(number) => format!("{}{end}", given.show(number)),
            Err(_) => match self::given(bare, args, verb) {
                Some(other) => format!("{}{end}", other.flag),
                None => word.to_owned(),
            },
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn millis(text: &str) -> Option<u64> {
    u64::try_from(parse_duration(text).ok()?.as_millis()).ok()
}

/// The expected range, without the number that was given, because the message begins with its flag.
fn without_number(rest: &str, number: u64) -> String {
    let [plain, quoted] = [format!(", got {number}"), format!(", got \"{number}\"")];
    rest.strip_suffix(&plain).or(rest.strip_suffix(&quoted)).unwrap_or(rest).replacen(
        "expected a number from",
        "expected",
        1,
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use serde_json::json;

    use super::super::{Cli, suggest};
    use super::*;

    #[test]
    fn fields_that_flags_have_given_are_told_as_flags() {
        for (line, field, message, expected) in [
            (
                "send q x --delay 4000d",
                "delay_ms",
                "delay_ms: 345600000000 is too much: use at most 316224000000",
                "--delay 4000d is too much: use at most 3660d",
            ),
            (
                "send q x -d96000h",
                "delay_ms",
                "delay_ms: 345600000000 is too much: use at most 316224000000",
                "--delay 96000h is too much: use at most 3660d",
            ),
            (
                "send q x --ttl=1s --delay 5s",
                "ttl_ms",
                "ttl_ms: 1000 is not after delay_ms 5000",
                "--ttl 1s is not after --delay 5s",
            ),
            (
                "receive q --wait 2m",
                "wait_ms",
                "wait_ms: expected a number from 0 to 60000, got 120000",
                "--wait 2m: expected 0s to 1m",
            ),
            (
                "send q x --keep-result 99999d",
                "result_ttl_ms",
                "result_ttl_ms: 8639913600000 is too much: use at most 604800000",
                "--keep-result 99999d is too much: use at most 7d",
            ),
            ("events --since x", "after", "after: \"x\" is no id", "--since: \"x\" is no id"),
            ("events", "after", "after: \"x\" is no id", "after: \"x\" is no id"),
            ("send q x", "delay_ms", "delay_ms: 5 is too much", "delay_ms: 5 is too much"),
            ("send q x --priority 9", "priority", "priority: 9 is too much", "priority: 9 is too much"),
        ] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = CliError::server("invalid_argument", message, &json!({"field": field}));
            let cli = Cli::command();
            assert_eq!(
                in_terms_of_flags(error, &args, suggest::find_verb(&cli, &args)).message(),
                expected,
                "{line}"
            );
        }
    }
}
