//! Parts that all commands share with the terminal: errors with their exit codes, output for people and
//! machines, values of flags.
//!
//! Map: `error` errors, `output` results, `format` times, sizes and names as text, `values` values of flags,
//! `data_dir` messages about a data directory.

pub(crate) mod data_dir;
pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod output;
pub(crate) mod values;

pub(crate) use error::{CliError, Fault, Result};
pub(crate) use output::Out;
