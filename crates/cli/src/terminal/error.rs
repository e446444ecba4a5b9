//! Errors of the command line: message, hints, code and exit code.

use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use sluice_calls::codes::{self, exit};
use sluice_client::{ClientError, TlsFault, TransportKind};
use sluice_node::StartError;

use super::format::printable;

/// The result of a verb.
pub(crate) type Result<T> = std::result::Result<T, CliError>;

/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = exit::USAGE;
/// Not found: no such queue or message, or nothing to receive.
pub(crate) const NOTHING: u8 = exit::NOT_FOUND;
/// A failure without an exit code of its own.
pub(crate) const FAILED: u8 = 1;

/// Kinds of errors of the client side. Every verb reports the same kind with the same code and exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The command line or the configuration is wrong, or a file, folder, key or address that it names cannot
    /// be used.
    Usage,
    /// The file, folder or object to be created exists already, or is not empty.
    Exists,
    /// Another process uses the directory or the port.
    InUse,
    /// The disk is full.
    Full,
    /// Stored data, or a backup, is damaged or incomplete.
    Damaged,
    /// The server in this process cannot start or continue.
    Server,
    /// The node was removed from its cluster, so that its data must not be used in it.
    Removed,
    /// There is no connection to the server, or the connection broke.
    Unreachable,
    /// The TLS configurations of the server and the client do not match, so that a retry cannot help.
    Tls,
    /// The answer does not come from a Sluice server.
    NotUnderstood,
    /// Another failure.
    Failed,
}

impl Fault {
    /// Every kind with its code and exit code; the codes of the server are in [`codes::TABLE`].
    const TABLE: [(Fault, &str, u8); 11] = [
        (Fault::Usage, "usage", exit::USAGE),
        (Fault::Exists, "exists", exit::CONFLICT),
        (Fault::InUse, "in_use", exit::CONFLICT),
        (Fault::Full, "disk_full", exit::FULL),
        (Fault::Damaged, "damaged", exit::SERVER),
        (Fault::Server, "server_failed", exit::SERVER),
        (Fault::Removed, "removed", exit::FORBIDDEN),
        (Fault::Unreachable, "unreachable", exit::UNAVAILABLE),
        (Fault::Tls, "tls_failed", exit::USAGE),
        (Fault::NotUnderstood, "not_understood", exit::SERVER),
        (Fault::Failed, "failed", FAILED),
    ];

    fn codes(self) -> (&'static str, u8) {
        let row = Fault::TABLE.iter().find(|row| row.0 == self);
        row.map_or(("failed", FAILED), |row| (row.1, row.2))
    }
}

/// The text below `sluice --help`; a test compares it with the table of codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  any other failure
  2  the command line, the configuration or the request is wrong
  3  not found: no such queue, message or namespace, or nothing to receive
  4  conflict with the present state: lease lost, exists already, not empty
  5  the request, or a part of it, is too large
  6  a quota, a limit or the disk is full
  7  the server cannot be reached, is busy or is stopping: try again
  8  the server has failed, or stored data is damaged
  9  not authenticated, or not allowed";

/// The reason why a verb failed.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    code: String,
    details: Value,
    exit: u8,
    /// Advice on what to do, one line each.
    hints: Vec<String>,
    /// The reader of the output has gone away: end without a message.
    silent: bool,
}

impl CliError {
    fn new(code: &str, exit: u8, message: impl Into<String>) -> CliError {
        let (message, code) = (message.into(), code.to_owned());
        CliError { message, code, details: Value::Null, exit, hints: Vec::new(), silent: false }
    }

    /// An error of the client side.
    pub(crate) fn of(fault: Fault, message: impl Into<String>) -> CliError {
        let (code, exit) = fault.codes();
        CliError::new(code, exit, message)
    }

    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> CliError {
        CliError::of(Fault::Usage, message)
    }

    /// A failure of the client side without an exit code of its own.
    pub(crate) fn failed(message: impl Into<String>) -> CliError {
        CliError::of(Fault::Failed, message)
    }

    /// A file named on the command line, or stdin, could not be read.
    pub(crate) fn unreadable(what: &str, error: &io::Error) -> CliError {
        CliError::of_io(error, format!("cannot read {what}: {error}"))
    }

    /// A file or folder named on the command line could not be created or written.
    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> CliError {
        CliError::of_io(error, format!("cannot write {}: {error}", path.display()))
    }

    /// A system call on a named file failed; `told` is the whole message. A full disk gets its own code.
    pub(crate) fn of_io(error: &io::Error, told: String) -> CliError {
        match error.kind() {
            ErrorKind::DirectoryNotEmpty => CliError::of(Fault::Exists, told),
            _ => match StartError::of_io(error, told) {
                StartError::Failed(told) => CliError::failed(told),
                refused => CliError::start(&refused),
            },
        }
    }

    /// A data directory could not be opened or created.
    pub(crate) fn start(error: &StartError) -> CliError {
        let fault = match error {
            StartError::Refused(_) => Fault::Usage,
            StartError::InUse(_) => Fault::InUse,
            StartError::Full(_) => Fault::Full,
            StartError::Damaged(_) | StartError::Failed(_) => Fault::Server,
        };
        CliError::of(fault, error.to_string())
    }

    /// The output could not be written. A closed pipe is no failure.
    pub(crate) fn output(error: &io::Error) -> CliError {
        let silent = error.kind() == ErrorKind::BrokenPipe;
        let mut failed = CliError::failed(format!("cannot write the output: {error}"));
        failed.exit = if silent { 0 } else { FAILED };
        failed.silent = silent;
        failed
    }

    /// The server refused the request, or did not answer.
    pub(crate) fn client(error: &ClientError) -> CliError {
        match error {
            ClientError::Server { code, message, details, .. } => CliError::server(code, message, details),
            ClientError::Transport { kind: TransportKind::Tls(fault), .. } if *fault != TlsFault::Other => {
                CliError::of(Fault::Tls, error.to_string())
            }
            ClientError::Transport { .. } => CliError::of(Fault::Unreachable, error.to_string()),
            ClientError::InvalidUrl { .. } | ClientError::Credentials { .. } => {
                CliError::usage(error.to_string())
            }
            _ => CliError::of(Fault::NotUnderstood, error.to_string()),
        }
    }

    /// The message, one sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// An error object from the server.
    pub(crate) fn server(code: &str, message: &str, details: &Value) -> CliError {
        let exit = codes::find(code).map_or(FAILED, |row| row.exit);
        let mut error = CliError::new(code, exit, message);
        error.details = details.clone();
        error
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The server's details of the error; `null` if there are none.
    pub(crate) fn details(&self) -> &Value {
        &self.details
    }

    /// The index of the item of `list` that the server refused, from 0: 3 for `messages[3].priority`.
    pub(crate) fn place_in(&self, list: &str) -> Option<usize> {
        let rest = self.details["field"].as_str()?.strip_prefix(list)?.strip_prefix('[')?;
        rest.split_once(']')?.0.parse().ok()
    }

    /// True when the error is about one of `fields`, or about a part of one.
    pub(crate) fn names_one_of(&self, fields: &[&str]) -> bool {
        let field = self.details["field"].as_str().and_then(|field| field.split(['.', '[']).next());
        field.is_some_and(|field| fields.contains(&field))
    }

    /// The message without the place in `list`.
    pub(crate) fn without_place(self, list: &str) -> CliError {
        let Some(at) = self.place_in(list) else { return self };
        match self.message.strip_prefix(&format!("{list}[{at}]")) {
            Some(rest) => {
                let rest = rest.trim_start_matches(['.', ':', ' ']).to_owned();
                self.with_message(rest)
            }
            None => self,
        }
    }

    /// Replaces the message.
    pub(crate) fn with_message(mut self, message: String) -> CliError {
        self.message = message;
        self
    }

    /// Puts a prefix before the message.
    pub(crate) fn context(mut self, what: &str) -> CliError {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Adds a line of advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hints.push(hint.into());
        self
    }

    /// The advice, one sentence or more each.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The exit code.
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

    /// Writes the error to stderr and returns the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let mut stderr = std::io::stderr().lock();
        // Without stderr there is nowhere left to report this.
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
    fn the_reference_has_every_code_of_the_client_side() {
        let page = include_str!("../../../../docs/cli.md");
        let codes: std::collections::BTreeMap<&str, u8> =
            Fault::TABLE.iter().map(|(_, code, exit)| (*code, *exit)).collect();
        assert_eq!(codes.len(), Fault::TABLE.len(), "no code is there twice");
        let rows = page.lines().skip_while(|line| !line.starts_with("| code of the client side")).skip(2);
        let rows = rows.take_while(|line| line.starts_with('|')).map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`'), cells[2].parse().unwrap())
        });
        assert_eq!(rows.collect::<std::collections::BTreeMap<&str, u8>>(), codes);
    }

    #[test]
    fn a_code_of_a_newer_server_is_a_failure() {
        assert_eq!(CliError::server("from_the_future", "m", &Value::Null).exit(), FAILED);
        assert_eq!(CliError::server("lease_lost", "m", &Value::Null).exit(), 4);
    }
}
