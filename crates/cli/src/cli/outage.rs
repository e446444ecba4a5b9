//! Outages of a server while a command reads a stream from it.

use sluice_client::ClientError;

use super::connect::Connection;
use super::{Out, Result};

/// The outage that a command sits out, if there is one.
#[derive(Debug, Default)]
pub(super) struct Outage {
    is_told: bool,
}

impl Outage {
    /// Tells of an error once; it is retried again and again.
    ///
    /// # Errors
    /// The error itself, if no retry can succeed or the stream had not begun.
    pub(super) fn begins(
        &mut self,
        connection: &Connection,
        error: &ClientError,
        has_begun: bool,
        out: Out,
    ) -> Result<()> {
        if !(has_begun && may_pass(error)) {
            return Err(connection.error(error));
        }
        if !std::mem::replace(&mut self.is_told, true) {
            connection.error(error).report(out.json);
            out.note("  Retrying until it answers.");
        }
        Ok(())
    }

    /// Tells that the server answers again, if it did not.
    pub(super) fn ends(&mut self, connection: &Connection, out: Out) {
        if std::mem::take(&mut self.is_told) {
            out.note(&format!("{} answers again", connection.client.server()));
        }
    }
}

/// True when a retry may succeed, as after a restart of the server or an election.
fn may_pass(error: &ClientError) -> bool {
    error.is_transport()
        || matches!(
            error.code(),
            Some("shutting_down" | "overloaded" | "not_leader" | "no_leader" | "in_doubt")
        )
}
