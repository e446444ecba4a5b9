//! Progress of a long operation, on stderr if that is a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Out;

/// A progress bar; does nothing without a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar that counts items, up to `total` if that is known.
    pub(crate) fn things(out: Out, total: Option<u64>, what: &str) -> Progress {
        let template = match total {
            Some(_) => "{bar:30} {human_pos}/{human_len} {msg}, {per_sec}, {eta} left",
            None => "{spinner} {human_pos} {msg}, {per_sec}",
        };
        Progress::new(out, total, template, what)
    }

    /// A bar that counts bytes, up to `total` if that is known.
    pub(crate) fn bytes(out: Out, total: Option<u64>, what: &str) -> Progress {
        let template = match total {
            Some(_) => {
                "{bar:30} {binary_bytes}/{binary_total_bytes} {msg}, {binary_bytes_per_sec}, {eta} left"
            }
            None => "{spinner} {binary_bytes} {msg}, {binary_bytes_per_sec}",
        };
        Progress::new(out, total, template, what)
    }

    fn new(out: Out, total: Option<u64>, template: &str, what: &str) -> Progress {
        let watched = std::io::stderr().is_terminal() && !out.json;
        let target =
            if watched { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if watched {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Progress(bar)
    }

    /// Counts from here on: so much was done before, in no time of this run.
    pub(crate) fn begin_at(&self, count: u64) {
        self.0.set_position(count);
        self.0.reset_eta();
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Runs what prints, with the bar out of the way.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Removes the bar, so that the next output begins on an empty line.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
