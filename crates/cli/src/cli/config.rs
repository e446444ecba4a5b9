//! `sluice config`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::output::Table;
use super::{CliError, Out, Result};
use crate::config::{self, SETTINGS, SettingFlags, Sources};

#[derive(Debug, Args)]
#[command(after_help = "Accepts the flags of `sluice serve`, to show their effect: sluice config --shards 4")]
pub(crate) struct ConfigArgs {
    /// Configuration file to read [default: ./sluice.toml if it is there; env: SLUICE_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the reference of all settings as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    settings: SettingFlags,
}

pub(super) fn run(args: ConfigArgs, out: Out) -> Result<u8> {
    if args.markdown {
        out.text(&config::markdown())?;
        return Ok(0);
    }
    let loaded = config::load(&Sources::of_process(args.config, args.settings))
        .map_err(|e| CliError::usage(e.to_string()))?;
    for warning in &loaded.warnings {
        out.note(&format!("warning: {warning}"));
    }
    if out.json {
        for (setting, (value, origin)) in SETTINGS.iter().zip(&loaded.shown) {
            let line = json!({"setting": setting.key, "value": setting.shown(value), "origin": origin.to_string(),
                "default": setting.default, "flag": format!("--{}", setting.flag()), "env": setting.env()});
            out.object(&line)?;
        }
        return Ok(0);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "ORIGIN"]);
    for (setting, (value, origin)) in SETTINGS.iter().zip(&loaded.shown) {
        table.row([setting.key.to_owned(), setting.shown(value).to_owned(), origin.to_string()]);
    }
    out.text(&table.render())?;
    Ok(0)
}
