//! The worker's reports on stderr; stdout belongs to the commands.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use sluice_client::{ClientError, Delivered, Settle, Summary, WorkerEvent};
use tokio::sync::mpsc;

use crate::connect::Connection;
use crate::terminal::Out;
use crate::terminal::format::{counted, length, line};

/// Reports as text, or as JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    out: Out,
    verbose: bool,
}

impl Report {
    pub(super) fn new(out: Out, verbose: bool) -> Report {
        Report { out, verbose }
    }

    /// Reports the end of a command.
    pub(super) fn message(self, message: &Delivered, settle: &Settle, took: Duration) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let error = match settle {
            Settle::Nack { error, .. } | Settle::Reject { error } => Some(error.as_str()),
            Settle::Ack | Settle::AckWith(_) | Settle::Release { .. } => None,
        };
        if self.out.json {
            return machine(&json!({"event": "message", "id": message.id, "queue": message.queue,
                "attempt": message.attempt, "outcome": settle.name(), "took_ms": took_ms, "error": error}));
        }
        if settle.name() == "ack" && !self.verbose {
            return;
        }
        let error = error.map_or_else(String::new, |e| format!(": {}", line(e, 200)));
        self.out.note(&format!(
            "{} {} of {}, attempt {}/{}, after {}{error}",
            settle.name(),
            message.id,
            message.queue,
            message.attempt,
            message.max_attempts,
            length(took_ms)
        ));
    }

    /// Reports a message that its command has settled beside its transaction.
    pub(super) fn settled_by_command(self, message: &Delivered, took: Duration) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let why = "the command has settled it itself, so nothing that it staged was done";
        if self.out.json {
            return machine(&json!({"event": "message", "id": message.id, "queue": message.queue,
                "attempt": message.attempt, "outcome": "settled_by_command", "took_ms": took_ms, "error": why}));
        }
        let took = length(took_ms);
        self.out.note(&format!("{} of {}, after {took}: {why}", message.id, message.queue));
    }

    /// Reports that no transaction could be begun for a message.
    pub(super) fn not_begun(self, error: &ClientError) {
        self.transaction("begin_failed", &format!("cannot begin a transaction: {error}"));
    }

    /// Reports that a transaction may be committed or not.
    pub(super) fn not_answered(self, message: &Delivered, error: &ClientError) {
        let text = format!("cannot tell whether the work on {} was committed: {error}", message.id);
        self.transaction("commit_unknown", &text);
    }

    fn transaction(self, event: &str, text: &str) {
        if self.out.json {
            return machine(&json!({"event": event, "message": text}));
        }
        self.out.note(text);
    }

    /// Reports the totals at the end of the worker; `by_command`: of those that count as acked, the ones that
    /// their commands have settled beside their transactions.
    pub(super) fn summary(self, summary: &Summary, by_command: u64) {
        let Summary { acked, nacked, rejected, released, cancelled, lost, unsettled } = *summary;
        let acked = acked.saturating_sub(by_command);
        if self.out.json {
            return machine(&json!({"event": "end", "acked": acked, "nacked": nacked, "rejected": rejected,
                "released": released, "cancelled": cancelled, "lost": lost, "unsettled": unsettled,
                "settled_by_command": by_command}));
        }
        let mut text = format!("{} acked", counted(acked, "message"));
        let others = [
            (nacked, "nacked"),
            (rejected, "rejected"),
            (released, "released"),
            (by_command, "settled by their commands, without what these staged"),
            (cancelled, "cancelled"),
            (lost, "not settled because the lease was over"),
            (unsettled, "not settled, which return when their lease ends"),
        ];
        for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!(", {count} {what}"));
        }
        self.out.note(&text);
    }

    fn event(self, connection: &Connection, event: &WorkerEvent, unreachable: &mut bool) {
        let text = match event {
            WorkerEvent::ReceiveFailed(error) => {
                let error = connection.error(error);
                if self.out.json {
                    return machine(&json!({"event": "receive_failed", "error": error.to_json()["error"]}));
                }
                // The whole error once; the request is retried again and again.
                if !std::mem::replace(unreachable, true) {
                    error.report(false);
                    self.out.note("  Retrying until it answers.");
                }
                return;
            }
            WorkerEvent::ReceiveRecovered => {
                *unreachable = false;
                ("receive_recovered", format!("{} answers again", connection.client.server()))
            }
            WorkerEvent::SettleFailed { id, outcome, reason } => {
                ("settle_failed", format!("cannot {outcome} {id}: {reason}"))
            }
            WorkerEvent::LeaseLost(id) => (
                "lease_lost",
                format!(
                    "lost the lease of {id}: ending its command, because another worker has the message, or \
                    it was settled or deleted"
                ),
            ),
            WorkerEvent::Cancelled(id) => ("cancelled", format!("{id} was cancelled: ending its command")),
            WorkerEvent::LeaseEnded(id) => (
                "lease_ended",
                format!(
                    "the lease of {id} ended before it could be extended: ending its command, because another worker \
                     may have the message"
                ),
            ),
            other => ("other", format!("{other:?}")),
        };
        if self.out.json {
            machine(&json!({"event": text.0, "message": text.1}));
        } else {
            self.out.note(&text.1);
        }
    }
}

/// Reports events until the worker ends.
pub(super) async fn report_events(
    report: Report,
    connection: Connection,
    mut events: mpsc::UnboundedReceiver<WorkerEvent>,
) {
    let mut unreachable = false;
    while let Some(event) = events.recv().await {
        report.event(&connection, &event, &mut unreachable);
    }
}

fn machine(event: &Value) {
    // Without stderr there is nowhere left to report this.
    let _ = writeln!(std::io::stderr(), "{event}");
}
