//! Suggestions for a verb or flag that does not exist here but in other queue systems.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, Command};
use sluice_calls::near::{nearest, renamed};

/// Verbs of other queue systems, with the command that does the same here.
const VERBS: &[(&str, &str)] = &[
    ("add", "sluice send QUEUE PAYLOAD"),
    ("consume", "sluice receive QUEUE or sluice work QUEUE -- COMMAND"),
    ("create", "sluice queue set QUEUE --create, sluice namespace create NAME or sluice token create NAME"),
    ("dequeue", "sluice receive QUEUE"),
    ("dlq", "sluice dead list QUEUE"),
    ("enqueue", "sluice send QUEUE PAYLOAD"),
    ("fetch", "sluice receive QUEUE"),
    ("get", "sluice receive QUEUE, sluice message show ID or sluice doc get KEY"),
    ("health", "sluice status"),
    ("info", "sluice status"),
    ("list", "sluice queue list or sluice message list QUEUE"),
    ("ls", "sluice queue list"),
    ("peek", "sluice message peek QUEUE"),
    ("ping", "sluice status"),
    ("poll", "sluice receive QUEUE"),
    ("pop", "sluice receive QUEUE --ack"),
    ("produce", "sluice send QUEUE PAYLOAD"),
    ("publish", "sluice send QUEUE PAYLOAD"),
    ("pull", "sluice receive QUEUE"),
    ("push", "sluice send QUEUE PAYLOAD"),
    ("purge", "sluice queue purge QUEUE"),
    ("put", "sluice send QUEUE PAYLOAD or sluice doc put KEY FILE"),
    ("queues", "sluice queue list"),
    ("redrive", "sluice dead redrive QUEUE --all"),
    ("requeue", "sluice dead redrive QUEUE --all"),
    ("run", "sluice serve or sluice work QUEUE -- COMMAND"),
    ("server", "sluice serve"),
    ("start", "sluice serve"),
    ("stats", "sluice status, sluice queue list or sluice top"),
    ("subscribe", "sluice work QUEUE -- COMMAND or sluice events"),
    ("version", "sluice --version or sluice status"),
    ("worker", "sluice work QUEUE -- COMMAND"),
];

/// Verbs of a group that do not exist, with the command that does the same.
const GROUP_VERBS: &[(&str, &str, &str)] = &[
    ("queue", "create", "sluice queue set QUEUE --create; a send makes the queue, too"),
    ("queue", "add", "sluice queue set QUEUE --create; a send makes the queue, too"),
    ("queue", "clear", "sluice queue purge QUEUE"),
    ("queue", "empty", "sluice queue purge QUEUE"),
    (
        "queue",
        "drain",
        "sluice queue close QUEUE, which refuses sends while workers empty it, or sluice queue purge QUEUE",
    ),
    ("queue", "info", "sluice queue show QUEUE"),
    ("queue", "ls", "sluice queue list"),
    ("queue", "new", "sluice queue set QUEUE --create; a send makes the queue, too"),
    ("queue", "remove", "sluice queue delete QUEUE"),
    ("queue", "rm", "sluice queue delete QUEUE"),
    ("queue", "stats", "sluice queue show QUEUE"),
    ("queue", "update", "sluice queue set QUEUE"),
    ("dead", "purge", "sluice dead delete QUEUE --all"),
    ("dead", "requeue", "sluice dead redrive QUEUE --all"),
    ("dead", "retry", "sluice dead redrive QUEUE --all"),
    ("dead", "replay", "sluice dead redrive QUEUE --all"),
    ("doc", "add", "sluice doc put KEY FILE --if-absent"),
    ("doc", "create", "sluice doc put KEY FILE --if-absent"),
    ("doc", "find", "sluice doc query --where JSON"),
    ("doc", "ls", "sluice doc list"),
    ("doc", "remove", "sluice doc delete KEY"),
    ("doc", "rm", "sluice doc delete KEY"),
    ("doc", "search", "sluice doc query --where JSON"),
    ("doc", "set", "sluice doc put KEY FILE"),
    ("doc", "show", "sluice doc get KEY --show"),
    ("limit", "create", "sluice limit set NAME"),
    ("message", "delete", "sluice message cancel ID"),
    ("message", "find", "sluice message search QUEUE --where JSON"),
    ("message", "get", "sluice message show ID"),
    ("message", "send", "sluice send QUEUE PAYLOAD"),
    ("schedule", "create", "sluice schedule set NAME QUEUE PAYLOAD"),
    ("schedule", "add", "sluice schedule set NAME QUEUE PAYLOAD"),
    ("token", "delete", "sluice token revoke NAME"),
    ("token", "new", "sluice token create NAME"),
];

/// Settings of queues and messages that users look for at the verbs of workers, and where they are set.
const ATTEMPTS: (&str, &str) =
    ("max-attempts", "sluice queue set QUEUE --max-attempts N, because attempts are a setting of the queue");

/// Returns the suggestion for a wrong command line; `args` begin after the program's name. Removes clap's own
/// suggestion from the error if this one is better.
pub(super) fn suggestion(error: &mut Error, args: &[String], cli: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(tip) = text(ContextKind::InvalidArg).and_then(|given| negative_value(given, args, cli)) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        return None;
    }
    let is_spelt_nearly = error.get(ContextKind::SuggestedArg).is_some();
    let (meant, is_known) = match error.kind() {
        ErrorKind::InvalidSubcommand => (verb(text(ContextKind::InvalidSubcommand)?, args)?.to_owned(), true),
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg)?.strip_prefix("--")?;
            let flags = find_verb(cli, args).get_arguments().filter_map(|flag| flag.get_long());
            flag(given, &flags.collect::<Vec<_>>(), is_spelt_nearly)?
        }
        ErrorKind::MissingRequiredArgument => (all_instead_of_ids(error, find_verb(cli, args))?, false),
        _ => return None,
    };
    if is_known {
        // The error names the flag that clap suggests.
        if is_spelt_nearly {
            error.remove(ContextKind::Usage);
        }
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::Suggested] {
            error.remove(kind);
        }
    }
    Some(meant)
}

/// Explains a negative number behind a flag, which clap takes for a flag of its own.
fn negative_value(given: &str, args: &[String], cli: &Command) -> Option<StyledStr> {
    let digit = given.strip_prefix('-')?.chars().next()?;
    let at = args.iter().position(|arg| arg.starts_with(given)).filter(|_| digit.is_ascii_digit())?;
    let before = args[..at].last()?;
    let is_before = |flag: &&Arg| {
        let short = flag.get_short().is_some_and(|short| *before == format!("-{short}"));
        short || before.strip_prefix("--").is_some_and(|name| flag.get_long() == Some(name))
    };
    let flag = find_verb(cli, args).get_arguments().find(is_before)?;
    let takes_value = flag.get_action().takes_values();
    takes_value.then(|| {
        format!("no number or duration is negative; a text that begins with '-' is given as {before}=TEXT")
            .into()
    })
}

/// Suggests `--all` where ids are missing and the verb has that flag.
fn all_instead_of_ids(error: &Error, verb: &Command) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let takes_all = verb.get_arguments().any(|flag| flag.get_long() == Some("all"));
    (takes_all && missing.iter().any(|arg| arg.starts_with("<ID>"))).then(|| "--all".to_owned())
}

/// Suggests a flag, and says whether the suggestion is certain. clap itself finds similar spellings.
fn flag(given: &str, flags: &[&str], is_spelt_nearly: bool) -> Option<(String, bool)> {
    if let Some(flag) = renamed(given, flags) {
        return Some((format!("--{flag}"), true));
    }
    if renamed(given, &[ATTEMPTS.0]).is_some() {
        return Some((ATTEMPTS.1.to_owned(), true));
    }
    let guessed = nearest(given, flags).filter(|_| !is_spelt_nearly)?;
    Some((format!("--{guessed}"), false))
}

fn verb(given: &str, args: &[String]) -> Option<&'static str> {
    // The options of the server stand behind the verb by now, and the others take no value.
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-')).collect();
    let at = words.iter().position(|arg| *arg == given)?;
    let group = at.checked_sub(1).map_or("", |at| words[at]);
    let in_group = GROUP_VERBS.iter().find(|(name, verb, _)| *name == group && *verb == given);
    let alone = || VERBS.iter().find(|(name, _)| *name == given).map(|(_, here)| *here);
    in_group.map(|(_, _, here)| *here).or_else(|| alone().filter(|_| at == 0))
}

/// The verb that the arguments begin with.
pub(super) fn find_verb<'a>(cli: &'a Command, args: &[String]) -> &'a Command {
    let mut level = cli;
    for arg in args.iter().filter(|arg| !arg.starts_with("--")) {
        match level.find_subcommand(arg) {
            Some(verb) => level = verb,
            None => break,
        }
    }
    level
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::super::Cli;
    use super::*;

    fn meant_by(line: &str) -> Option<String> {
        told(line).1
    }

    /// Error of clap for a command line, and the suggestion.
    fn told(line: &str) -> (String, Option<String>) {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut error = Cli::try_parse_from([&["sluice".to_owned()], &args[..]].concat()).unwrap_err();
        let meant = suggestion(&mut error, &args, &Cli::command());
        (error.to_string(), meant)
    }

    #[test]
    fn what_is_known_stands_above_what_is_spelt_nearly_so() {
        for (line, expected, misleading) in [
            (
                "work q --max-retries 3 -- true",
                "sluice queue set QUEUE --max-attempts N",
                "'-- --max-retries'",
            ),
            ("work q --retries 3 -- true", "sluice queue set QUEUE --max-attempts N", "'-- --retries'"),
            ("queue set q --max-retries 3", "--max-attempts", "--max-bytes"),
            ("send q x --retries 3", "--max-attempts", "--ordering-key"),
            ("queue remove q", "sluice queue delete QUEUE", "resume"),
        ] {
            let (told, meant) = told(line);
            assert!(meant.as_deref().unwrap_or("").starts_with(expected), "{line}: {meant:?}");
            assert!(!told.contains(misleading), "{told}");
        }
        let (told, meant) = told("queue set q --max-bites 3");
        assert!(told.contains("--max-bytes") && meant.is_none(), "{told}: {meant:?}");
    }

    #[test]
    fn no_tip_for_a_negative_value_leads_to_another_error() {
        for line in
            ["queue set q --max-messages -1", "send q x --delay -5s", "send q x -d -5s", "send q x --tag -5"]
        {
            let (told, meant) = told(line);
            assert!(told.contains("no number or duration is negative"), "{told}");
            assert!(!told.contains("'-- -") && meant.is_none(), "{told}: {meant:?}");
        }
        assert!(told("send q -1").0.contains("use '-- -1'"));
    }

    #[test]
    fn verbs_and_flags_of_other_queues_are_known() {
        for (line, expected) in [
            ("publish q x", "sluice send QUEUE PAYLOAD"),
            ("--json publish q x", "sluice send QUEUE PAYLOAD"),
            ("queue --json info q", "sluice queue show QUEUE"),
            ("queue create q", "sluice queue set QUEUE --create; a send makes the queue, too"),
            (
                "create q",
                "sluice queue set QUEUE --create, sluice namespace create NAME or sluice token create NAME",
            ),
            ("send q x --max-retries 3", "--max-attempts"),
            ("receive q --visibility-timeout 3s", "--lease"),
            ("receive q --count 3", "--max"),
            ("receive q --limit 3", "--max"),
            ("dead redrive q", "--all"),
            ("dead delete q --yes", "--all"),
            ("serve --port 7070", "--listen"),
            ("serve --host 0.0.0.0", "--listen"),
            ("peek q", "sluice message peek QUEUE"),
            ("ping", "sluice status"),
            ("version", "sluice --version or sluice status"),
            ("list", "sluice queue list or sluice message list QUEUE"),
            ("dead requeue q", "sluice dead redrive QUEUE --all"),
            ("queue new q", "sluice queue set QUEUE --create; a send makes the queue, too"),
        ] {
            assert_eq!(meant_by(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(meant_by("frobnicate"), None);
        assert_eq!(meant_by("queue publish q"), None);
    }

    /// A verb that is named here has to be one, and those of others are none.
    #[test]
    fn the_tables_name_verbs_that_are_there() {
        let cli = Cli::command();
        for (given, here) in VERBS {
            assert!(cli.find_subcommand(given).is_none(), "{given}");
            for line in here.split(" or ").flat_map(|part| part.split(", ")) {
                assert!(names_a_verb(&cli, line), "{given}: {line}");
            }
        }
        for (group, given, here) in GROUP_VERBS {
            assert!(cli.find_subcommand(group).unwrap().find_subcommand(given).is_none(), "{group} {given}");
            assert!(names_a_verb(&cli, here), "{group} {given}: {here}");
        }
    }

    fn names_a_verb(cli: &Command, line: &str) -> bool {
        let words: Vec<String> = line.split([' ', ';']).skip(1).map(str::to_owned).collect();
        let verb = find_verb(cli, &words);
        line == "sluice --version"
            || line.trim().starts_with("sluice ") && verb.get_name() != "sluice" && !verb.has_subcommands()
    }
}
