//! `sluice bench`: the benchmarks of `sluice_bench`, with the credentials and the output of the command line.

use sluice_bench::BenchVerb;
use sluice_client::Credentials;

use super::error::FAILED;
use super::{CliError, Out, Result};
use crate::connect::CredentialFiles;

/// Runs a benchmark. Exit code 0: done, and all checks held; 1: not.
pub(super) fn run(verb: &BenchVerb, out: Out) -> Result<u8> {
    let outcome = sluice_bench::run(verb, credentials_of_environment).map_err(CliError::failed)?;
    if out.json {
        out.line(&format!("{:#}", outcome.json))?;
    } else {
        out.text(&outcome.text)?;
    }
    Ok(if outcome.passed { 0 } else { FAILED })
}

/// Credentials for the server named by `--url`, as for every command.
fn credentials_of_environment() -> std::result::Result<Credentials, String> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let files = CredentialFiles::of_environment(env);
    files.read(env("SLUICE_TOKEN")).map_err(|error| error.message().to_owned())
}
