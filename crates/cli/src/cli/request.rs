//! `sluice request`, and the wait for results.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use sluice_client::{Awaited, Message, MessageOptions};

use super::connect::{Connection, ServerFlags};
use super::flag_bytes::flag_bytes;
use super::{CliError, Out, Result, duration};

/// Time for which the result is kept beyond the wait, so that a late reader still finds it.
const KEEP_BEYOND: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  sluice work sums --result -- sh -c 'bc' &\n  echo '6*7' | sluice request sums @-\n\n\
    Prints the result unchanged, at a terminal with a line end. A worker gives a result with \
    `sluice ack --result` or `sluice work --result`."
)]
pub(crate) struct RequestArgs {
    /// Queue to send to; created if it does not exist.
    queue: String,
    /// The payload; @PATH reads a file, @- reads stdin.
    payload: String,
    /// Maximum wait for the result.
    #[arg(long, short, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    wait: Duration,
    /// Media type of the payload.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Sends one message and waits for its result.
pub(super) async fn run(args: RequestArgs, out: Out) -> Result<u8> {
    let connection = args.server.connect()?;
    let keep = args.wait.saturating_add(KEEP_BEYOND).as_millis();
    let options = MessageOptions {
        result_ttl_ms: Some(u64::try_from(keep).unwrap_or(u64::MAX)),
        ..MessageOptions::default()
    };
    let message = Message {
        payload: flag_bytes("the payload", &args.payload)?.into(),
        content_type: args.content_type.map(Into::into),
        options: Some(Box::new(options)),
        ..Message::default()
    };
    let sent = connection.client.send(&args.queue, &[message]).await.map_err(|e| connection.error(&e))?;
    let sent = sent.decode().map_err(|e| CliError::client(&e))?;
    let Some(id) = sent.ids.first() else { return Err(CliError::failed("the server gave no id")) };
    result(&connection, id, args.wait, out).await
}

/// Waits for the end of a message and prints its result.
pub(super) async fn result(connection: &Connection, id: &str, wait: Duration, out: Out) -> Result<u8> {
    let awaited = connection.client.result(id, wait).await.map_err(|e| connection.error(&e))?;
    match awaited.state.as_str() {
        "done" if out.json => out.object(&awaited)?,
        "done" => match awaited.result_bytes().map_err(|e| CliError::client(&e))? {
            Some(bytes) => out.bytes(&ended(bytes, std::io::stdout().is_terminal()))?,
            None => out.note(&format!("{id} is done, without a result")),
        },
        state => return Err(no_result(id, state, &awaited)),
    }
    Ok(0)
}

/// A result or a document as it is printed: unchanged into a pipe; at a terminal with a line end, so that the
/// prompt stands on a line of its own.
pub(super) fn ended(mut bytes: Cow<'_, [u8]>, at_terminal: bool) -> Cow<'_, [u8]> {
    if at_terminal && !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.to_mut().push(b'\n');
    }
    bytes
}

fn no_result(id: &str, state: &str, awaited: &Awaited) -> CliError {
    if state == "dead" {
        let reason = awaited.reason.as_deref().unwrap_or("unknown");
        return CliError::failed(format!("{id} is a dead letter: {reason}"))
            .hint(format!("`sluice message show {id}` shows its history."));
    }
    let progress = awaited.progress.as_ref().map_or_else(String::new, |progress| {
        let note = progress.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        format!(", {}% done{note}", progress.percent)
    });
    CliError::failed(format!("{id} has no result yet{progress}"))
        .hint(format!("`sluice message result {id} --wait 60s` waits longer."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_gets_an_end_of_line_at_a_terminal_only() {
        for (result, at_terminal, shown) in [
            ("HELLO", true, "HELLO\n"),
            ("HELLO\n", true, "HELLO\n"),
            ("HELLO", false, "HELLO"),
            ("", true, ""),
        ] {
            assert_eq!(ended(Cow::Borrowed(result.as_bytes()), at_terminal), shown.as_bytes());
        }
    }
}
