//! A line of a script: its words, and what they say.

use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::id::EPOCH_SHIFT;
use sluice_engine::item::{Expires, OnDuplicate, SendOptions, Step, Unique, UniqueUntil};
use sluice_engine::limit::{Cost, LimitRules, Rate};
use sluice_engine::push::{PushHeaders, PushSecrets, PushUrl};
use sluice_engine::search::{SearchKind, SearchKinds};
use sluice_engine::settings::{
    Backoff, BackoffKind, FairWeights, OnExpire, OrderingRetry, Overflow, Placement, QueuePatch, Quotas,
};

use super::START_US;

/// One command: a verb, words and options.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) verb: &'a str,
    pub(super) words: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Line<'a> {
        let mut words = text.split_whitespace();
        let verb = words.next().expect("a verb");
        let (options, words): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let options = options.into_iter().filter_map(|option| option.split_once('=')).collect();
        Line { verb, words, options }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.get(key).map(|value| value.parse().unwrap_or_else(|_| panic!("{key}={value} is no number")))
    }

    /// Only the options that begin with `prefix`, without it.
    pub(super) fn under(&self, prefix: &str) -> Line<'a> {
        let options =
            self.options.iter().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, *value)));
        Line { verb: self.verb, words: Vec::new(), options: options.collect() }
    }

    /// The options, as pairs.
    pub(super) fn pairs(&self) -> Vec<(&'a str, &'a str)> {
        self.options.clone()
    }

    /// The same line, in which the options that begin with `prefix` stand before others of their name.
    pub(super) fn preferring(&self, prefix: &str) -> Line<'a> {
        let mut preferring = self.under(prefix);
        preferring.options.extend(&self.options);
        preferring
    }

    /// Key and content of a document that is put: `bytes:N` are so many.
    pub(super) fn document(&self) -> (String, Vec<u8>) {
        let ["put", key, content @ ..] = self.words.as_slice() else { return Default::default() };
        let content = content.join(" ");
        let content = content.strip_prefix("bytes:").map_or_else(
            || content.clone().into_bytes(),
            |count| vec![b'x'; count.parse().expect("a number of bytes")],
        );
        (key.replace('_', " "), content)
    }

    pub(super) fn quotas(&self) -> Quotas {
        let number = |key| self.number(key).unwrap_or(0);
        Quotas { queues: number("queues"), messages: number("messages"), bytes: number("bytes") }
    }
}

pub(super) fn epoch_and_count(text: &str) -> u64 {
    let (epoch, count) = text.split_once('.').unwrap_or_else(|| panic!("{text} is not EPOCH.COUNT"));
    epoch.parse::<u64>().unwrap() << EPOCH_SHIFT | count.parse::<u64>().unwrap()
}

/// `KIND:BASE:CAP:JITTER`
pub(super) fn backoff(text: &str) -> Backoff {
    let parts: Vec<&str> = text.split(':').collect();
    let kind = match parts[0] {
        "none" => BackoffKind::None,
        "fixed" => BackoffKind::Fixed,
        "linear" => BackoffKind::Linear,
        _ => BackoffKind::Exponential,
    };
    let number = |at: usize| parts.get(at).map_or(0, |part| part.parse().unwrap());
    Backoff { kind, base_ms: number(1), cap_ms: number(2), jitter_percent: number(3) as u8 }
}

/// A list of words, separated by commas.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split(',').filter(|word| !word.is_empty()).collect()
}

pub(super) fn deliver(line: &Line<'_>) -> Option<Deliver> {
    match (line.number("delay_ms"), line.get("at_ms")) {
        (Some(delay_ms), _) => Some(Deliver::AfterMs(delay_ms)),
        (_, Some(at_ms)) => {
            Some(Deliver::AtUs(START_US.saturating_add_signed(at_ms.parse::<i64>().unwrap() * 1_000)))
        }
        _ => None,
    }
}

pub(super) fn options<'a>(line: &Line<'a>, unique: &'a str) -> SendOptions<'a> {
    let key = |name: &str| line.get(name).unwrap_or("").as_bytes();
    let unique = (unique != "-").then(|| Unique {
        key: unique.as_bytes(),
        window_ms: line.number("window_ms").unwrap_or(60_000),
        until: match line.get("until") {
            Some("window") => UniqueUntil::Window,
            _ => UniqueUntil::Gone,
        },
        on_duplicate: match line.get("on_duplicate") {
            Some("replace_payload") => OnDuplicate::ReplacePayload,
            Some("debounce") => OnDuplicate::Debounce,
            _ => OnDuplicate::Keep,
        },
    });
    SendOptions {
        ordering_key: key("ordering_key"),
        fair_key: key("fair_key"),
        result_ttl_ms: line.number("result_ttl_ms").unwrap_or(0),
        correlation_id: key("correlation_id"),
        unique,
        expires: match (line.number("ttl_ms"), line.get("expires_at_ms")) {
            (Some(ttl_ms), _) => Expires::AfterMs(ttl_ms),
            (_, Some(at_ms)) => {
                Expires::AtUs(START_US.saturating_add_signed(at_ms.parse::<i64>().unwrap() * 1_000))
            }
            _ => Expires::Never,
        },
        reply_to: line.get("reply_to").unwrap_or(""),
        limit_key: key("limit_key"),
        cost: cost(line).unwrap_or_default(),
        hold: line.get("hold") == Some("true"),
        ..SendOptions::default()
    }
}

/// `cost=COST`
pub(super) fn cost(line: &Line<'_>) -> Option<Cost> {
    line.number("cost").map(|cost| Cost(cost as u32))
}

/// `chain=QUEUE,QUEUE:PAYLOAD` and `on_failure=QUEUE`: steps without and with a payload of their own, all
/// with the same options; with `step_headers=yes` each has a header.
pub(super) fn chain<'a>(line: &Line<'a>, options: &'a SendOptions<'a>) -> (Vec<Step<'a>>, Option<Step<'a>>) {
    let deliver = deliver(&line.under("step_")).unwrap_or_default();
    let header: &[(&str, &str)] = if line.get("step_headers").is_some() { &[("step", "1")] } else { &[] };
    let step = |text: &'a str| {
        let (queue, payload) = text.split_once(':').map_or((text, None), |(queue, own)| (queue, Some(own)));
        let item = SendItem {
            payload: payload.unwrap_or("").as_bytes(),
            headers: header,
            deliver,
            options: options.given(),
            ..SendItem::default()
        };
        Step { queue, own_payload: payload.is_some(), item }
    };
    let steps = line.get("chain").map(words).unwrap_or_default();
    (steps.into_iter().map(step).collect(), line.get("on_failure").map(step))
}

pub(super) fn patch(line: &Line<'_>) -> QueuePatch {
    QueuePatch {
        lease_ms: line.number("lease_ms"),
        max_attempts: line.number("max_attempts").map(|value| value as u16),
        max_deliveries: line.number("max_deliveries").map(|value| value as u16),
        backoff: line.get("backoff").map(backoff),
        fair_weights: line.get("fair_weights").map(fair_weights),
        max_messages: line.number("max_messages"),
        max_bytes: line.number("max_bytes"),
        overflow: line.get("overflow").map(|value| match value {
            "refuse_new" => Overflow::RefuseNew,
            "dead_letter_oldest" => Overflow::DeadLetterOldest,
            other => panic!("{other:?} is no overflow"),
        }),
        max_age_ms: line.number("max_age_ms"),
        on_expire: line.get("on_expire").map(|value| match value {
            "drop" => OnExpire::Drop,
            _ => OnExpire::DeadLetter,
        }),
        ordering_retry: line.get("ordering_retry").map(|value| match value {
            "step_aside" => OrderingRetry::StepAside,
            _ => OrderingRetry::Block,
        }),
        placement: line.get("placement").map(|value| match value {
            "least_loaded" => Placement::LeastLoaded,
            "sticky" => Placement::Sticky,
            _ => Placement::Fair,
        }),
        limit: line.get("limit").map(Into::into),
        retain_done_ms: line.number("retain_done_ms"),
        retain_done_count: line.number("retain_done_count").map(|value| value as u32),
        paused: line.get("paused").map(|value| value == "true"),
        dead_letter_queue: line.get("dead_letter_queue").map(Into::into),
        closed: line.get("closed").map(|value| value == "true"),
        description: line.get("description").map(Into::into),
        push_url: line.get("push_url").map(|url| PushUrl(url.into())),
        push_secrets: line.get("push_secrets").map(|list| {
            PushSecrets(words(list).into_iter().map(|secret| secret.as_bytes().into()).collect())
        }),
        push_timeout_ms: line.number("push_timeout_ms").map(|value| value as u32),
        push_concurrency: line.number("push_concurrency").map(|value| value as u16),
        push_rate: line.number("push_rate").map(|value| value as u32),
        push_headers: line.get("push_headers").map(push_headers),
        push_paused: line.get("push_paused").map(|value| value == "true"),
        search_index: line.get("search_index").map(search_kinds),
    }
}

fn search_kinds(list: &str) -> SearchKinds {
    let kind =
        |name: &str| SearchKind::ALL.into_iter().find(|kind| kind.name() == name).expect("a kind of terms");
    SearchKinds::of(words(list).into_iter().map(kind))
}

fn push_headers(list: &str) -> PushHeaders {
    let header = |pair: &str| pair.split_once(':').map(|(name, value)| (name.into(), value.into()));
    PushHeaders::new(words(list).into_iter().filter_map(header).collect())
}

/// What a limit allows; a rate is `COUNT:PERIOD_MS:BURST`.
pub(super) fn rules(line: &Line<'_>) -> LimitRules {
    let count = |name: &str| line.number(name).map(|count| count as u32);
    let rate = |name: &str| {
        let numbers: Vec<u64> = line.get(name)?.split(':').map(|number| number.parse().unwrap()).collect();
        Some(Rate { count: numbers[0] as u32, period_ms: numbers[1], burst: numbers[2] as u32 })
    };
    LimitRules {
        in_flight: count("in_flight"),
        in_flight_per_key: count("in_flight_per_key"),
        rate: rate("rate"),
        rate_per_key: rate("rate_per_key"),
    }
}

/// `KEY:WEIGHT,KEY:WEIGHT`
fn fair_weights(text: &str) -> FairWeights {
    let weights = text.split(',').filter_map(|pair| pair.split_once(':'));
    FairWeights::new(weights.map(|(key, weight)| (key.as_bytes().into(), weight.parse().unwrap())).collect())
}
