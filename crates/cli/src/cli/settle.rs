//! `sluice ack`, `nack`, `release`, `reject`, `extend`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use sluice_client::{ItemResult, Report, Settle, SettleItem, WorkResult};
use sluice_engine::limit::COST_MAX;

use super::bounded;
use super::connect::ServerFlags;
use super::flag_bytes::flag_bytes;
use super::joined;
use super::{CliError, Out, Result, duration, number};

/// Maximum number of receipts in one request.
const BATCH: usize = 1_000;

/// Arguments that all these verbs share. Flattened last, because it ends with flags under a heading of their
/// own.
#[derive(Debug, Args)]
struct Receipts {
    /// Receipts, as `sluice receive` prints them; `-`: read them from stdin, one per line.
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
    /// Cost of the work beyond that of the message, of each receipt: it counts against the rates of the
    /// queue's limit.
    #[arg(long, value_name = "COST", default_value_t = 0, value_parser = number(0u32..=COST_MAX))]
    add_cost: u32,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
pub(crate) struct AckArgs {
    /// Result of the work, up to 256 KiB; @PATH reads a file, @- reads stdin.
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// Media type of the result.
    #[arg(long, value_name = "TYPE", requires = "result")]
    result_type: Option<String>,
    #[command(flatten)]
    receipts: Receipts,
}

#[derive(Debug, Args)]
pub(crate) struct NackArgs {
    /// Error text for the history of the message.
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    error: String,
    /// Delay before the next attempt [default: the backoff].
    #[arg(long, short, value_name = "DURATION", value_parser = duration)]
    delay: Option<Duration>,
    #[command(flatten)]
    receipts: Receipts,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// Delay before the message is ready again [default: none].
    #[arg(long, short, value_name = "DURATION", value_parser = duration)]
    delay: Option<Duration>,
    #[command(flatten)]
    receipts: Receipts,
}

#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// Error text for the history of the message.
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    error: String,
    #[command(flatten)]
    receipts: Receipts,
}

#[derive(Debug, Args)]
pub(crate) struct ExtendArgs {
    /// New length of the lease, counted from now [default: the queue's].
    #[arg(long, short, value_name = "DURATION", value_parser = duration)]
    lease: Option<Duration>,
    /// Progress of the work, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = number(0u8..=100))]
    progress: Option<u8>,
    /// Note about the progress, up to 1 KiB.
    #[arg(long, value_name = "TEXT", requires = "progress")]
    note: Option<String>,
    /// Checkpoint for the next attempt, up to 256 KiB; @PATH reads a file, @- reads stdin.
    #[arg(long, value_name = "TEXT")]
    checkpoint: Option<String>,
    #[command(flatten)]
    receipts: Receipts,
}

impl AckArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        let settle = match self.result {
            None => Settle::Ack,
            Some(result) => Settle::AckWith(WorkResult {
                content_type: self.result_type,
                bytes: flag_bytes("--result", &result)?,
            }),
        };
        self.receipts.settle(&settle, "acked", out).await
    }
}

impl NackArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        self.receipts.settle(&Settle::Nack { error: self.error, delay: self.delay }, "nacked", out).await
    }
}

impl ReleaseArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        self.receipts.settle(&Settle::Release { delay: self.delay }, "released", out).await
    }
}

impl RejectArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        self.receipts.settle(&Settle::Reject { error: self.error }, "rejected", out).await
    }
}

impl ExtendArgs {
    pub(super) async fn run(self, out: Out) -> Result<u8> {
        let connection = self.receipts.server.connect()?;
        let receipts = self.receipts.read()?;
        let add_cost = self.receipts.add_cost;
        if self.progress.is_some() || self.checkpoint.is_some() || add_cost > 0 {
            let checkpoint =
                self.checkpoint.as_deref().map(|text| flag_bytes("--checkpoint", text)).transpose()?;
            let report = Report {
                progress: self.progress.map(|percent| (percent, self.note.as_deref().unwrap_or(""))),
                checkpoint: checkpoint.as_deref(),
                add_cost,
            };
            for receipt in &receipts {
                let told = connection.client.report(receipt, self.lease, &report).await;
                told.map_err(|e| connection.error(&e))?;
                let done = vec![ItemResult { ok: true, already_settled: false, error: None }];
                print_results(std::slice::from_ref(receipt), done, "extended", out, &mut None)?;
            }
            return Ok(0);
        }
        let mut failed = None;
        for batch in receipts.chunks(BATCH) {
            let items = batch.iter().map(|r| (r.as_str(), self.lease));
            let results = connection.client.extend_many(items).await.map_err(|e| connection.error(&e))?;
            print_results(batch, results, "extended", out, &mut failed)?;
        }
        failed.map_or(Ok(0), Err)
    }
}

impl Receipts {
    async fn settle(&self, settle: &Settle, done: &str, out: Out) -> Result<u8> {
        joined::told_outside(out);
        let connection = self.server.connect()?;
        let receipts = self.read()?;
        let mut failed = None;
        for batch in receipts.chunks(BATCH) {
            let items: Vec<SettleItem<'_>> = batch
                .iter()
                .map(|r| SettleItem { add_cost: self.add_cost, ..SettleItem::of(r.as_str(), settle.clone()) })
                .collect();
            let results = connection.client.settle(&items).await.map_err(|e| connection.error(&e))?;
            print_results(batch, results, done, out, &mut failed)?;
        }
        failed.map_or(Ok(0), Err)
    }

    fn read(&self) -> Result<Vec<String>> {
        if self.receipts != ["-"] {
            return Ok(self.receipts.clone());
        }
        let text = bounded::text(bounded::read_stdin(bounded::FILE_BYTES_MAX)?, "stdin")?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }
}

/// Prints a line for each receipt. The first failure becomes the verb's error, the others are printed here.
fn print_results(
    receipts: &[String],
    results: Vec<ItemResult>,
    done: &str,
    out: Out,
    failed: &mut Option<CliError>,
) -> Result<()> {
    for (receipt, result) in receipts.iter().zip(results) {
        if out.json {
            let mut line = json!(result);
            line["receipt"] = json!(receipt);
            out.object(&line)?;
        } else if result.ok {
            let done = if result.already_settled { "settled before:" } else { done };
            out.line(&format!("{done} {receipt}"))?;
        }
        if let Some(e) = result.error {
            let error = CliError::server(&e.code, &e.message, &e.details);
            match failed {
                None => *failed = Some(error),
                Some(_) => out.note(&format!("error: {}", e.message)),
            }
        }
    }
    Ok(())
}
