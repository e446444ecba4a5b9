//! Optional fields of messages, as flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use sluice_client::{MessageOptions, Step, Unique};
use sluice_engine::limit::COST_MAX;

use super::super::{CliError, Result, duration, number};
use super::{objects, strict};

/// Keys, expiry, and the handling of the result.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Keys and times")]
pub(super) struct OptionFlags {
    /// Tag to find the message by; repeat the flag for several tags.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Deliver messages with this key in order, at most one of them in flight.
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// Serve messages of different keys in turn.
    #[arg(long, value_name = "KEY")]
    fair_key: Option<String>,
    /// Count the message against this key of the queue's limit.
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// Cost of each delivery: it counts instead of 1 in the rates of the queue's limit [default: 1].
    #[arg(long, value_name = "COST", value_parser = number(0u32..=COST_MAX))]
    cost: Option<u32>,
    /// Allow at most one message with this key: a duplicate gets the id of the first one.
    #[arg(long, value_name = "KEY")]
    unique: Option<String>,
    /// Longest time for which the unique key counts [default: one day].
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "unique")]
    unique_window: Option<Duration>,
    /// When the unique key becomes free: when the message leaves the queue, or only at the end of the window.
    #[arg(long, value_parser = PossibleValuesParser::new(["gone", "window"]), requires = "unique")]
    unique_until: Option<String>,
    /// Effect of a duplicate on the first message while that one waits.
    #[arg(long, value_parser = PossibleValuesParser::new(["keep", "replace_payload", "debounce"]), requires = "unique")]
    on_duplicate: Option<String>,
    /// Let the message expire after this time if it still waits.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "expires_at_ms")]
    ttl: Option<Duration>,
    /// Let the message expire at this time, in milliseconds since the Unix epoch, if it still waits.
    #[arg(long, value_name = "MS", value_parser = number(0u64..))]
    expires_at_ms: Option<u64>,
    /// Keep the result of the ack for this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    keep_result: Option<Duration>,
    /// Id that is passed on to the reply.
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Queue that receives the result as a message.
    #[arg(long, value_name = "QUEUE")]
    reply_to: Option<String>,
    /// Hold the message until somebody approves it.
    #[arg(long)]
    hold: bool,
    /// Wait until the message with this id is done; repeat the flag for several messages.
    #[arg(long, value_name = "ID")]
    depends_on: Vec<String>,
    /// Condition on the messages of --depends-on: all of them, or any one.
    #[arg(long, value_parser = PossibleValuesParser::new(["all", "any"]), requires = "depends_on")]
    depends_mode: Option<String>,
    /// Treatment of the message when those of --depends-on fail.
    #[arg(long, value_parser = PossibleValuesParser::new(["cancel", "hold", "run"]), requires = "depends_on")]
    on_parent_failed: Option<String>,
    /// Queue that gets the result as a message when this one is done; repeat the flag for further steps.
    #[arg(long, value_name = "QUEUE", conflicts_with = "chain")]
    then: Vec<String>,
    /// File with a JSON list of steps, with all fields as in the HTTP API; `-`: stdin.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// Queue that gets the message when it, or a step of its chain, fails.
    #[arg(long, value_name = "QUEUE")]
    on_failure: Option<String>,
    /// The steps, once they have been read.
    #[arg(skip)]
    steps: Vec<Step<'static>>,
}

impl OptionFlags {
    /// Reads the steps that the flags name.
    pub(super) fn read_chain(&mut self) -> Result<()> {
        self.steps = self.then.iter().cloned().map(Step::to).collect();
        let Some(file) = &self.chain else { return Ok(()) };
        let (text, name) = objects::read_all(file)?;
        let wrong = |why: String| CliError::usage(format!("{name}: {why}"));
        let value = strict::value(&text).map_err(|e| wrong(format!("not a list of steps: {e}")))?;
        let Value::Array(values) = value else {
            return Err(wrong("not a list of steps: expected a JSON list of objects".to_owned()));
        };
        self.steps = objects::steps(values).map_err(wrong)?;
        Ok(())
    }

    /// The options for the client library; `None` if no flag was given.
    pub(super) fn options(&self) -> Option<Box<MessageOptions<'static>>> {
        let own = |text: &Option<String>| text.clone().map(Into::into);
        let millis =
            |time: Option<Duration>| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let options = MessageOptions {
            tags: self.tag.iter().cloned().map(Into::into).collect(),
            ordering_key: own(&self.ordering_key),
            fair_key: own(&self.fair_key),
            limit_key: own(&self.limit_key),
            cost: self.cost,
            unique: self.unique.clone().map(|key| Unique {
                key: key.into(),
                window_ms: millis(self.unique_window),
                until: own(&self.unique_until),
                on_duplicate: own(&self.on_duplicate),
            }),
            ttl_ms: millis(self.ttl),
            expires_at_ms: self.expires_at_ms,
            result_ttl_ms: millis(self.keep_result),
            correlation_id: own(&self.correlation_id),
            reply_to: own(&self.reply_to),
            hold: self.hold,
            depends_on: self.depends_on.iter().cloned().map(Into::into).collect(),
            depends_mode: own(&self.depends_mode),
            on_parent_failed: own(&self.on_parent_failed),
            chain: self.steps.clone(),
            on_failure: self.on_failure.clone().map(Step::to),
        };
        (options != MessageOptions::default()).then(|| Box::new(options))
    }
}
