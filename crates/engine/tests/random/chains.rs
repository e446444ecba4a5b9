//! Steps for random messages.

use sluice_engine::command::SendItem;
use sluice_engine::item::{Chain, SendOptions, Step, Steps};

use super::Run;

/// A few steps, and what they refer to.
pub(super) type StepOptions = Vec<SendOptions<'static>>;

impl Run {
    /// Options that steps may have.
    pub(super) fn step_options(&mut self) -> StepOptions {
        let mut options: StepOptions =
            (0..3).map(|_| SendOptions { unique: None, ..self.options() }).collect();
        if self.numbers.one_in(3) {
            options[0].expires = self.over();
        }
        options
    }

    /// Steps for one message, and perhaps one for its failure.
    pub(super) fn steps<'a>(&mut self, options: &'a [SendOptions<'static>]) -> Vec<Step<'a>> {
        (0..1 + self.numbers.below(4))
            .map(|_| {
                let own_payload = self.numbers.one_in(2);
                Step {
                    queue: self.queue(),
                    own_payload,
                    item: SendItem {
                        payload: if own_payload { b"step" } else { b"" },
                        tags: if own_payload && self.numbers.one_in(3) { &["red"] } else { &[] },
                        headers: if self.numbers.one_in(3) { &[("step", "1")] } else { &[] },
                        options: options.get(self.numbers.below(6) as usize),
                        ..SendItem::default()
                    },
                }
            })
            .collect()
    }

    /// The first of some steps stands for a failure now and then.
    pub(super) fn chain<'a>(&mut self, steps: &'a [Step<'a>]) -> Steps<'a> {
        match steps.split_first() {
            Some((first, rest)) if self.numbers.one_in(2) => Steps { steps: rest, on_failure: Some(first) },
            _ => Steps { steps, on_failure: None },
        }
    }

    /// Gives it to some of the messages.
    pub(super) fn put_chain<'a>(&mut self, chain: &'a Steps<'a>, options: &mut [SendOptions<'a>]) {
        for options in options {
            if self.numbers.one_in(3) {
                options.chain = Chain::Given(chain);
            }
        }
    }
}
