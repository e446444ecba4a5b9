//! `sluice receive`.

use std::time::Duration;

use clap::Args;
use sluice_client::{Delivered, Receive};

use super::connect::{ServerFlags, TRANSACTION};
use super::error::NOTHING;
use super::format::{length, now_ms, one_line, relative};
use super::joined::JoinFlag;
use super::{CliError, Out, Result, duration, number, queue_weight};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice receive emails\n  sluice receive emails --ack --wait 20s\n  \
    sluice receive urgent=3 emails=1 --max 10 --json\n\n\
    Payloads go to stdout, everything else to stderr. A message that is not settled \
    returns to its queue when its lease ends: settle it with `sluice ack RECEIPT`, or use \
    --ack. In a transaction the commit acks it. Nothing to receive is exit code 3.")]
pub(crate) struct ReceiveArgs {
    /// Queues in the order in which they are tried; or queues with weights.
    #[arg(required = true, value_name = "QUEUE[=WEIGHT]", value_parser = queue_weight)]
    queues: Vec<(String, u16)>,
    /// Maximum number of messages, 1 or more; servers allow 1000 by default.
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = number::<u32>(..))]
    max: u32,
    /// Maximum wait for the first message; at most 60s.
    #[arg(long, short, value_name = "DURATION", default_value = "0", value_parser = duration)]
    wait: Duration,
    /// Lease of the messages [default: the queue's]. In a transaction they are leased as long as it is open.
    #[arg(long, short, value_name = "DURATION", value_parser = duration)]
    lease: Option<Duration>,
    /// Ack each message after it was printed; not in a transaction, whose commit acks it.
    #[arg(long)]
    ack: bool,
    /// Print only payloads, without separators, and unchanged: without it control characters are replaced
    /// when stdout is a terminal.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Name of this consumer, shown by `sluice consumer list`.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    #[command(flatten)]
    join: JoinFlag,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(args: ReceiveArgs, out: Out) -> Result<u8> {
    if args.ack && args.join.transaction().is_some() {
        return Err(CliError::usage("--ack: the commit of the transaction acks what is received in it")
            .hint(format!("Leave --ack out, or --transaction, or unset {TRANSACTION}.")));
    }
    let connection = args.server.connect()?;
    let mut receive =
        Receive::from_queues(args.queues.clone()).max(args.max).wait(args.wait).lease(args.lease);
    receive.consumer = args.consumer.clone().unwrap_or_default();
    let received = match args.join.transaction() {
        Some(transaction) => connection.client.transaction_receive(transaction, &receive).await,
        None => connection.client.receive(&receive).await,
    };
    let messages = received.map_err(|e| connection.error(&e))?;
    if messages.is_empty() {
        let names: Vec<&str> = args.queues.iter().map(|(name, _)| name.as_str()).collect();
        let waited = if args.wait.is_zero() {
            "; use --wait 20s to wait for one".to_owned()
        } else {
            format!(" after {}", length(args.wait.as_millis() as u64))
        };
        out.note(&format!("no message in {}{waited}", names.join(", ")));
        return Ok(NOTHING);
    }
    for message in &messages {
        print(&args, message, out)?;
    }
    if !args.ack {
        return Ok(0);
    }
    let receipts: Vec<&str> = messages.iter().map(|m| m.receipt.as_str()).collect();
    let results =
        connection.client.ack_many(receipts.iter().copied()).await.map_err(|e| connection.error(&e))?;
    match results.into_iter().find_map(|r| r.error) {
        Some(e) => Err(CliError::server(&e.code, &e.message, &e.details).context("printed, but not acked")),
        None => Ok(0),
    }
}

fn print(args: &ReceiveArgs, message: &Delivered, out: Out) -> Result<()> {
    if out.json {
        return out.object(message);
    }
    out.note(&fields(message, args.ack));
    if args.raw {
        return out.bytes(&message.payload.0);
    }
    out.foreign(&message.payload.0)?;
    out.text("\n")
}

/// The line that describes a message, and the line with its receipt.
fn fields(message: &Delivered, acked: bool) -> String {
    let mut text = format!(
        "{}  {}  priority {}  attempt {}/{}  sent {}",
        message.id,
        message.queue,
        message.priority,
        message.attempt,
        message.max_attempts,
        relative(message.sent_at_ms)
    );
    if let Some(content_type) = &message.content_type {
        text.push_str(&format!("  {}", one_line(content_type)));
    }
    for (name, value) in &message.headers {
        text.push_str(&format!("\n  {}", one_line(&format!("{name}: {value}"))));
    }
    if !acked {
        let left = length(message.lease_until_ms.saturating_sub(now_ms()));
        text.push_str(&format!("\n  receipt {}, leased for {left}", message.receipt));
    }
    text
}
