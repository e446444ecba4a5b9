//! Loads the configuration: file, environment, flags; each overrides the one before. Collects all errors
//! before it fails.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use sluice_calls::near::distance;

use super::flags::SettingFlags;
use super::table::{Config, SETTINGS, Setting};
use super::test_server;

/// The file that is read if no file is named and this one exists.
const DEFAULT_FILE: &str = "sluice.toml";

/// Environment variables that begin like settings and are none.
const OTHER_VARIABLES: &[&str] = &[
    "SLUICE_CONFIG",
    "SLUICE_SERVER",
    "SLUICE_NAMESPACE",
    "SLUICE_CONTEXT",
    "SLUICE_CA",
    "SLUICE_CERT",
    "SLUICE_CERT_KEY",
    "SLUICE_TOKEN",
    "SLUICE_TOKEN_FILE",
    "SLUICE_JOIN",
    "SLUICE_JOIN_TOKEN",
    "SLUICE_JOIN_TOKEN_FILE",
];

/// The source of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Env(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Env(name) => write!(f, "env {name}"),
            Origin::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// The sources of the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The path given by `--config`.
    pub(crate) file: Option<PathBuf>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) flags: SettingFlags,
    /// True for a server for tests: it has other defaults, and what is set around it is meant for others.
    pub(crate) is_test: bool,
}

impl Sources {
    /// The sources of this process.
    pub(crate) fn of_process(file: Option<PathBuf>, flags: SettingFlags) -> Sources {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        let env = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let env = env.filter(|(name, _)| name.starts_with("SLUICE_")).collect();
        Sources { file, env, flags, is_test: false }
    }

    /// The sources of a server for tests: flags, and a file if one is named.
    pub(crate) fn of_test(file: Option<PathBuf>, flags: SettingFlags) -> Sources {
        Sources { file, env: BTreeMap::new(), flags, is_test: true }
    }

    /// The default of a setting.
    fn default(&self, setting: &Setting) -> &'static str {
        let of_test = if self.is_test { test_server::default(setting.key) } else { None };
        of_test.unwrap_or(setting.default)
    }
}

/// The settings with their sources.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// In the order of the table: value in its canonical form, and source.
    pub(crate) shown: Vec<(String, Origin)>,
    /// Possible mistakes that are no errors.
    pub(crate) warnings: Vec<String>,
    /// True for a server for tests.
    pub(crate) is_test: bool,
}

impl Loaded {
    /// The source of a setting.
    pub(crate) fn origin(&self, key: &str) -> &Origin {
        let at = SETTINGS.iter().position(|s| s.key == key);
        at.and_then(|at| self.shown.get(at)).map_or(&Origin::Default, |(_, origin)| origin)
    }
}

/// All errors of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConfigError(pub(crate) Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "the configuration has a mistake:\n  - {one}"),
            many => write!(f, "the configuration has {} mistakes:\n  - {}", many.len(), many.join("\n  - ")),
        }
    }
}

/// Loads the configuration, or returns all its errors.
pub(crate) fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let mut gathered = Gathered::default();
    gathered.file(sources);
    gathered.env(&sources.env);
    for (key, text) in &sources.flags.given {
        let flag = SETTINGS.iter().find(|s| s.key == *key).map_or_else(String::new, |s| s.flag());
        gathered.texts.insert(key, (text.clone(), Origin::Flag(flag)));
    }
    gathered.finish(sources)
}

#[derive(Default)]
struct Gathered {
    texts: BTreeMap<&'static str, (String, Origin)>,
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl Gathered {
    fn file(&mut self, sources: &Sources) {
        let (path, from) = match (&sources.file, sources.env.get("SLUICE_CONFIG")) {
            (Some(path), _) => (path.clone(), "--config"),
            (None, Some(path)) => (PathBuf::from(path), "SLUICE_CONFIG"),
            (None, None) if !sources.is_test && Path::new(DEFAULT_FILE).exists() => {
                (PathBuf::from(DEFAULT_FILE), "the current directory")
            }
            (None, None) => return,
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) => {
                return self.problems.push(format!("{} (from {from}): cannot be read: {e}", path.display()));
            }
        };
        match text.parse::<toml::Table>() {
            Ok(table) => self.table(&path, "", &table),
            Err(e) => self.problems.push(format!(
                "{}: not valid TOML: {}",
                path.display(),
                e.to_string().trim_end()
            )),
        }
    }

    fn table(&mut self, path: &Path, section: &str, table: &toml::Table) {
        for (name, value) in table {
            let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
            let text = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(switch) => switch.to_string(),
                toml::Value::Array(items) if items.iter().all(toml::Value::is_str) => {
                    items.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(",")
                }
                toml::Value::Table(inner) if section.is_empty() && is_section(&key) => {
                    self.table(path, &key, inner);
                    continue;
                }
                other => other.to_string(),
            };
            match SETTINGS.iter().find(|s| s.key == key) {
                Some(setting) => {
                    self.texts.insert(setting.key, (text, Origin::File(path.to_owned())));
                }
                None => {
                    self.problems.push(format!("{}: {key} is not a setting{}", path.display(), hint(&key)))
                }
            }
        }
    }

    fn env(&mut self, env: &BTreeMap<String, String>) {
        for (name, text) in env {
            if let Some(setting) = SETTINGS.iter().find(|s| s.env() == *name) {
                self.texts.insert(setting.key, (text.clone(), Origin::Env(name.clone())));
            } else if !OTHER_VARIABLES.contains(&name.as_str()) {
                // Not an error: orchestrators set variables of their own with the same prefix.
                self.warnings
                    .push(format!("the environment has {name}, which is not a setting and is ignored"));
            }
        }
    }

    fn finish(mut self, sources: &Sources) -> Result<Loaded, ConfigError> {
        let mut shown = Vec::new();
        for setting in SETTINGS {
            let default = || (sources.default(setting).to_owned(), Origin::Default);
            let (text, origin) = self.texts.get(setting.key).cloned().unwrap_or_else(default);
            match (setting.normalise)(&text) {
                Ok(value) => shown.push((value, origin)),
                Err(expected) => {
                    let place = match &origin {
                        Origin::File(path) => format!("{}: {}", path.display(), setting.key),
                        Origin::Env(name) => name.clone(),
                        Origin::Flag(name) => format!("--{name}"),
                        Origin::Default => setting.key.to_owned(),
                    };
                    let value = match setting.is_secret {
                        true => String::new(),
                        false => format!(" = {:?}", without_password(&text)),
                    };
                    self.problems.push(format!("{place}{value}: {expected}"));
                }
            }
        }
        if !self.problems.is_empty() {
            return Err(ConfigError(self.problems));
        }
        let text = |key: &str| {
            let at = SETTINGS.iter().position(|s| s.key == key);
            at.map_or_else(String::new, |at| shown[at].0.clone())
        };
        let config = Config::read(text).map_err(|e| ConfigError(vec![e]))?;
        let mut contradictions = config.contradictions();
        if sources.is_test {
            let origin = |key: &str| {
                let at = SETTINGS.iter().position(|s| s.key == key)?;
                Some(&shown[at].1).filter(|origin| **origin != Origin::Default).map(Origin::to_string)
            };
            contradictions.extend(test_server::contradictions(&config, origin));
        }
        if !contradictions.is_empty() {
            return Err(ConfigError(contradictions));
        }
        Ok(Loaded { config, shown, warnings: self.warnings, is_test: sources.is_test })
    }
}

/// A value without the name and the password of a URL in it.
fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://...@{host}"),
        None => value.to_owned(),
    }
}

fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|s| s.section() == Some(name))
}

/// Suggests the setting that was probably meant.
fn hint(key: &str) -> String {
    let wanted = key.replace('-', "_");
    let last = |key: &str| key.rsplit('.').next().unwrap_or("").to_owned();
    let near = SETTINGS
        .iter()
        .min_by_key(|s| distance(s.key, &wanted).min(distance(&last(s.key), &last(&wanted)) + 1));
    match near {
        Some(s) if distance(s.key, &wanted).min(distance(&last(s.key), &last(&wanted))) <= 2 => {
            format!("; did you mean {}?", s.key)
        }
        _ => "; `sluice config` lists them all".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(file: Option<&Path>, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Sources {
        Sources {
            file: file.map(Path::to_owned),
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            flags: SettingFlags { given: flags.iter().map(|(k, v)| (*k, (*v).to_owned())).collect() },
            is_test: false,
        }
    }

    fn of_test(flags: &[(&'static str, &str)]) -> Result<Loaded, ConfigError> {
        load(&Sources { is_test: true, ..sources(None, &[], flags) })
    }

    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.toml");
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn each_source_overrides_the_one_before() {
        let (_dir, path) =
            written("shards = 2\ncache = \"1MiB\"\ngrace = \"1m\"\n[limits]\npayload = 4096\n");
        let env = [
            ("SLUICE_SHARDS", "3"),
            ("SLUICE_CACHE", "2MiB"),
            ("SLUICE_SERVER", "x"),
            ("SLUICE_JOIN", "x"),
            ("SLUICE_PORT", "y"),
        ];
        let loaded = load(&sources(Some(&path), &env, &[("shards", "4")])).unwrap();
        let show = |key: &str| {
            let at = SETTINGS.iter().position(|s| s.key == key).unwrap();
            format!("{} ({})", loaded.shown[at].0, loaded.shown[at].1)
        };
        assert_eq!(show("shards"), "4 (flag --shards)");
        assert_eq!(show("cache"), "2MiB (env SLUICE_CACHE)");
        assert_eq!(show("grace"), format!("1m (file {})", path.display()));
        assert_eq!(show("limits.payload"), format!("4KiB (file {})", path.display()));
        assert_eq!(show("listen"), "127.0.0.1:7070 (default)");
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    }

    #[test]
    fn a_password_in_a_url_is_not_repeated() {
        for url in ["http://ann:geheim@otel:4318", "http://ann:gehei/m@otel:4318", "http://ann:a@geheim@otel"]
        {
            let error = load(&sources(None, &[], &[("telemetry.endpoint", url)])).unwrap_err().to_string();
            assert!(error.contains("http://...@otel") && !error.contains("gehei"), "{error}");
        }
        assert_eq!(without_password("30"), "30");
    }

    #[test]
    fn one_error_lists_everything() {
        let (_dir, path) = written("shard = 2\ncolour = 1\ncache = 1.5\n[limits]\npayloads = \"1MiB\"\n");
        let env = [("SLUICE_GRACE", "30")];
        let error =
            load(&sources(Some(&path), &env, &[("durability", "sometimes"), ("shards", "65")])).unwrap_err();
        let text = error.to_string().replace(&path.display().to_string(), "s.toml");
        for line in [
            "the configuration has 7 mistakes:",
            "s.toml: shard is not a setting; did you mean shards?",
            "s.toml: colour is not a setting; `sluice config` lists them all",
            "s.toml: limits.payloads is not a setting; did you mean limits.payload?",
            "s.toml: cache = \"1.5\": expected a size such as",
            "SLUICE_GRACE = \"30\": expected a duration with its unit",
            "--durability = \"sometimes\": expected always, os, or interval:DURATION",
            "--shards = \"65\": expected 1 to 64",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn secrets_are_in_no_error_and_not_shown() {
        for text in ["Bearer hidden", "a b: hidden=hidden", "authorization=hidden\u{7f}"] {
            let env = [("SLUICE_TELEMETRY_HEADERS", text)];
            let error = load(&sources(None, &env, &[])).unwrap_err().to_string();
            assert!(error.contains("SLUICE_TELEMETRY_HEADERS: ") && !error.contains("hidden"), "{error}");
        }
        let setting = SETTINGS.iter().find(|setting| setting.key == "telemetry.headers").unwrap();
        assert_eq!((setting.shown("a=hidden"), setting.shown("")), ("(not shown)", ""));
    }

    #[test]
    fn a_named_file_must_be_there_and_be_toml() {
        let error = load(&sources(Some(Path::new("/nowhere.toml")), &[], &[])).unwrap_err().to_string();
        assert!(error.contains("/nowhere.toml (from --config): cannot be read"), "{error}");
        let (_dir, path) = written("listen = \n");
        assert!(load(&sources(Some(&path), &[], &[])).unwrap_err().to_string().contains("not valid TOML"));
    }

    #[test]
    fn a_server_for_tests_has_defaults_of_its_own() {
        let loaded = of_test(&[("limits.payload", "2MiB")]).unwrap();
        let config = &loaded.config;
        assert!(loaded.is_test && config.memory && config.limit_payload.0 == 2 << 20);
        assert_eq!((config.listen.as_str(), loaded.origin("memory")), ("127.0.0.1:0", &Origin::Default));
        let elsewhere = of_test(&[("listen", "127.0.0.1:7071"), ("memory", "true")]).unwrap();
        assert_eq!(elsewhere.config.listen, "127.0.0.1:7071");
    }

    #[test]
    fn a_server_for_tests_has_neither_a_disk_nor_other_nodes() {
        for (flag, text, told) in [
            ("data_dir", "d", "data_dir (from flag --data-dir)"),
            ("durability", "always", "durability (from flag --durability)"),
            ("key_source", "env:KEY", "key_source (from flag --key-source)"),
            ("cluster_address", "a:1", "cluster_address (from flag --cluster-address)"),
            ("memory", "false", "leave out memory = false"),
            ("tls", "auto", "set tls_dir"),
        ] {
            let error = of_test(&[(flag, text)]).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("--test"), "{error}");
        }
        of_test(&[("tls", "auto"), ("tls_dir", "d")]).unwrap();
    }

    #[test]
    fn what_contradicts_is_told() {
        let flags = [("limits.payload", "8MiB"), ("limits.batch_bytes", "4MiB")];
        let error = load(&sources(None, &[], &flags)).unwrap_err().to_string();
        assert!(error.contains("no message of that size could be sent"), "{error}");
    }
}
