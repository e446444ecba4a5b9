//! What went wrong, in words for the terminal and as an exit code.

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};
use sluice_client::ClientError;
use sluice_front::codes::{self, exit};

use super::format::printable;

/// The result of a verb.
pub(crate) type Result<T> = std::result::Result<T, CliError>;

/// Something failed that has no code of its own.
pub(crate) const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = exit::USAGE;
/// Nothing there: no such queue or message, or nothing to receive.
pub(crate) const NOTHING: u8 = exit::NOT_FOUND;

/// What several verbs may meet on this side. Whichever meets it, the exit code is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A file or folder that was named cannot be opened, or is none of its kind.
    Unopened,
    /// What is to be made is there already, or is not empty.
    Exists,
    /// Another process uses the directory or the port.
    InUse,
    /// What is stored, or a backup of it, is damaged or cut.
    Damaged,
}

impl Fault {
    fn exit(self) -> u8 {
        match self {
            Fault::Unopened => USAGE,
            Fault::Exists | Fault::InUse => exit::CONFLICT,
            Fault::Damaged => exit::SERVER,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Fault::Unopened => "usage",
            Fault::Exists => "exists",
            Fault::InUse => "in_use",
            Fault::Damaged => "damaged",
        }
    }
}

/// Shown below `sluice --help`; a test holds it against the table of codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for another reason than these
  2  the command line, the configuration or the request is wrong
  3  nothing there: no such queue, message or namespace, or nothing to receive
  4  the state does not allow it: lease lost, exists already, not empty
  5  too large
  6  a quota, a limit or the disk is full
  7  the server cannot be reached, is busy or is stopping: try again
  8  the server has failed, or what is stored is damaged
  9  not allowed";

/// Why a verb failed.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    code: String,
    details: Value,
    exit: u8,
    /// What to do about it, a line each.
    hints: Vec<String>,
    /// Nobody reads our output any more: end without a word.
    silent: bool,
}

impl CliError {
    fn new(code: &str, exit: u8, message: impl Into<String>) -> CliError {
        let (message, code) = (message.into(), code.to_owned());
        CliError { message, code, details: Value::Null, exit, hints: Vec::new(), silent: false }
    }

    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> CliError {
        CliError::new("usage", USAGE, message)
    }

    /// Something failed on this side.
    pub(crate) fn failed(message: impl Into<String>) -> CliError {
        CliError::new("failed", FAILED, message)
    }

    /// A fault that several verbs may meet.
    pub(crate) fn of(fault: Fault, message: impl Into<String>) -> CliError {
        CliError::new(fault.code(), fault.exit(), message)
    }

    /// A file that was named, or stdin, could not be read.
    pub(crate) fn unreadable(what: &str, error: &io::Error) -> CliError {
        let message = format!("cannot read {what}: {error}");
        match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory => CliError::of(Fault::Unopened, message),
            _ => CliError::failed(message),
        }
    }

    /// Output could not be written; a reader that went away is no failure.
    pub(crate) fn output(error: &io::Error) -> CliError {
        let silent = error.kind() == ErrorKind::BrokenPipe;
        let mut failed = CliError::failed(format!("cannot write the output: {error}"));
        failed.exit = if silent { 0 } else { FAILED };
        failed.silent = silent;
        failed
    }

    /// The server said no, or said nothing.
    pub(crate) fn client(error: &ClientError) -> CliError {
        match error {
            ClientError::Server { code, message, details, .. } => CliError::server(code, message, details),
            ClientError::Transport { .. } => {
                CliError::new("unreachable", exit::UNAVAILABLE, error.to_string())
            }
            ClientError::InvalidUrl { .. } | ClientError::Credentials { .. } => {
                CliError::usage(error.to_string())
            }
            _ => CliError::new("not_understood", exit::SERVER, error.to_string()),
        }
    }

    /// What went wrong, in a sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// An error object of the server.
    pub(crate) fn server(code: &str, message: &str, details: &Value) -> CliError {
        let exit = codes::find(code).map_or(FAILED, |row| row.exit);
        let mut error = CliError::new(code, exit, message);
        error.details = details.clone();
        error
    }

    /// Puts words before the message.
    pub(crate) fn context(mut self, what: &str) -> CliError {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Adds a line that says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hints.push(hint.into());
        self
    }

    /// Ends with another exit code.
    pub(crate) fn exit_with(mut self, exit: u8) -> CliError {
        self.exit = exit;
        self
    }

    /// The exit code.
    #[cfg(test)]
    pub(crate) fn exit(&self) -> u8 {
        self.exit
    }

    /// The error as the API writes errors.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if !self.details.is_null() {
            error["details"] = self.details.clone();
        }
        if !self.hints.is_empty() {
            error["hints"] = json!(self.hints);
        }
        json!({ "error": error })
    }

    /// Tells it on stderr.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let mut stderr = std::io::stderr().lock();
        // There is nowhere left to tell that stderr is gone.
        if !self.silent && json {
            let _ = writeln!(stderr, "{}", self.to_json());
        } else if !self.silent {
            let _ = writeln!(stderr, "error: {}", printable(&self.message));
            for hint in &self.hints {
                let _ = writeln!(stderr, "  {}", printable(hint));
            }
        }
        ExitCode::from(self.exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_exit_code() {
        for row in codes::TABLE {
            assert!(EXIT_CODES.contains(&format!("\n  {}  ", row.exit)), "{} of {}", row.exit, row.code);
        }
    }

    #[test]
    fn the_reference_says_the_same_as_the_help() {
        let page = include_str!("../../../../docs/cli.md");
        for line in EXIT_CODES.lines().skip(1) {
            let (code, means) = line.trim().split_once("  ").unwrap();
            assert!(page.contains(&format!("| {code} | {means} |")), "{line}");
        }
    }

    #[test]
    fn a_code_of_a_newer_server_is_a_failure() {
        assert_eq!(CliError::server("from_the_future", "m", &Value::Null).exit(), FAILED);
        assert_eq!(CliError::server("lease_lost", "m", &Value::Null).exit(), 4);
    }
}
