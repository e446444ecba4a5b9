//! Settings of the server: one table, four sources, one error that lists everything that is wrong.
//!
//! Map: `table` every setting with its default and its words, `values` the types they may have, `units`
//! durations and sizes, `host` names of hosts, `key_source` where root keys are, `load` file, environment and
//! flags, `flags` the table as flags, `markdown` the table as a page.

mod flags;
mod host;
mod key_source;
mod load;
mod markdown;
mod table;
pub(crate) mod units;
mod values;

pub(crate) use flags::SettingFlags;
pub(crate) use host::{plain_host, read_host};
pub(crate) use key_source::RootKeySource;
pub(crate) use load::{Loaded, Origin, Sources, load};
pub(crate) use markdown::markdown;
pub(crate) use table::{Config, SETTINGS};
pub(crate) use values::{Any, LogFormat, SettingValue, TlsMode};
