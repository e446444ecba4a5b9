//! `sluice check`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use sluice_journal::{CheckReport, FsDisk, OpenError, check};
use sluice_node::directory;

use super::format::{counted, plural, size};
use super::progress::Progress;
use super::{CliError, Fault, Out, Result};
/// The remark about a server that was killed, or whose machine lost power.
use crate::root_keys::KeyFlags;
use crate::terminal::data_dir::{NOT_IN_ORDER, expect_directory};

#[derive(Debug, Args)]
#[command(after_help = "\
Reads every file to the last payload and writes nothing. Exit codes: 0 all is \
well, 8 damage was found, 2 not a data directory, 4 a server uses it.")]
pub(crate) struct CheckArgs {
    /// Data directory of a server that is not running.
    data_dir: PathBuf,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(super) fn run(args: &CheckArgs, out: Out) -> Result<u8> {
    expect_directory(&args.data_dir)?;
    let problems = directory::problems(&args.data_dir);
    let shards = shards(&args.data_dir)
        .or_else(|error| if problems.is_empty() { Err(error) } else { Ok(Vec::new()) })?;
    let roots = args.keys.read(&args.data_dir).map_err(CliError::usage)?;
    let mut damaged = !problems.is_empty();
    if damaged {
        let name = args.data_dir.display().to_string();
        let whole = json!({"data_dir": &name, "ok": false, "problems": &problems});
        out.show(&whole, |_| format!("{name}: DAMAGED\n  {}\n", problems.join("\n  ")))?;
    }
    for dir in &shards {
        let progress = Progress::things(out, None, &format!("verifying {}", dir.display()));
        let result = check(Arc::new(FsDisk), dir, &roots);
        progress.finish();
        let shard = ShardReport::of(dir, result)?;
        damaged |= shard.is_damaged();
        out.show(&shard.to_json(), |_| shard.to_text())?;
    }
    if !damaged {
        return Ok(0);
    }
    Err(CliError::of(Fault::Damaged, format!("{} is damaged", args.data_dir.display()))
        .hint("Keep a copy of the directory before you change anything.")
        .hint("Look for disk errors. A node of a cluster gets the data from the others: start it.")
        .hint("For a server alone, restore the latest backup with `sluice restore`."))
}

/// The directories of the shards, by number.
fn shards(data_dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| CliError::unreadable(&data_dir.display().to_string(), &e);
    let mut found = Vec::new();
    for entry in data_dir.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name.starts_with("shard-") {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(CliError::usage(format!("{} is not a data directory of Sluice", data_dir.display()))
            .hint("Give the directory that `sluice serve --data-dir` uses; it holds shard-000 and so on."));
    }
    found.sort();
    Ok(found)
}

/// The result for one shard.
struct ShardReport<'a> {
    dir: &'a Path,
    report: CheckReport,
    /// The error that prevented the verification.
    fatal: Option<String>,
}

impl<'a> ShardReport<'a> {
    fn of(dir: &'a Path, result: std::result::Result<CheckReport, OpenError>) -> Result<ShardReport<'a>> {
        match result {
            Ok(report) => Ok(ShardReport { dir, report, fatal: None }),
            Err(OpenError::InUse { .. }) => {
                Err(CliError::of(Fault::InUse, format!("a server uses {}", dir.display()))
                    .hint("Stop the server first: a check of files that change proves nothing."))
            }
            Err(e @ OpenError::Damaged(_)) => {
                let fatal = Some(e.to_string());
                Ok(ShardReport { dir, report: CheckReport::default(), fatal })
            }
            Err(e @ OpenError::Key { .. }) => Err(CliError::start(&e.into()).hint(
                "Name the source of the keys with --key-source: a file, an environment variable or a \
                    command.",
            )),
            Err(e) => Err(CliError::start(&e.into())),
        }
    }

    fn is_damaged(&self) -> bool {
        self.fatal.is_some() || !self.report.problems.is_empty()
    }

    fn to_json(&self) -> Value {
        let report = &self.report;
        let files =
            report.files.iter().map(|f| json!({"path": f.path.display().to_string(), "bytes": f.bytes}));
        let problems = report.problems.iter().map(|p| {
            json!({"file": p.file.display().to_string(), "offset": p.offset, "record": p.record, "what": p.what})
        });
        let cut = report.cut.as_ref().map(|c| {
            json!({"file": c.file.display().to_string(), "offset": c.offset, "index": c.index, "bytes": c.bytes})
        });
        json!({
            "shard": self.dir.display().to_string(),
            "ok": !self.is_damaged(),
            "term": report.term,
            "files": files.collect::<Vec<_>>(),
            "batches": report.batches,
            "records": report.records,
            "blobs": report.blobs,
            "snapshot_index": report.snapshot_index,
            "next_index": report.next_index,
            "cut": cut,
            "end_known": report.end_known,
            "error": self.fatal,
            "problems": problems.collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let report = &self.report;
        let bytes = report.files.iter().map(|f| f.bytes).sum();
        let verdict = if self.is_damaged() { "DAMAGED" } else { "ok" };
        let mut text = format!(
            "{}: {verdict}\n  {} in {}: {}, {}, {}\n",
            self.dir.display(),
            size(bytes),
            counted(report.files.len() as u64, "file"),
            plural(report.batches, "batch", "batches"),
            counted(report.records, "record"),
            counted(report.blobs, "payload")
        );
        if let Some(cut) = &report.cut {
            text.push_str(&format!(
                "  the next start will cut {} from the end of {}: an incomplete batch that was never \
                confirmed as synced\n",
                size(cut.bytes),
                cut.file.display()
            ));
        }
        if !self.is_damaged() && !report.end_known {
            text.push_str(&format!("  {NOT_IN_ORDER}\n"));
        }
        for problem in self.fatal.iter().cloned().chain(report.problems.iter().map(ToString::to_string)) {
            text.push_str(&format!("  {problem}\n"));
        }
        text
    }
}
