//! The log on stderr: text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use crate::config::{Config, LogFormat};

/// Starts logging; called once.
pub(super) fn start(config: &Config) {
    let level = LevelFilter::from_level(config.log_level.0);
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    // Fails only if a logger exists already, which then stays.
    let _ = match config.log_format {
        LogFormat::Text => tracing::subscriber::set_global_default(registry().with(level).with(layer)),
        LogFormat::Json => tracing::subscriber::set_global_default(registry().with(level).with(layer.json())),
    };
}
