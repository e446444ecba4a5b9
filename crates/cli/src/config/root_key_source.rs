//! The setting `key_source`.

use std::path::PathBuf;

use super::{Any, SettingValue};

/// The source of the root keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RootKeySource {
    /// A file beside the data directory, with its name and `.key`.
    Beside,
    /// The file with this path.
    File(PathBuf),
    /// The environment variable with this name.
    Env(String),
    /// The output of this command, which a shell runs.
    Command(String),
}

impl SettingValue for RootKeySource {
    const PLACEHOLDER: &'static str = "auto|file:PATH|env:NAME|command:LINE";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let source = match text.split_once(':') {
            None if text == "auto" => return Ok(RootKeySource::Beside),
            Some(("file", path)) => Some(RootKeySource::File(PathBuf::from(path))),
            Some(("env", name)) => Some(RootKeySource::Env(name.to_owned())),
            Some(("command", line)) => Some(RootKeySource::Command(line.to_owned())),
            _ => None,
        };
        let named = text.split_once(':').is_some_and(|(_, rest)| !rest.trim().is_empty());
        source.filter(|_| named).ok_or_else(|| {
            "expected auto, file:PATH, env:NAME, or command:LINE, such as file:/etc/sluice/root.key"
                .to_owned()
        })
    }

    fn show(&self) -> String {
        match self {
            RootKeySource::Beside => "auto".to_owned(),
            RootKeySource::File(path) => format!("file:{}", path.display()),
            RootKeySource::Env(name) => format!("env:{name}"),
            RootKeySource::Command(line) => format!("command:{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_read_as_it_is_shown_and_a_key_is_none() {
        for text in ["auto", "file:/etc/key", "env:NAME", "command:vault read -field=key x:y"] {
            assert_eq!(RootKeySource::read(text, &Any).unwrap().show(), text);
        }
        for text in ["", "file:", "env: ", "/etc/key", &"ab".repeat(32)] {
            let error = RootKeySource::read(text, &Any).unwrap_err();
            assert!(error.contains("expected auto"), "{error}");
        }
    }
}
