//! `sluice queue pushes`, and the flags for secrets and headers of pushes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use sluice_client::Push;

use super::connect::ServerFlags;
use super::format::{length, line, time};
use super::output::Table;
use super::values;
use super::{CliError, Out, Result};

/// Characters of an error that a row shows.
const ERROR_CHARS_MAX: usize = 80;
/// Largest file of secrets, in bytes.
const SECRETS_BYTES_MAX: u64 = 4_096;

#[derive(Debug, Args)]
pub(crate) struct PushesArgs {
    /// Name of the queue.
    queue: String,
    /// Maximum number of pushes.
    #[arg(long, value_name = "N", default_value = "100", value_parser = values::number(1u32..=100))]
    limit: u32,
    #[command(flatten)]
    server: ServerFlags,
}

/// `sluice queue pushes`
pub(super) async fn pushes(args: PushesArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let pushes = connection.client.pushes(&args.queue, args.limit).await.map_err(|e| connection.error(&e))?;
    if pushes.is_empty() {
        out.note(&format!("no pushes of queue {} since its node leads", args.queue));
        return Ok(());
    }
    out.list(&pushes, table)
}

fn table(pushes: &[Push]) -> String {
    let mut table = Table::new(&["AT", "MESSAGE", ">ATTEMPT", ">TOOK", "OUTCOME", ">STATUS", "ERROR"]);
    for push in pushes {
        let error = push.error.as_deref().or(push.unsettled.as_deref()).unwrap_or_default();
        table.row(vec![
            time(push.at_ms),
            push.id.clone(),
            push.attempt.to_string(),
            length(push.took_ms),
            push.outcome.clone(),
            push.status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
            line(error, ERROR_CHARS_MAX),
        ]);
    }
    table.render()
}

/// Flags for the settings of pushes that are lists.
#[derive(Debug, Args)]
pub(super) struct PushFlags {
    /// File with the secrets that pushes are signed with, one in each line (`whsec_...`), or fingerprints of
    /// secrets that stay; '-' reads stdin. Replaces all secrets.
    #[arg(long, value_name = "FILE")]
    push_secrets_file: Option<PathBuf>,
    /// Remove all secrets: pushes are not signed.
    #[arg(long, conflicts_with = "push_secrets_file")]
    no_push_secrets: bool,
    /// Header that pushes get; repeat the flag for several. Replaces all headers.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::header)]
    push_header: Vec<(String, String)>,
    /// Remove all headers.
    #[arg(long, conflicts_with = "push_header")]
    no_push_headers: bool,
}

impl PushFlags {
    /// The secrets to set; `None`: they stay.
    ///
    /// # Errors
    /// A file that cannot be read, or that has no secret.
    pub(super) fn secrets(&self) -> Result<Option<Vec<String>>> {
        let Some(path) = &self.push_secrets_file else {
            return Ok(self.no_push_secrets.then(Vec::new));
        };
        let text = read(path).map_err(|error| {
            CliError::usage(format!("--push-secrets-file: cannot read {}: {error}", path.display()))
        })?;
        let secrets = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let secrets: Vec<String> = secrets.map(str::to_owned).collect();
        if secrets.is_empty() {
            // Mostly a command before a pipe that has failed.
            return Err(CliError::usage(format!(
                "--push-secrets-file: there is no secret in {}",
                path.display()
            ))
            .hint("To remove all secrets, so that pushes are not signed, use --no-push-secrets."));
        }
        Ok(Some(secrets))
    }

    /// The headers to set; `None`: they stay.
    ///
    /// # Errors
    /// A header is given twice.
    pub(super) fn headers(&self) -> Result<Option<BTreeMap<String, String>>> {
        let given = self.no_push_headers || !self.push_header.is_empty();
        let mut headers = BTreeMap::new();
        for (name, value) in &self.push_header {
            if headers.insert(name.clone(), value.clone()).is_some() {
                return Err(CliError::usage(format!("--push-header: {name} is given twice")));
            }
        }
        Ok(given.then_some(headers))
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    match path == Path::new("-") {
        true => std::io::stdin().take(SECRETS_BYTES_MAX).read_to_string(&mut text)?,
        false => std::fs::File::open(path)?.take(SECRETS_BYTES_MAX).read_to_string(&mut text)?,
    };
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_secrets_removes_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        let secrets = |text: &str, no_push_secrets: bool| {
            std::fs::write(&path, text).unwrap();
            let push_secrets_file = (!no_push_secrets).then(|| path.clone());
            let flags = PushFlags {
                push_secrets_file,
                no_push_secrets,
                push_header: Vec::new(),
                no_push_headers: false,
            };
            flags.secrets()
        };
        assert_eq!(secrets(" a \n\nb\n", false).unwrap(), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(secrets("", true).unwrap(), Some(Vec::new()));
        for empty in ["", " \n\n"] {
            assert!(secrets(empty, false).unwrap_err().message().contains("there is no secret"), "{empty:?}");
        }
    }
}
