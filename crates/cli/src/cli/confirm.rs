//! Confirmation of changes that cannot be undone: at the terminal, or by `--yes`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use super::{CliError, Result};

/// Confirmation of a change that cannot be undone.
#[derive(Debug, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// Asks at the terminal. Without a terminal, `--yes` is required.
    pub(super) fn ask(&self, what: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(CliError::usage(format!("{what} cannot be undone: confirm it with --yes")));
        }
        eprint!("{what}? This cannot be undone. [y/N] ");
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.map_err(|e| CliError::failed(format!("cannot read the answer: {e}")))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(CliError::failed("not confirmed: nothing was done")),
        }
    }
}
