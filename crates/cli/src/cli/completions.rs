//! `sluice completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use super::{CliError, Out, Result};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice completions bash > ~/.local/share/bash-completion/completions/sluice\n  \
    sluice completions fish > ~/.config/fish/completions/sluice.fish"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to write the script for.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, mut command: Command, out: Out) -> Result<u8> {
    if out.json {
        return Err(CliError::usage("--json does not apply: completions are a script for a shell"));
    }
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sluice", &mut script);
    out.bytes(&script)?;
    Ok(0)
}
