//! The log on stderr: text or JSON.

use std::io::IsTerminal as _;
use std::sync::Arc;

use sluice_telemetry::logs::Layer;
use sluice_telemetry::queue::Queue;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use crate::config::{Config, LogFormat};

/// Starts logging, on stderr and into the queue of the events that are told; called once.
pub(super) fn start(config: &Config, told: Option<&Arc<Queue>>) {
    let level = LevelFilter::from_level(config.log_level.0);
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let told = told.map(|queue| Layer(Arc::clone(queue)));
    let all = registry().with(level).with(told);
    // Fails only if a logger exists already, which then stays.
    let _ = match config.log_format {
        LogFormat::Text => tracing::subscriber::set_global_default(all.with(layer)),
        LogFormat::Json => tracing::subscriber::set_global_default(all.with(layer.json())),
    };
}
