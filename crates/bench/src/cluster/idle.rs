//! Processor time, memory and disk of three nodes of many shards that have nothing to do; the disk after each
//! shard was used.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sluice_client::QuotaChange;

use crate::load::{Amount, Ledger, Load, connection};
use crate::nodes::Nodes;
use crate::process::{Usage, mib, usage};
use crate::report::Report;
use crate::stream::queue_name;
use crate::table::{Table, figure};

/// Pause after all shards have leaders, in which they come to rest.
const SETTLE: Duration = Duration::from_secs(10);
/// Time over which the processor time is measured.
const LEFT_ALONE: Duration = Duration::from_secs(60);
/// Time within which shards that were used have given back the room that they took ahead: they begin after a
/// minute.
const AT_REST: Duration = Duration::from_secs(90);
/// Divisor of these times, and of what each shard is given, in a smoke test.
const SMOKE_PART: u32 = 20;
/// Payloads that each shard is given and has worked, in bytes: enough for it to make its next segment.
const USED_BYTES: usize = 2 << 20;
/// Size of these payloads in bytes, and messages in one send.
const PAYLOAD_BYTES: usize = 4 << 10;
const BATCH: usize = 32;
/// Size of the blocks of which the file system tells how many a file takes, in bytes.
const BLOCK_BYTES: u64 = 512;

/// Starts a cluster of so many shards in a folder that does not exist, and leaves it alone; then uses each
/// shard, and leaves it alone again. Tells what each node takes: of the processor, and for each shard of
/// memory, both before, and of disk, afterwards; figures are those of the node that takes most.
pub(super) async fn measure(
    folder: &Path,
    shards: u32,
    durability: &str,
    smoke: bool,
    report: &mut Report,
) -> Result<(), String> {
    let time = |whole: Duration| if smoke { whole / SMOKE_PART } else { whole };
    let nodes = Nodes::start(folder, durability, shards)?;
    nodes.all_led(shards).await?;
    tokio::time::sleep(time(SETTLE)).await;
    let alone = time(LEFT_ALONE);
    let before = usages(&nodes)?;
    tokio::time::sleep(alone).await;
    let after = usages(&nodes)?;
    use_each(&nodes, shards, if smoke { USED_BYTES / SMOKE_PART as usize } else { USED_BYTES }).await?;
    tokio::time::sleep(time(AT_REST)).await;
    let mut found = Vec::new();
    for ((before, after), data_dir) in before.iter().zip(&after).zip(nodes.data_dirs()) {
        let cpu = after.cpu.saturating_sub(before.cpu);
        let disk = disk_bytes(data_dir).map_err(|error| format!("{}: {error}", data_dir.display()))?;
        found.push([
            100.0 * cpu.as_secs_f64() / alone.as_secs_f64(),
            mib(after.rss_bytes) / f64::from(shards),
            mib(disk) / f64::from(shards),
        ]);
    }
    tell(&found, shards, report);
    nodes.stop()
}

/// Sends so many bytes of payloads to each shard, and works them.
async fn use_each(nodes: &Nodes, shards: u32, bytes: usize) -> Result<(), String> {
    let all = nodes.all();
    let admin = connection(&all)?;
    for shard in 0..shards {
        let namespace = format!("idle-{shard}");
        let made = admin.namespace_create(&namespace, QuotaChange::default(), Some(shard)).await;
        made.map_err(|error| format!("cannot make {namespace}: {error}"))?;
        let ledger = Arc::new(Ledger::new());
        let load = Load::new(&all, &[namespace], &[queue_name()], 1, BATCH, PAYLOAD_BYTES)?;
        load.send(&ledger, Amount::Messages(bytes.div_ceil(PAYLOAD_BYTES) as u64)).await?;
        load.work(&ledger).await?;
        ledger.verify()?;
    }
    Ok(())
}

fn usages(nodes: &Nodes) -> Result<Vec<Usage>, String> {
    nodes.pids()?.into_iter().map(usage).collect()
}

/// Bytes that the files of a folder take on the disk.
fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { disk_bytes(&entry.path())? } else { about.blocks() * BLOCK_BYTES };
    }
    Ok(bytes)
}

fn tell(found: &[[f64; 3]], shards: u32, report: &mut Report) {
    const KEYS: [&str; 3] = ["idle_cpu_percent", "idle_memory_mib", "idle_disk_mib"];
    let titles = ["node", "% of a core", "MiB of memory a shard", "MiB of disk a shard"];
    let mut table = Table::new(&titles);
    for (node, figures) in (1..).zip(found) {
        table.row([vec![format!("{node}")], figures.map(figure).to_vec()].concat());
    }
    report.table(&format!("three idle nodes, {shards} shards"), table);
    let of_each = |at: usize| found.iter().map(|figures| figures[at]).collect::<Vec<f64>>();
    let nodes: serde_json::Map<_, _> =
        (0..).zip(KEYS).map(|(at, key)| (key.to_owned(), json!(of_each(at)))).collect();
    report.row("idle", json!({ "shards": shards, "nodes": nodes }));
    for (at, key) in (0..).zip(KEYS) {
        report.figure(key, of_each(at).into_iter().fold(0.0, f64::max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_folders_within_count_by_what_they_take() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("within")).unwrap();
        fs::write(dir.path().join("within/file"), [7; 100_000]).unwrap();
        // A file of nothing takes next to nothing.
        fs::File::create(dir.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
        let bytes = disk_bytes(dir.path()).unwrap();
        assert!((100_000..300_000).contains(&bytes), "{bytes}");
    }
}
