//! The table of settings as command-line flags.

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::table::SETTINGS;

/// The flags given on the command line: key and text.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags {
    pub(crate) given: Vec<(&'static str, String)>,
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| {
            let help = format!("{} [default: {}; env: {}]", setting.doc, setting.default, setting.env());
            let heading = match setting.section() {
                None => "Settings",
                Some("log") => "Settings: log",
                Some("limits") => "Settings: limits",
                Some("http") => "Settings: HTTP",
                Some("access") => "Settings: access",
                Some("guard") => "Settings: guard against abuse",
                Some("events") => "Settings: events",
                Some(other) => other,
            };
            let arg = Arg::new(setting.key)
                .long(setting.flag())
                .value_name(setting.placeholder)
                .help(help)
                .help_heading(heading)
                .action(if setting.is_list() { ArgAction::Append } else { ArgAction::Set });
            command.arg(match (setting.is_list(), setting.is_switch()) {
                (true, _) => arg,
                (_, true) => arg
                    .overrides_with(setting.key)
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
                _ => arg.overrides_with(setting.key),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = SettingFlags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.given = SETTINGS
            .iter()
            .filter_map(|s| {
                let texts: Vec<&str> = matches.get_many::<String>(s.key)?.map(String::as_str).collect();
                Some((s.key, texts.join(",")))
            })
            .collect();
        Ok(())
    }
}
