//! The steps that messages carry: `chain` and `on_failure`.

use sluice_engine::Error;
use sluice_engine::item::{Chain, STEPS_MAX, SendOptions, Step, Steps};
use sluice_engine::limits::Limits;

use super::{Batch, Message};
use crate::hot::content::Text;
use crate::hot::send::fields::STEP_FIELDS;
use crate::hot::source::Source;
use sluice_calls::fault::{Fault, Read};

/// One step, as it was read.
#[derive(Debug)]
pub(super) struct StepFields<'a> {
    pub(super) message: Message<'a>,
    queue: Text<'a>,
    /// Its place in the chain; `None`: it follows a failure.
    place: Option<usize>,
}

/// The steps of one message, as places in the list of all of them.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// From and to.
    chain: (usize, usize),
    on_failure: Option<usize>,
}

impl Carried {
    /// The first of them in the list; `None`: there is none.
    pub(super) fn first(&self) -> Option<usize> {
        let (from, to) = self.chain;
        (from < to).then_some(from).into_iter().chain(self.on_failure).min()
    }

    fn has(&self, at: usize) -> bool {
        (self.chain.0..self.chain.1).contains(&at) || self.on_failure == Some(at)
    }
}

impl<'a> Batch<'a> {
    /// Reads `chain` or `on_failure`.
    pub(super) fn read_steps(
        &mut self,
        reader: &mut impl Source<'a>,
        name: &'static str,
        message: &mut Message<'a>,
        limits: &Limits,
    ) -> Read<()> {
        self.enter_options(message);
        if name == "on_failure" {
            let step = self.read_step(reader, None, limits)?;
            message.carried.on_failure = Some(self.steps.len());
            self.steps.push(step);
            return Ok(());
        }
        let from = self.steps.len();
        let mut count = 0u64;
        reader.array(|reader, place| {
            let step = self.read_step(reader, Some(place), limits)?;
            count += 1;
            // What is over the limit is counted, to name the number, but not kept.
            if count <= STEPS_MAX as u64 {
                self.steps.push(step);
            } else {
                self.forget(&step.message);
            }
            Ok(())
        })?;
        if !(1..=STEPS_MAX as u64).contains(&count) {
            return Err(Fault::invalid(format!("expected 1 to {STEPS_MAX} steps, got {count}")));
        }
        let limit = u64::from(limits.batch_items);
        if self.steps.len() as u64 > limit {
            let size = self.steps.len() as u64;
            return Err(Error::BatchTooLarge { what: "steps of chains", size, limit }.into());
        }
        message.carried.chain = (from, self.steps.len());
        Ok(())
    }

    fn read_step(
        &mut self,
        reader: &mut impl Source<'a>,
        place: Option<usize>,
        limits: &Limits,
    ) -> Read<StepFields<'a>> {
        let (message, queue) = self.message_with_queue(reader, STEP_FIELDS, "the step", limits)?;
        Ok(StepFields { message, queue, place })
    }

    /// Adds the place of a step to a fault in it.
    pub(super) fn place_of_step(&self, at: usize, fault: Box<Fault>) -> Box<Fault> {
        let fault = match self.steps[at].place {
            Some(place) => fault.at(place).inside("chain"),
            None => fault.inside("on_failure"),
        };
        match self.messages.iter().position(|message| message.carried.has(at)) {
            Some(carrier) => self.place_of_message(carrier, fault),
            None => fault,
        }
    }

    /// The steps of all messages, with what [`Batch::headers`], [`Batch::tags`] and [`Batch::options`] gave,
    /// for [`Batch::chains`] to take from.
    pub(crate) fn steps<'s>(
        &'s self,
        headers: &'s [(&'s str, &'s str)],
        tags: &'s [&'s str],
        options: &'s [SendOptions<'s>],
    ) -> Vec<Step<'s>> {
        let step = |step: &'s StepFields<'a>| Step {
            queue: step.queue.get(&self.scratch),
            own_payload: step.message.payload.is_some(),
            item: self.item(&step.message, headers, tags, options),
        };
        self.steps.iter().map(step).collect()
    }

    /// The chains of those messages that carry one, each with the place of its message's options, for
    /// [`Batch::chained`].
    pub(crate) fn chains<'s>(&self, steps: &'s [Step<'s>]) -> Vec<(usize, Steps<'s>)> {
        let chain = |message: &Message<'a>| {
            message.carried.first()?;
            let (from, to) = message.carried.chain;
            let on_failure = message.carried.on_failure.and_then(|at| steps.get(at));
            Some((message.options?, Steps { steps: steps.get(from..to)?, on_failure }))
        };
        if steps.is_empty() { Vec::new() } else { self.messages.iter().filter_map(chain).collect() }
    }

    /// The options with the chains, for [`Batch::items`] to take from.
    pub(crate) fn chained<'s>(
        &self,
        mut options: Vec<SendOptions<'s>>,
        chains: &'s [(usize, Steps<'s>)],
    ) -> Vec<SendOptions<'s>> {
        for (at, steps) in chains {
            if let Some(options) = options.get_mut(*at) {
                options.chain = Chain::Given(steps);
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    #[test]
    fn a_chain_is_read_with_its_places() {
        let body = br#"{"messages":[{"payload":"a"},{"chain":[{"queue":"\u0062","ordering_key":"k"},
            {"queue":"c","payload_base64":"/wA=","tags":["t"]}],"payload":"x",
            "on_failure":{"queue":"d","headers":{"h":"1"}},"fair_key":"f"}]}"#;
        let batch = Reader::new(body).and_then(|reader| Batch::read(reader, &Limits::default())).unwrap();
        let (headers, tags, plain) = (batch.headers(), batch.tags(), batch.options());
        let steps = batch.steps(&headers, &tags, &plain);
        let chains = batch.chains(&steps);
        let options = batch.chained(plain.clone(), &chains);
        let items = batch.items(&headers, &tags, &options);
        assert_eq!(items[0].options, None);
        let options = items[1].options.unwrap();
        assert_eq!(options.fair_key, b"f");
        let Chain::Given(chain) = options.chain else { panic!("no chain") };
        let shown: Vec<_> =
            chain.steps.iter().map(|step| (step.queue, step.own_payload, step.item.payload)).collect();
        assert_eq!(shown, [("b", false, &b""[..]), ("c", true, &[255, 0])]);
        assert_eq!(chain.steps[0].item.options.unwrap().ordering_key, b"k");
        assert_eq!(chain.steps[1].item.tags, ["t"]);
        let failure = chain.on_failure.unwrap();
        assert_eq!((failure.queue, failure.item.headers), ("d", &[("h", "1")][..]));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let many =
            format!(r#"{{"payload":"","chain":[{}{{"queue":"a"}}]}}"#, r#"{"queue":"a"},"#.repeat(100));
        for (body, expected) in [
            (r#"{"payload":"","chain":[]}"#, "invalid_argument chain: expected 1 to 100 steps, got 0"),
            (&many, "invalid_argument chain: expected 1 to 100 steps, got 101"),
            (r#"{"payload":"","chain":[{"payload":"b"}]}"#, "missing_field chain[0].queue: say which"),
            (
                r#"{"payload":"","chain":[{"queue":"a","unique":{"key":"k"}}]}"#,
                "unknown_field chain[0].unique: unknown field: known here are payload,",
            ),
            (
                r#"{"messages":[{"payload":"","chain":[{"queue":"a"},{"queue":"b","payload_base64":"_"}]}]}"#,
                "invalid_argument messages[0].chain[1].payload_base64: expected standard base64",
            ),
            (
                r#"{"payload":"","on_failure":{"queue":"b","payload_base64":"_"}}"#,
                "invalid_argument on_failure.payload_base64: expected standard base64",
            ),
        ] {
            let fault = Reader::new(body.as_bytes())
                .and_then(|reader| Batch::read(reader, &Limits::default()))
                .unwrap_err();
            let told = format!("{} {}: {}", fault.code, fault.field, fault.reason);
            assert!(told.starts_with(expected), "{body}: {told}");
        }
    }
}
