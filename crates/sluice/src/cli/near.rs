//! What was probably meant by a verb or a flag that does not exist here but in other queues.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use sluice_front::near::nearest;

/// Verbs of other queues, and what does the same here.
const VERBS: &[(&str, &str)] = &[
    ("add", "sluice send QUEUE PAYLOAD"),
    ("consume", "sluice receive QUEUE or sluice work QUEUE -- COMMAND"),
    ("create", "sluice queue set QUEUE --create, sluice namespace create NAME or sluice token create NAME"),
    ("dequeue", "sluice receive QUEUE"),
    ("dlq", "sluice dead list QUEUE"),
    ("enqueue", "sluice send QUEUE PAYLOAD"),
    ("fetch", "sluice receive QUEUE"),
    ("get", "sluice receive QUEUE or sluice message show ID"),
    ("health", "sluice status"),
    ("info", "sluice status"),
    ("ls", "sluice queue list"),
    ("poll", "sluice receive QUEUE"),
    ("pop", "sluice receive QUEUE --ack"),
    ("produce", "sluice send QUEUE PAYLOAD"),
    ("publish", "sluice send QUEUE PAYLOAD"),
    ("pull", "sluice receive QUEUE"),
    ("push", "sluice send QUEUE PAYLOAD"),
    ("put", "sluice send QUEUE PAYLOAD"),
    ("queues", "sluice queue list"),
    ("run", "sluice serve or sluice work QUEUE -- COMMAND"),
    ("server", "sluice serve"),
    ("start", "sluice serve"),
    ("stats", "sluice status, sluice queue list or sluice top"),
    ("subscribe", "sluice work QUEUE -- COMMAND or sluice events"),
    ("worker", "sluice work QUEUE -- COMMAND"),
];

/// Verbs of a group.
const GROUP_VERBS: &[(&str, &str, &str)] = &[
    ("queue", "create", "sluice queue set QUEUE --create; a send makes the queue, too"),
    ("queue", "add", "sluice queue set QUEUE --create; a send makes the queue, too"),
    ("queue", "clear", "sluice queue purge QUEUE"),
    ("queue", "empty", "sluice queue purge QUEUE"),
    ("queue", "drain", "sluice queue purge QUEUE"),
    ("queue", "info", "sluice queue show QUEUE"),
    ("queue", "ls", "sluice queue list"),
    ("queue", "rm", "sluice queue delete QUEUE"),
    ("queue", "stats", "sluice queue show QUEUE"),
    ("queue", "update", "sluice queue set QUEUE"),
    ("dead", "purge", "sluice dead delete QUEUE --all"),
    ("dead", "retry", "sluice dead redrive QUEUE --all"),
    ("dead", "replay", "sluice dead redrive QUEUE --all"),
    ("limit", "create", "sluice limit set NAME"),
    ("message", "delete", "sluice message cancel ID"),
    ("message", "get", "sluice message show ID"),
    ("message", "send", "sluice send QUEUE PAYLOAD"),
    ("schedule", "create", "sluice schedule set NAME QUEUE PAYLOAD"),
    ("schedule", "add", "sluice schedule set NAME QUEUE PAYLOAD"),
    ("token", "delete", "sluice token revoke NAME"),
    ("token", "new", "sluice token create NAME"),
];

/// What was probably meant by a mistake on the command line `args`, which begin behind the program's name.
pub(super) fn meant(error: &Error, args: &[String], cli: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb(text(ContextKind::InvalidSubcommand)?, args).map(str::to_owned),
        // What is spelt nearly so is found by clap.
        ErrorKind::UnknownArgument if error.get(ContextKind::SuggestedArg).is_none() => {
            let given = text(ContextKind::InvalidArg)?.strip_prefix("--")?;
            let flags = of_verb(cli, args).get_arguments().filter_map(|flag| flag.get_long());
            nearest(given, &flags.collect::<Vec<_>>()).map(|flag| format!("--{flag}"))
        }
        _ => None,
    }
}

fn verb(given: &str, args: &[String]) -> Option<&'static str> {
    // Options of the server stand behind it by now, and the others take no value.
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-')).collect();
    let at = words.iter().position(|arg| *arg == given)?;
    let group = at.checked_sub(1).map_or("", |at| words[at]);
    let in_group = GROUP_VERBS.iter().find(|(name, verb, _)| *name == group && *verb == given);
    let alone = || VERBS.iter().find(|(name, _)| *name == given).map(|(_, here)| *here);
    in_group.map(|(_, _, here)| *here).or_else(|| alone().filter(|_| at == 0))
}

/// The verb that the arguments begin with.
fn of_verb<'a>(cli: &'a Command, args: &[String]) -> &'a Command {
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
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from([&["sluice".to_owned()], &args[..]].concat()).unwrap_err();
        meant(&error, &args, &Cli::command())
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
        let verb = of_verb(cli, &words);
        line.trim().starts_with("sluice ") && verb.get_name() != "sluice" && !verb.has_subcommands()
    }
}
