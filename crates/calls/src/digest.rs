//! Digests of requests. That of a send: two requests with one idempotency key are the same request when their
//! digests agree.
//!
//! It is stored in the log and compared after restarts and by later versions, so it must never change. It is
//! taken over the decoded fields, not over their layout in a protocol. It tells honest mistakes apart, not
//! adversaries: those could only fool their own idempotency keys.

use ring::digest::{Context, SHA256};
use sluice_engine::command::{Deliver, QueueItem, SendItem};
use sluice_engine::item::{Chain, DependsOn, Expires, SendOptions, Steps};
use sluice_engine::limit::Cost;
use sluice_engine::settings::{Backoff, BackoffKind};

use crate::access::Caller;

/// Stands before tags, where no priority stands.
const TAGS: u64 = 1 << 32;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The digest of a send to `queue`.
pub fn send_digest(queue: &str, items: &[SendItem<'_>]) -> u64 {
    let mut digest = Digest(MULTIPLIER);
    digest.bytes(queue.as_bytes());
    digest.word(items.len() as u64);
    for item in items {
        digest.item(item);
    }
    digest.finish()
}

/// The digest of a group: its messages and their queues, the callback last.
pub fn group_digest<'a>(members: impl Iterator<Item = &'a QueueItem<'a>>) -> u64 {
    let mut digest = Digest(MULTIPLIER);
    for QueueItem { queue, item } in members {
        digest.bytes(queue.as_bytes());
        digest.item(item);
    }
    digest.finish()
}

/// The digest of bytes, never 0. Each of four digests takes every fourth word, since a multiplication has to
/// wait for the one before.
pub(crate) fn content_digest(bytes: &[u8]) -> u64 {
    let (fours, rest) = bytes.as_chunks::<32>();
    let mut lanes = [Digest(MULTIPLIER), Digest(0), Digest(0), Digest(0)];
    for four in fours {
        for (lane, word) in lanes.iter_mut().zip(four.as_chunks::<8>().0) {
            lane.word(u64::from_le_bytes(*word));
        }
    }
    let [mut digest, others @ ..] = lanes;
    others.iter().for_each(|lane| digest.word(lane.0));
    digest.word(bytes.len() as u64);
    digest.bytes(rest);
    digest.finish().max(1)
}

/// The digest of a request that has an id of its caller's choice: of what makes it this one. Nobody repeats
/// the request of another caller.
pub(crate) fn request_digest<'a>(caller: &'a Caller, fields: impl Iterator<Item = &'a [u8]>) -> [u64; 2] {
    let mut context = Context::new(&SHA256);
    for field in std::iter::once(caller.name().as_bytes()).chain(fields) {
        context.update(&(field.len() as u64).to_le_bytes());
        context.update(field);
    }
    let digest = context.finish();
    let word = |at: usize| digest.as_ref()[at..].first_chunk().map_or(1, |it| u64::from_le_bytes(*it));
    [word(0), word(8)]
}

/// The fields that make a request what it is, as bytes that tell them apart: name and value of each that is
/// given, in the order in which they are put.
#[derive(Default)]
pub(crate) struct Fields(Vec<u8>);

impl Fields {
    /// Puts a field of any bytes.
    pub(crate) fn octets(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), value] {
            self.0.extend_from_slice(&(part.len() as u64).to_le_bytes());
            self.0.extend_from_slice(part);
        }
    }

    /// Puts a text, if it is given.
    pub(crate) fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.octets(name, value.as_bytes());
        }
    }

    /// Puts a number, if it is given.
    pub(crate) fn number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.octets(name, &value.to_le_bytes());
        }
    }

    /// Puts a flag that is set.
    pub(crate) fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.octets(name, &[]);
        }
    }

    /// All of them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

struct Digest(u64);

impl Digest {
    fn item(&mut self, item: &SendItem<'_>) {
        self.bytes(item.payload);
        self.bytes(item.content_type.as_bytes());
        self.word(item.headers.len() as u64);
        for (name, value) in item.headers {
            self.bytes(name.as_bytes());
            self.bytes(value.as_bytes());
        }
        if !item.tags.is_empty() {
            self.word(TAGS + item.tags.len() as u64);
            item.tags.iter().for_each(|tag| self.bytes(tag.as_bytes()));
        }
        self.word(u64::from(item.priority) | u64::from(item.max_attempts) << 8);
        match item.deliver {
            Deliver::Now => self.word(0),
            Deliver::AfterMs(ms) => {
                self.word(1);
                self.word(ms);
            }
            Deliver::AtUs(us) => {
                self.word(2);
                self.word(us);
            }
        }
        match &item.backoff {
            None => self.word(0),
            Some(backoff) => self.backoff(backoff),
        }
        if let Some(options) = item.options {
            self.options(options);
        }
    }

    /// Fields that came later count only where they are given, so that older digests stay as they were.
    fn options(&mut self, options: &SendOptions<'_>) {
        let unique = options.unique.as_ref();
        for (tag, text) in [
            (1, options.ordering_key),
            (2, options.fair_key),
            (3, options.limit_key),
            (4, unique.map_or(&b""[..], |unique| unique.key)),
            (5, options.correlation_id),
            (6, options.reply_to.as_bytes()),
        ] {
            if !text.is_empty() {
                self.word(tag);
                self.bytes(text);
            }
        }
        if let Some(unique) = unique {
            self.word(unique.window_ms);
            self.word(unique.until as u64 | (unique.on_duplicate as u64) << 8);
        }
        let (kind, time) = match options.expires {
            Expires::Never => (0, 0),
            Expires::AfterMs(ms) => (1, ms),
            Expires::AtUs(us) => (2, us),
        };
        for (tag, number) in [(7, kind), (8, time), (9, options.result_ttl_ms), (10, u64::from(options.hold))]
        {
            if number > 0 {
                self.word(tag);
                self.word(number);
            }
        }
        if options.cost != Cost::default() {
            self.word(13);
            self.word(options.cost.0.into());
        }
        if let Some(depends_on) = &options.depends_on {
            self.depends_on(depends_on);
        }
        if let Chain::Given(steps) = options.chain {
            self.steps(steps);
        }
    }

    fn steps(&mut self, steps: &Steps<'_>) {
        self.word(12);
        self.word(steps.steps.len() as u64);
        for step in steps.on_failure.into_iter().chain(steps.steps) {
            self.bytes(step.queue.as_bytes());
            self.word(u64::from(step.own_payload));
            self.item(&step.item);
        }
    }

    fn depends_on(&mut self, depends_on: &DependsOn<'_>) {
        self.word(11);
        self.bytes(depends_on.ids.as_flattened());
        self.bytes(depends_on.places.as_flattened());
        self.word(depends_on.mode as u64 | (depends_on.on_parent_failed as u64) << 8);
    }

    fn backoff(&mut self, backoff: &Backoff) {
        let kind = match backoff.kind {
            BackoffKind::None => 1,
            BackoffKind::Fixed => 2,
            BackoffKind::Linear => 3,
            BackoffKind::Exponential => 4,
        };
        self.word(kind | u64::from(backoff.jitter_percent) << 8);
        self.word(backoff.base_ms);
        self.word(backoff.cap_ms);
    }

    /// Length first, so that neighbouring fields cannot trade bytes.
    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0u8; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    /// Folded multiplication: every bit of the word reaches every bit of the state.
    fn word(&mut self, word: u64) {
        let product = u128::from((self.0 ^ word).wrapping_add(MULTIPLIER)) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64) ^ (product >> 64) as u64 ^ self.0.rotate_left(23);
    }

    fn finish(mut self) -> u64 {
        self.word(0);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_engine::item::DependsMode;

    fn item<'a>(payload: &'a [u8], content_type: &'a str) -> SendItem<'a> {
        SendItem { payload, content_type, ..SendItem::default() }
    }

    #[test]
    fn the_digest_never_changes() {
        assert_eq!(send_digest("q", &[item(b"hello, world", "text/plain")]), PINNED);
        assert_eq!(content_digest(&[7; 100]), CONTENT_PINNED);
    }

    /// Stored in logs: a change of this number breaks the promise to callers who retry across an upgrade.
    const PINNED: u64 = 1_842_895_737_421_185_248;
    const CONTENT_PINNED: u64 = 1_156_687_806_370_523_785;

    #[test]
    fn each_byte_of_a_content_and_its_place_count() {
        let bytes: Vec<u8> = (0..70).collect();
        let mut digests: Vec<u64> = (0..=bytes.len()).map(|len| content_digest(&bytes[..len])).collect();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            digests.push(content_digest(&other));
            other[at] = 0;
            other.swap(at, (at + 8) % 70);
            digests.push(content_digest(&other));
        }
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    #[test]
    fn every_field_counts() {
        let plain = item(b"ab", "");
        let headers = [("a", "b")];
        let parent = DependsOn { ids: &[[1; 12]], ..DependsOn::default() };
        let optional = |options| send_digest("q", &[SendItem { options: Some(&options), ..plain.clone() }]);
        let variants = [
            send_digest("q", std::slice::from_ref(&plain)),
            send_digest("r", std::slice::from_ref(&plain)),
            send_digest("q", &[plain.clone(), plain.clone()]),
            send_digest("q", &[item(b"a", "b")]),
            send_digest("q", &[item(b"ab\0", "")]),
            send_digest("q", &[item(b"", "ab")]),
            send_digest("q", &[SendItem { headers: &headers, ..plain.clone() }]),
            send_digest("q", &[SendItem { priority: 1, ..plain.clone() }]),
            send_digest("q", &[SendItem { max_attempts: 1, ..plain.clone() }]),
            send_digest("q", &[SendItem { deliver: Deliver::AfterMs(5), ..plain.clone() }]),
            send_digest("q", &[SendItem { deliver: Deliver::AtUs(5), ..plain.clone() }]),
            send_digest("q", &[SendItem { backoff: Some(Backoff::default()), ..plain.clone() }]),
            optional(SendOptions { ordering_key: b"a", ..SendOptions::default() }),
            optional(SendOptions { fair_key: b"a", ..SendOptions::default() }),
            optional(SendOptions { limit_key: b"a", ..SendOptions::default() }),
            optional(SendOptions { cost: Cost(0), ..SendOptions::default() }),
            optional(SendOptions { cost: Cost(5), ..SendOptions::default() }),
            optional(SendOptions { expires: Expires::AfterMs(5), ..SendOptions::default() }),
            optional(SendOptions { expires: Expires::AtUs(5), ..SendOptions::default() }),
            optional(SendOptions { result_ttl_ms: 5, ..SendOptions::default() }),
            optional(SendOptions { hold: true, ..SendOptions::default() }),
            optional(SendOptions { depends_on: Some(parent), ..SendOptions::default() }),
            optional(SendOptions {
                depends_on: Some(DependsOn { mode: DependsMode::Any, ..parent }),
                ..SendOptions::default()
            }),
        ];
        for (at, digest) in variants.iter().enumerate() {
            assert!(!variants[..at].contains(digest), "variant {at} has the digest of an earlier one");
        }
    }
}
