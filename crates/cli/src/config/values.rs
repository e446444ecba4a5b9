//! The types of settings, with parsing and formatting.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sluice_front::http::Compression;
use sluice_node::Durability;
use sluice_units::{parse_duration, parse_size, show_duration, show_size};

use super::host::{plain_host, read_host};

/// A type of settings. Every source gives text; the type parses it, or says what is expected.
pub(crate) trait SettingValue: Sized {
    /// Placeholder for a value in the help.
    const PLACEHOLDER: &'static str;
    /// Smallest and largest value, for types with an order.
    type Range;
    /// True if values are secrets, which neither `sluice config` nor an error shows.
    const IS_SECRET: bool = false;
    fn read(text: &str, range: &Self::Range) -> Result<Self, String>;
    fn show(&self) -> String;
}

/// The range of a type without an order: every value is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Any;

/// Smallest and largest value, both allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between<T>(pub(crate) T, pub(crate) T);

/// An optional path; empty text is `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MaybePath(pub(crate) Option<PathBuf>);

/// DNS names and IP addresses, separated by commas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

/// The source of the server's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TlsMode {
    /// The files `tls_cert` and `tls_key`; without them there is no TLS.
    Files,
    /// A CA and certificates that the first start creates.
    Auto,
}

/// A whole number without a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Count(pub(crate) u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size(pub(crate) u64);

/// The format of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The least important level that is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogLevel(pub(crate) tracing::Level);

impl Count {
    /// The value as 32 bits; the ranges of the table allow no more where this is used.
    pub(crate) fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    pub(crate) fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Size {
    /// The value as 32 bits; the ranges of the table allow no more where this is used.
    pub(crate) fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    pub(crate) fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

fn within<T: PartialOrd + Copy>(
    value: T,
    range: &Between<T>,
    show: impl Fn(T) -> String,
) -> Result<T, String> {
    if value < range.0 || value > range.1 {
        return Err(format!("expected {} to {}", show(range.0), show(range.1)));
    }
    Ok(value)
}

impl SettingValue for Count {
    const PLACEHOLDER: &'static str = "N";
    type Range = Between<u64>;

    fn read(text: &str, range: &Self::Range) -> Result<Self, String> {
        let number = text.replace('_', "");
        let value =
            number.parse().map_err(|_| format!("expected a whole number, {} to {}", range.0, range.1))?;
        within(value, range, |n| n.to_string()).map(Count)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl SettingValue for Size {
    const PLACEHOLDER: &'static str = "SIZE";
    type Range = Between<u64>;

    fn read(text: &str, range: &Self::Range) -> Result<Self, String> {
        within(parse_size(text)?, range, show_size).map(Size)
    }

    fn show(&self) -> String {
        show_size(self.0)
    }
}

impl SettingValue for Duration {
    const PLACEHOLDER: &'static str = "DURATION";
    type Range = Between<Duration>;

    fn read(text: &str, range: &Self::Range) -> Result<Self, String> {
        within(parse_duration(text)?, range, show_duration)
    }

    fn show(&self) -> String {
        show_duration(*self)
    }
}

impl SettingValue for bool {
    const PLACEHOLDER: &'static str = "true|false";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("expected true or false".to_owned()),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for PathBuf {
    const PLACEHOLDER: &'static str = "DIR";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        if text.is_empty() { Err("expected a path".to_owned()) } else { Ok(PathBuf::from(text)) }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl SettingValue for MaybePath {
    const PLACEHOLDER: &'static str = "PATH";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        Ok(MaybePath((!text.is_empty()).then(|| PathBuf::from(text))))
    }

    fn show(&self) -> String {
        self.0.as_ref().map_or_else(String::new, |path| path.display().to_string())
    }
}

impl SettingValue for Names {
    const PLACEHOLDER: &'static str = "NAME,...";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let checked = names.map(|name| read_host(name).map(|_| plain_host(name)));
        checked.collect::<Result<_, String>>().map(Names)
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

impl SettingValue for TlsMode {
    const PLACEHOLDER: &'static str = "files|auto";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        match text {
            "files" => Ok(TlsMode::Files),
            "auto" => Ok(TlsMode::Auto),
            _ => Err("expected files or auto".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            TlsMode::Files => "files".to_owned(),
            TlsMode::Auto => "auto".to_owned(),
        }
    }
}

/// `HOST:PORT`; the host is resolved when the server starts.
impl SettingValue for String {
    const PLACEHOLDER: &'static str = "HOST:PORT";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let wrong = || "expected HOST:PORT, such as 127.0.0.1:7070 or [::1]:7070".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare_ipv6 = host.contains(':') && !host.starts_with('[');
        if host.is_empty() || bare_ipv6 || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl SettingValue for Durability {
    const PLACEHOLDER: &'static str = "always|os|interval:DURATION";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let expected = "expected always, os, or interval:DURATION with 10ms to 1h, such as interval:1s";
        match text {
            "always" => Ok(Durability::Always),
            "os" => Ok(Durability::Os),
            _ => {
                let interval = text.strip_prefix("interval:").ok_or(expected)?;
                let interval = parse_duration(interval).map_err(|_| expected)?;
                let range = Between(Duration::from_millis(10), Duration::from_secs(3600));
                within(interval, &range, show_duration)
                    .map_err(|_| expected.to_owned())
                    .map(Durability::Interval)
            }
        }
    }

    fn show(&self) -> String {
        match self {
            Durability::Always => "always".to_owned(),
            Durability::Os => "os".to_owned(),
            Durability::Interval(interval) => format!("interval:{}", show_duration(*interval)),
        }
    }
}

impl SettingValue for LogFormat {
    const PLACEHOLDER: &'static str = "text|json";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("expected text or json".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            LogFormat::Text => "text".to_owned(),
            LogFormat::Json => "json".to_owned(),
        }
    }
}

impl SettingValue for Compression {
    const PLACEHOLDER: &'static str = "on|off|all";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        match text {
            "on" => Ok(Compression::On),
            "off" => Ok(Compression::Off),
            "all" => Ok(Compression::All),
            _ => Err("expected on, off or all".to_owned()),
        }
    }

    fn show(&self) -> String {
        match self {
            Compression::On => "on".to_owned(),
            Compression::Off => "off".to_owned(),
            Compression::All => "all".to_owned(),
        }
    }
}

impl SettingValue for LogLevel {
    const PLACEHOLDER: &'static str = "error|warn|info|debug|trace";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let known = ["error", "warn", "info", "debug", "trace"].contains(&text);
        let level = text.parse().ok().filter(|_| known);
        level.map(LogLevel).ok_or_else(|| "expected error, warn, info, debug or trace".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.as_str().to_ascii_lowercase())
    }
}
