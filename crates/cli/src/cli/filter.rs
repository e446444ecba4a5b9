//! The filter of searches, as a flag.

use std::path::Path;

use clap::Args;
use serde_json::Value;

use super::{CliError, Result, bounded};

/// Advice with a filter that is right.
const EXAMPLE: &str = "A filter is, for example, '{\"/state\":\"ready\"}': docs/filters.md describes them.";

#[derive(Debug, Args)]
pub(super) struct FilterFlag {
    /// Filter that is to match, as a JSON object, or a file with it; `-` is stdin [default: all].
    #[arg(long = "where", value_name = "JSON|FILE")]
    filter: Option<String>,
}

impl FilterFlag {
    /// The filter that is given.
    pub(super) fn read(&self) -> Result<Option<Value>> {
        self.filter.as_deref().map(filter).transpose()
    }
}

/// The filter that an argument is or names.
fn filter(given: &str) -> Result<Value> {
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        let file = bounded::read_file(Path::new(given), bounded::FILE_BYTES_MAX).map_err(|error| {
            if given == "-" || Path::new(given).exists() { error } else { no_filter(given) }
        })?;
        bounded::text(file, given)?
    };
    serde_json::from_str(&text)
        .map_err(|error| CliError::usage(format!("the filter is no JSON: {error}")).hint(EXAMPLE))
}

fn no_filter(given: &str) -> CliError {
    CliError::usage(format!(
        "--where: expected a filter as a JSON object, or a file with it, and {given:?} is neither"
    ))
    .hint(EXAMPLE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_is_json_or_a_file() {
        assert_eq!(filter(" {\"/a\":1}").unwrap(), json!({"/a": 1}));
        assert!(filter("{\"/a\":").is_err() && filter("no/such/file").is_err());
        let error = filter("state=ready").unwrap_err();
        assert!(error.message().contains("\"state=ready\" is neither"), "{}", error.message());
        assert!(error.hints()[0].contains("/state"), "{:?}", error.hints());
    }
}
