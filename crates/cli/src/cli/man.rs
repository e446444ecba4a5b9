//! `sluice man`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use super::{CliError, Out, Result};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages: `sluice.1`, and one for each verb. Created if it is missing.
    folder: PathBuf,
}

pub(super) fn run(args: &ManArgs, command: Command, out: Out) -> Result<u8> {
    if out.json {
        return Err(CliError::usage("--json does not apply: man pages are files"));
    }
    fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(command, &args.folder))
        .map_err(|e| CliError::unwritable(&args.folder, &e))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_verb_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs { folder: folder.path().join("new") };
        run(&args, Cli::command(), Out::new(false)).unwrap();
        let text = |page: &str| fs::read_to_string(args.folder.join(page)).unwrap();
        assert!(text("sluice.1").contains(".TH sluice 1"));
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let page = format!("sluice-{}.1", verb.get_name());
            assert!(text(&page).contains(".SH NAME"), "{page}");
        }
    }
}
