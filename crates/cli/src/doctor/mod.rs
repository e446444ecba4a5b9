//! `sluice doctor`: looks what could be wrong with a machine, a configuration and a running server, and says
//! of each finding what to do.
//!
//! Changes nothing: the one file that it writes, to measure the disk, has no name and is gone afterwards.
//! Each check is a function that looks and one that judges what was seen; the latter have the tests.
//!
//! Map: `finding` a finding and the report of all, `port` the address to listen on, `directory` the data
//! directory, `disk` the speed and kind of its disk, `root_key` the keys of the encryption, `certificates`
//! those of the server, `clock` the clock, `system` limits of the system, `server` a running server or
//! cluster.

mod certificates;
mod clock;
mod directory;
mod disk;
mod finding;
mod port;
mod root_key;
mod server;
mod system;

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;

use crate::config::{self, Config, SettingFlags, Sources};
use crate::connect::ServerFlags;
use crate::serve::node_file::NodeFile;
use crate::terminal::{Out, Result};
use finding::{Finding, Level, Report};

#[derive(Debug, Args)]
#[command(
    after_help = "Accepts the flags of `sluice serve`, and those of a server that is asked: sluice doctor \
    --data-dir /var/lib/sluice/data\n\n\
    Run it as the user that runs the server. Exit codes: 0 nothing is wrong, 1 there are \
    warnings, 8 there are problems."
)]
pub(crate) struct DoctorArgs {
    /// Configuration file of the server [default: ./sluice.toml if it is there; env: SLUICE_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look at a running server only, and not at this machine.
    #[arg(long)]
    remote: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Makes all checks, and reports them.
pub(crate) async fn run(args: DoctorArgs, out: Out) -> Result<u8> {
    let connection = args.server.connect()?;
    let (mut found, mut expected) = (Vec::new(), args.remote || connection.is_chosen());
    if !args.remote {
        match config::load(&Sources::of_process(args.config, args.settings)) {
            Ok(loaded) => {
                found.push(Finding::ok("configuration", "all settings are valid"));
                let ignored = loaded.warnings.iter();
                found.extend(
                    ignored.map(|it| Finding::warning("configuration", it, "unset it, if it was meant")),
                );
                expected |= !loaded.config.memory && directory::in_use(&loaded.config.data_dir);
                found.extend(this_machine(&loaded.config).await);
            }
            Err(error) => found.extend(error.0.iter().map(|it| {
                Finding::problem("configuration", it, "correct it; `sluice config` shows every setting")
            })),
        }
    }
    found.extend(server::check(&connection, expected).await);
    let report = Report::of(found);
    out.show(&report, Report::to_text)?;
    Ok(report.exit())
}

/// The findings about this machine as the place of a server.
async fn this_machine(config: &Config) -> Vec<Finding> {
    let in_use = !config.memory && directory::in_use(&config.data_dir);
    let mut found = match port::look(&config.listen, in_use).await {
        Ok(seen) => vec![port::judge(&seen)],
        Err(finding) => vec![finding],
    };
    let mut node = None;
    if config.memory {
        found.push(Finding::skipped("data_directory", "none: everything is in memory (`memory`)"));
    } else {
        found.extend(directory::check(config));
        found.extend(root_key::check(config));
        match NodeFile::read(&config.data_dir) {
            Ok(file) => node = file,
            Err(error) => found.push(Finding::told("format", Level::Problem, error.message())),
        }
        found.extend(disk_of(config, in_use));
        let newest = clock::newest(&config.data_dir);
        found.extend(clock::judge_newest(newest, SystemTime::now()));
    }
    found.extend(certificates::check(config, node.as_ref()));
    found.push(clock::judge_synchronised(clock::synchronised()));
    found.extend(system::judge(&system::Limits::of_process(), config));
    found
}

/// The findings about the disk under the data directory.
fn disk_of(config: &Config, in_use: bool) -> Vec<Finding> {
    const SPEED: &str = "disk_speed";
    let folder = directory::existing(&config.data_dir);
    let unseen = |check, error: std::io::Error| {
        let seen = format!("nothing can be seen of the disk under {}: {error}", folder.display());
        Finding::warning(check, seen, "let this user read and write there")
    };
    let mut found = vec![disk::file_system(&folder).unwrap_or_else(|error| unseen("file_system", error))];
    let free = match disk::room(&folder) {
        Err(error) => {
            found.push(unseen("disk_room", error));
            return found;
        }
        Ok((free, files)) => {
            found.push(directory::judge_room(free, files, config.low_water.0, config.reserve.0));
            free
        }
    };
    found.push(if in_use {
        Finding::skipped(SPEED, "not measured: a server uses the disk, and would be disturbed")
    } else if free < disk::FREE_MIN {
        Finding::skipped(SPEED, "not measured: there is little room")
    } else {
        disk::measure(&folder).map_or_else(|error| unseen(SPEED, error), disk::judge)
    });
    found
}
