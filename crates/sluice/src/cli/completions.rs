//! `sluice completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use super::{Out, Result};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice completions bash > ~/.local/share/bash-completion/completions/sluice\n  \
    sluice completions fish > ~/.config/fish/completions/sluice.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, mut command: Command) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sluice", &mut script);
    Out::new(false).bytes(&script)?;
    Ok(0)
}
