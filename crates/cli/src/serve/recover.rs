//! `sluice cluster recover`: makes a node whose cluster has lost its majority for good the only node of a new
//! cluster, with the data that it has.
//!
//! What is to become of the node is written into its file first, then the members of each shard, then its
//! certificate, then its place. The server does not start in between, and the same again goes on with what
//! the file says: so whatever interrupts it, there is one outcome.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use sluice_calls::roster::check_address;
use sluice_node::{Recovery, ShardEnd, StartError};
use sluice_replica::NodeId;

use super::auto::AutoCertificates;
use super::node_file::{Membership, NodeFile, own_address};
use super::{join, options};
use crate::config::{self, Config, Loaded, Origin, SettingFlags, Sources};
use crate::root_keys::{RootKeyStore, ServerEncryption};
use crate::terminal::data_dir::expect_stopped;
use crate::terminal::format::time;
use crate::terminal::output::Table;
use crate::terminal::{CliError, Fault, Out, Result};

/// Begin of an error about the data.
const CANNOT: &str = "cannot recover the cluster";

#[derive(Debug, Args)]
#[command(
    after_help = "Give the settings with which the server is started: in the file, the environment or here.\n\
    Run it with --dry-run on each node that is left, and recover the one that has the most.\n\
    The other nodes must never be started again with the data that they have."
)]
pub(crate) struct RecoverArgs {
    /// Show what this node has, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Configuration file of the server [default: ./sluice.toml if it is there; env: SLUICE_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Shows what the node has, asks, and recovers the cluster from it. The same again changes nothing.
pub(crate) fn run(args: RecoverArgs, ask: impl FnOnce(&str) -> Result<()>, out: Out) -> Result<()> {
    let loaded = config::load(&Sources::of_process(args.config, args.settings))
        .map_err(|e| CliError::usage(e.to_string()))?;
    let named = named_address(&loaded)?;
    let config = loaded.config;
    expect_stopped(&config.data_dir)?;
    let (file, joined) = place(&config)?;
    let ends = look(&config).map_err(cannot)?;
    let address = named.as_ref().unwrap_or(&file.address);
    let found = remains(&joined, address, &ends);
    out.show(&found, |_| remains_in_words(&joined, address, &ends))?;
    if args.dry_run {
        return Ok(());
    }
    let others = others(&joined, &file, &ends);
    // One that only learns counts too: it may have been promised what this node has forgotten.
    let is_alone = |end: &ShardEnd| end.members.iter().map(NodeId::get).eq([joined.node]);
    if file.recovering.is_none() && ends.iter().all(is_alone) {
        return report(&joined, &file.address, &others, out);
    }
    ask("Giving up what only other nodes have")?;
    let recovery = open(&config).map_err(cannot)?;
    if recovery.ends() != ends {
        let changed = format!("the data in {} have changed meanwhile", config.data_dir.display());
        return Err(CliError::of(Fault::InUse, changed)
            .context(CANNOT)
            .hint("Stop the server, and look again."));
    }
    let file = NodeFile { address: address.clone(), ..file };
    let place = recover(&config, &file, &joined, recovery)?;
    report(&place, &file.address, &others, out)
}

/// The address of the node, where the settings name one: as its cluster's, or by the flag `--listen` one that
/// others can reach. `None`: it is that of its file.
fn named_address(loaded: &Loaded) -> Result<Option<String>> {
    let by_flag =
        matches!(loaded.origin("listen"), Origin::Flag(_)) && check_address(&loaded.config.listen).is_ok();
    let is_named = loaded.config.cluster_address.0.is_some() || by_flag;
    is_named.then(|| own_address(&loaded.config)).transpose()
}

/// Ends of the logs that the node has. Nothing is written, not even a key where the data need none.
fn look(config: &Config) -> std::result::Result<Vec<ShardEnd>, StartError> {
    let chosen = RootKeyStore::new(&config.key_source, &config.data_dir).choose(false)?;
    Recovery::look(&options(config, Some(&chosen)))
}

fn open(config: &Config) -> std::result::Result<Recovery, StartError> {
    let chosen = ServerEncryption::choose(config)?;
    Recovery::open(&options(config, Some(&chosen)))
}

fn cannot(error: StartError) -> CliError {
    CliError::start(&error).context(CANNOT)
}

/// The file of the node, and its place in the cluster.
fn place(config: &Config) -> Result<(NodeFile, Membership)> {
    let data_dir = config.data_dir.display();
    let none = || {
        CliError::usage(format!("{data_dir} belongs to no node of a cluster: nothing to recover"))
            .hint("If it is that of a node, its file `node` is missing: bring it back from a copy.")
    };
    if config.memory {
        return Err(CliError::usage("a node of a cluster has a data directory"));
    }
    let Some(file) = NodeFile::read(&config.data_dir)? else {
        let fixed = "the nodes of this cluster are those of cluster_members, which no recovery changes";
        let advice = "Start this node, make a backup, and restore it into a server of its own.";
        let is_fixed = !config.cluster_members.0.is_empty();
        return Err(if is_fixed { CliError::usage(fixed).hint(advice) } else { none() });
    };
    match file.joined.clone() {
        Some(_) if file.is_removed => Err(join::removed(&config.data_dir)),
        Some(joined) => Ok((file, joined)),
        None => Err(none()),
    }
}

/// Makes the node the only one of a new cluster, or goes on with that where it was interrupted.
fn recover(config: &Config, file: &NodeFile, joined: &Membership, recovery: Recovery) -> Result<Membership> {
    let place = match &file.recovering {
        Some(begun) => Membership { nodes: [(begun.node, file.address.clone())].into(), ..begun.clone() },
        None => {
            let number = recovery.next_number().ok_or_else(no_number)?;
            let recovered_from = Some(joined.cluster.clone());
            Membership { recovered_from, ..Membership::first(number.get(), &file.address) }
        }
    };
    let identity = place.identity().ok_or_else(no_number)?;
    NodeFile { recovering: Some(place.clone()), ..file.clone() }.write(&config.data_dir)?;
    recovery.make_sole_voter(identity.node).map_err(cannot)?;
    AutoCertificates::ensure(config, Some(identity))?;
    let done = NodeFile { joined: Some(place.clone()), recovering: None, ..file.clone() };
    done.write(&config.data_dir)?;
    Ok(place)
}

fn no_number() -> CliError {
    CliError::failed("the cluster has no number left for a node")
}

/// Numbers of the other nodes of the former cluster, as far as they are known.
fn others(joined: &Membership, file: &NodeFile, ends: &[ShardEnd]) -> BTreeSet<u64> {
    let members = ends.iter().flat_map(|end| end.members.iter().map(NodeId::get));
    let own = [Some(joined.node), file.recovering.as_ref().map(|place| place.node)];
    members.chain(joined.nodes.keys().copied()).filter(|node| !own.contains(&Some(*node))).collect()
}

fn remains(joined: &Membership, address: &str, ends: &[ShardEnd]) -> Value {
    let shard = |end: &ShardEnd| {
        let members: Vec<u64> = end.members.iter().map(NodeId::get).collect();
        json!({
            "shard": end.shard,
            "term": end.term,
            "index": end.index,
            "committed_index": end.committed_index,
            "time_ms": end.time_us / 1_000,
            "members": members,
            "may_lack_payloads": end.may_lack_payloads,
        })
    };
    let shards: Vec<Value> = ends.iter().map(shard).collect();
    json!({"cluster": joined.cluster, "node": joined.node, "address": address, "shards": shards})
}

fn remains_in_words(joined: &Membership, address: &str, ends: &[ShardEnd]) -> String {
    let mut table = Table::new(&["SHARD", ">TERM", ">LAST RECORD", ">COMMITTED", "TIME", "MEMBERS"]);
    for end in ends {
        table.row([
            end.shard.to_string(),
            end.term.to_string(),
            end.index.to_string(),
            end.committed_index.to_string(),
            time(end.time_us / 1_000),
            list(end.members.iter().map(NodeId::get)),
        ]);
    }
    let lacking: Vec<u64> =
        ends.iter().filter(|end| end.may_lack_payloads).map(|end| end.shard.into()).collect();
    let lacking = match lacking.as_slice() {
        [] => String::new(),
        shards => format!(
            "Payloads of some messages may be missing, since it had not caught up: shard {}.\n",
            list(shards.iter().copied())
        ),
    };
    format!(
        "Node {} of the cluster {}, reached at {address}, has these records:\n\n{}\n{lacking}\
         A recovery keeps all of them. What only other nodes have is lost, acknowledged or not. Look at each\n\
         node that is left with --dry-run: of two nodes the one whose last record has the higher term has more,\n\
         and with the same term the one with the higher last record.\n\n",
        joined.node,
        joined.cluster,
        table.render()
    )
}

fn report(place: &Membership, address: &str, others: &BTreeSet<u64>, out: Out) -> Result<()> {
    let Membership { cluster, node, .. } = place;
    let value = json!({"cluster": cluster, "node": node, "address": address});
    out.show(&value, |_| {
        let never = match others.len() {
            0 => String::new(),
            _ => format!(
                "Of the former cluster these nodes must never be started again with their data: {}.\n",
                list(others.iter().copied())
            ),
        };
        format!(
            "This server is node {node} of the cluster {cluster}, reached at {address}, and its only one.\n{never}\n  \
             sluice serve          goes on with its data, as a cluster of one node\n  \
             sluice cluster add    lets a machine join it, with an empty data directory\n"
        )
    })
}

fn list(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}
