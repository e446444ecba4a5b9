//! Settings of the server: one table, four sources, one error that lists all mistakes.
//!
//! Map: `table` all settings with default and description, `values` their types, `units` durations and sizes,
//! `telemetry` those of telemetry, `push` those of pushes,
//! `host` names of hosts, `members` nodes of a cluster, `load` reads file, environment and flags, `flags` the
//! table as command-line flags, `markdown` the table as a page of the documentation, `test_server` what
//! differs with `--test`.

mod flags;
mod host;
mod load;
mod markdown;
mod members;
mod push;
mod root_key_source;
mod table;
mod telemetry;
mod test_server;
mod values;

pub(crate) use flags::SettingFlags;
pub(crate) use host::{plain_host, read_host};
pub(crate) use load::{Loaded, Origin, Sources, load};
pub(crate) use markdown::markdown;
pub(crate) use root_key_source::RootKeySource;
pub(crate) use table::{Config, SETTINGS, Setting};
pub(crate) use values::{Any, LogFormat, SettingValue, TlsMode};
