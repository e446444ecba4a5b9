//! Options of the server before the verb: `sluice --server URL send ...`.
//!
//! These options belong to the verbs that talk to a server. They are moved behind the verb before parsing; a
//! verb that takes no such option refuses it there.

use std::ffi::{OsStr, OsString};

use clap::{Args as _, Command};

use super::connect::ServerFlags;

/// Moves the server's options that stand before the verb, or between a group and its verb, behind the verb.
/// The first argument that is not such an option ends the search.
pub(super) fn move_behind_verb(args: Vec<OsString>, cli: &Command) -> Vec<OsString> {
    let flags = ServerFlags::augment_args(Command::new("server"));
    let mut args = args.into_iter().peekable();
    let mut front: Vec<OsString> = args.next().into_iter().collect();
    let (mut moved, mut level) = (Vec::new(), cli);
    while let Some(arg) = args.peek() {
        if let Some(takes_next) = option(&flags, arg) {
            moved.extend(args.next());
            moved.extend(takes_next.then(|| args.next()).flatten());
        } else if arg == "--json" {
            front.extend(args.next());
        } else if let Some(verb) = level.find_subcommand(arg) {
            level = verb;
            front.extend(args.next());
        } else {
            break;
        }
    }
    if !level.has_subcommands() {
        front.extend(moved);
        front.extend(args);
    } else if args.peek().is_some() {
        // Not a verb: report that, and not that the options before it belong to none.
        front.extend(args);
        front.extend(moved);
    }
    front
}

/// Returns `None` for an argument that is no option of a server, else whether its value is the next argument.
fn option(flags: &Command, arg: &OsStr) -> Option<bool> {
    let text = arg.to_str()?;
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        return flags.get_arguments().any(|flag| flag.get_long() == Some(name)).then_some(value.is_none());
    }
    let mut letters = text.strip_prefix('-')?.chars();
    let short = letters.next()?;
    let known = flags.get_arguments().any(|flag| flag.get_short() == Some(short));
    known.then(|| letters.next().is_none())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    fn moved(line: &str) -> String {
        let args = line.split(' ').map(OsString::from).collect();
        let args = move_behind_verb(args, &Cli::command());
        args.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn options_of_the_server_may_stand_before_the_verb() {
        for (line, expected) in [
            ("sluice --server u send q x", "sluice send --server u q x"),
            ("sluice -n shop --json queue --ca=f list", "sluice --json queue list -n shop --ca=f"),
            ("sluice -nshop queue show list", "sluice queue show -nshop list"),
            (
                "sluice work --server u q -- sluice --server v",
                "sluice work --server u q -- sluice --server v",
            ),
            ("sluice --server u --help", "sluice --help --server u"),
            ("sluice --server u sned q", "sluice sned q --server u"),
            ("sluice --server u queue", "sluice queue"),
            ("sluice --server", "sluice"),
        ] {
            assert_eq!(moved(line), expected);
        }
    }
}
