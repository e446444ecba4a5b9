//! Progress of long work, on stderr, when a person watches.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Out;

/// A bar; of no effect when nobody watches.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts things, of which `total` are expected if that is known.
    pub(crate) fn things(out: Out, total: Option<u64>, what: &str) -> Progress {
        let template = match total {
            Some(_) => "{bar:30} {human_pos}/{human_len} {msg}, {per_sec}, {eta} left",
            None => "{spinner} {human_pos} {msg}, {per_sec}",
        };
        Progress::new(out, total, template, what)
    }

    /// Counts bytes, of which `total` are expected if that is known.
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

    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Takes the bar away, so that what follows stands on a clean line.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
