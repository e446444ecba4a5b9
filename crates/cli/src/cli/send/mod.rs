//! `sluice send`.

mod input;
pub(in crate::cli) mod objects;
mod options;
pub(in crate::cli) mod strict;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::json;
use sluice_calls::codes::exit;
use sluice_client::{Backoff, Message, Transaction};
use sluice_front::http::MESSAGE_FIELDS;

use super::connect::{Connection, ServerFlags, TRANSACTION};
use super::format::counted;
use super::joined::JoinFlag;
use super::progress::Progress;
use super::values::{backoff, header};
use super::{CliError, Out, Result, duration, number};
use input::Input;
use options::OptionFlags;

/// Maximum number of messages in one request; a longer input takes several requests.
const BATCH_MESSAGES: usize = 1_000;
/// Bytes of payloads after which a request is sent.
const BATCH_BYTES: usize = 4 << 20;

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("form").args(["lines", "jsonl"]),
    after_help = "Examples:\n  sluice send emails 'hello'\n  sluice send emails --file body.json --content-type application/json\n  \
    seq 1000 | sluice send numbers --lines\n  \
    echo '{\"payload\":\"hi\",\"priority\":9}' | sluice send emails --jsonl\n\n\
    Prints the ids of the messages, one per line. All messages are stored when the command ends."
)]
pub(crate) struct SendArgs {
    /// Queue to send to; created if it does not exist.
    queue: String,
    /// The payload. If it is missing or `-`, all of stdin is the payload.
    #[arg(conflicts_with_all = ["file", "lines", "jsonl"])]
    payload: Option<String>,
    /// Read the payload from this file; with --lines or --jsonl, read the messages from it.
    #[arg(long, short, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Send each line as the payload of a message.
    #[arg(long)]
    lines: bool,
    /// Send each line, a JSON object with the fields of a message as in the HTTP API; flags set the fields
    /// that the object lacks.
    #[arg(long)]
    jsonl: bool,
    /// A repeat with the same key within the server's window sends nothing and prints the ids of the first
    /// send. If the input takes several requests, each one's key is this key and a number. Not in a
    /// transaction, which sends with its commit.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    join: JoinFlag,
    /// Do not print ids.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    server: ServerFlags,
}

/// Fields of each message.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Message")]
pub(super) struct Fields {
    /// Priority, 0 to 9; higher is delivered first.
    #[arg(long, short, value_parser = number(0u8..=9))]
    priority: Option<u8>,
    /// Deliver after this delay.
    #[arg(long, short, value_name = "DURATION", value_parser = duration, conflicts_with = "deliver_at_ms")]
    delay: Option<Duration>,
    /// Deliver at this time, in milliseconds since the Unix epoch.
    #[arg(long, value_name = "MS", value_parser = number(0u64..))]
    deliver_at_ms: Option<u64>,
    /// Media type of the payload.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Header of the message; repeat the flag for several headers.
    #[arg(long, short = 'H', value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Attempts before the message becomes a dead letter.
    #[arg(long, value_name = "N", value_parser = number(1u32..=10_000))]
    max_attempts: Option<u32>,
    /// Delay between attempts: none; or fixed, linear or exponential with base, cap and jitter, such as
    /// exponential:1s:10m:10%.
    #[arg(long, value_name = "BACKOFF", value_parser = backoff)]
    backoff: Option<Backoff>,
    #[command(flatten)]
    options: OptionFlags,
}

impl Fields {
    pub(super) fn message(&self, payload: Vec<u8>) -> Message<'static> {
        Message {
            payload: payload.into(),
            content_type: self.content_type.clone().map(Into::into),
            headers: self.header.iter().map(|(n, v)| (n.clone().into(), v.clone().into())).collect(),
            priority: self.priority,
            delay_ms: self.delay.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            deliver_at_ms: self.deliver_at_ms,
            max_attempts: self.max_attempts,
            backoff: self.backoff,
            options: self.options.options(),
        }
    }
}

/// Sends all messages, one request at a time, so that the order of the input is kept.
pub(super) async fn run(mut args: SendArgs, out: Out) -> Result<u8> {
    if args.idempotency_key.is_some() && args.join.transaction().is_some() {
        let reason = "--idempotency-key: a send in a transaction has no key of its own, for it is done once, with \
                      the commit";
        let hint = format!("Leave it out, or --transaction, or unset {TRANSACTION}.");
        return Err(CliError::usage(reason).hint(hint));
    }
    let connection = args.server.connect()?;
    let many = args.lines || args.jsonl;
    args.fields.options.read_chain()?;
    let mut input = Input::open(&args)?;
    let done = if args.join.transaction().is_some() { "staged" } else { "sent" };
    let progress = many.then(|| Progress::things(out, None, done));
    let mut sender = Sender { args: &args, connection, out, many, requests: 0, sent: 0, duplicates: 0 };
    let result = sender.all(&mut input, progress.as_ref()).await;
    if let Some(progress) = progress {
        progress.finish();
    }
    let told = format!("{done} {} to {}", counted(sender.sent, "message"), args.queue);
    match result {
        Ok(()) if many && sender.duplicates > 0 => {
            out.note(&format!("{told}; {} of them had been sent before", sender.duplicates))
        }
        Ok(()) if many => out.note(&told),
        Ok(()) if sender.duplicates > 0 => out.note("this was sent before; nothing was added"),
        Ok(()) => {}
        Err(error) if many => return Err(with_sent(error, sender.sent, &told)),
        Err(error) => return Err(error),
    }
    Ok(0)
}

/// Says how much of the input was sent before the error. A request that the server refused, and one that a
/// bad line ended, sends none of its lines; after another error that is not known of the last request.
fn with_sent(error: CliError, sent: u64, told: &str) -> CliError {
    let is_known = !matches!(error.exit(), exit::UNAVAILABLE | exit::SERVER);
    match (sent, is_known) {
        (0, true) => error.hint("Nothing was sent."),
        (0, false) => error,
        (_, true) => {
            error.hint(format!("Before that, {told}.")).hint("Of the lines after those, none was sent.")
        }
        (_, false) => error.hint(format!("Before that, {told}.")),
    }
}

/// The messages of one request.
#[derive(Default)]
struct Batch {
    messages: Vec<Message<'static>>,
    /// The line number of each message, if the input has lines.
    lines: Vec<u64>,
    payload_bytes: usize,
}

impl Batch {
    fn add(&mut self, message: Message<'static>, line: Option<u64>) {
        self.payload_bytes += message.payload.len();
        self.messages.push(message);
        self.lines.extend(line);
    }

    fn is_full(&self) -> bool {
        self.messages.len() == BATCH_MESSAGES || self.payload_bytes >= BATCH_BYTES
    }

    /// Adds the line of the message that the server refused, if its answer names the message.
    fn refused(&self, error: CliError, input: &Input) -> CliError {
        let Some((name, _)) = input.line() else { return error };
        let limit = error.details()["limit"].as_u64().filter(|_| error.code() == "payload_too_large");
        let is_over = |message: &Message<'_>| limit.is_some_and(|limit| message.payload.len() as u64 > limit);
        // The fields of the only message are named without its place.
        let is_only = self.messages.len() == 1 && error.names_one_of(MESSAGE_FIELDS);
        let at = error.place_in("messages").or_else(|| self.messages.iter().position(is_over));
        let at = at.or(is_only.then_some(0));
        match at.and_then(|at| self.lines.get(at)) {
            Some(line) => error.without_place("messages").context(&format!("{name}, line {line}")),
            None => error,
        }
    }
}

struct Sender<'a> {
    args: &'a SendArgs,
    connection: Connection,
    out: Out,
    many: bool,
    requests: u64,
    sent: u64,
    duplicates: u64,
}

impl Sender<'_> {
    async fn all(&mut self, input: &mut Input, progress: Option<&Progress>) -> Result<()> {
        let mut batch = Batch::default();
        while let Some(message) = input.next(&self.args.fields)? {
            batch.add(message, input.line().map(|(_, number)| number));
            if batch.is_full() || !input.has_more() {
                self.flush(&mut batch, input, progress).await?;
            }
        }
        if batch.messages.is_empty() { Ok(()) } else { self.flush(&mut batch, input, progress).await }
    }

    /// Sends the collected messages.
    async fn flush(&mut self, batch: &mut Batch, input: &Input, progress: Option<&Progress>) -> Result<()> {
        self.request(&batch.messages).await.map_err(|error| batch.refused(error, input))?;
        if let Some(progress) = progress {
            progress.add(batch.messages.len() as u64);
        }
        *batch = Batch::default();
        Ok(())
    }

    async fn request(&mut self, batch: &[Message<'_>]) -> Result<()> {
        let queue = self.args.queue.as_str();
        let staged =
            || batch.iter().fold(Transaction::new(), |all, message| all.send(queue, message.clone()));
        if self.args.join.stage(&self.connection, staged).await?.is_some() {
            self.sent += batch.len() as u64;
            return Ok(());
        }
        let client = &self.connection.client;
        let key = match &self.args.idempotency_key {
            Some(key) if self.many => format!("{key}-{}", self.requests),
            Some(key) => key.clone(),
            None => client.idempotency_key(),
        };
        let answer = client
            .send_with_key(&self.args.queue, batch, &key)
            .await
            .map_err(|e| self.connection.error(&e))?;
        let sent = answer.decode().map_err(|e| CliError::client(&e))?;
        self.requests += 1;
        self.sent += sent.ids.len() as u64;
        if sent.duplicate {
            self.duplicates += sent.ids.len() as u64;
        } else {
            self.duplicates += sent.duplicates.len() as u64;
        }
        if self.args.quiet {
            return Ok(());
        }
        let repeated = |item: u32| sent.duplicate || sent.duplicates.binary_search(&item).is_ok();
        let line = |(item, id): (u32, &Cow<'_, str>)| match self.out.json {
            true => format!("{}\n", json!({"id": id, "duplicate": repeated(item)})),
            false => format!("{id}\n"),
        };
        self.out.text(&(0u32..).zip(&sent.ids).map(line).collect::<String>())
    }
}
