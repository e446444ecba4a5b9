//! Sends and groups of random messages, with options of every kind.

use sluice_engine::Command;
use sluice_engine::command::{Deliver, Group, QueueItem, Send, SendItem};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::{
    DependsMode, DependsOn, Expires, OnDuplicate, OnParentFailed, SendOptions, Unique, UniqueUntil,
};
use sluice_engine::outcome::Reply;
use sluice_engine::settings::{Backoff, BackoffKind};

use super::{COSTS, Run};

/// What is odd of the times of a batch.
#[derive(Clone, Copy, PartialEq)]
enum OddTimes {
    None,
    /// Some end before they are sent.
    Over,
    /// Some are delayed for longer than others live.
    Late,
}

impl Run {
    pub(super) fn send(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let count = 1 + self.numbers.below(8);
        let payload = vec![7; self.numbers.below(40) as usize];
        let keyed = self.numbers.one_in(2);
        let parents = self.parents(namespace);
        let mut options: Vec<SendOptions<'_>> = (0..4).map(|_| self.options()).collect();
        let odd = if keyed { self.odd_times(&mut options) } else { OddTimes::None };
        let step_options = self.step_options();
        let steps = self.steps(&step_options);
        let chain = self.chain(&steps);
        self.put_chain(&chain, &mut options);
        for options in options.iter_mut().skip(2) {
            options.depends_on = self.depends_on(&parents);
        }
        let of_first = |depends_on| DependsOn { places: &[[0; 4]], ..depends_on };
        let back = SendOptions { depends_on: self.depends_on(&parents).map(of_first), ..options[0] };
        let items: Vec<SendItem<'_>> = (0..count)
            .map(|at| SendItem {
                payload: &payload,
                tags: if self.numbers.one_in(6) { &["red"] } else { &[] },
                headers: if self.numbers.one_in(4) { &[("trace", "1")] } else { &[] },
                priority: if self.numbers.one_in(2) { self.numbers.below(10) as u8 } else { 0 },
                deliver: match (odd, self.numbers.below(6)) {
                    (OddTimes::Over, _) => Deliver::Now,
                    (OddTimes::Late, _) => Deliver::AfterMs(self.numbers.below(300_000)),
                    (_, 0) => Deliver::AfterMs(self.numbers.below(100_000)),
                    (_, 1) => Deliver::AtUs(self.now_us.saturating_sub(50) + self.numbers.below(100)),
                    _ => Deliver::Now,
                },
                max_attempts: self.numbers.below(4) as u16,
                backoff: self.numbers.one_in(8).then(|| self.backoff()),
                options: match (keyed, self.numbers.below(6) as usize) {
                    (true, 5) if at > 0 => Some(&back),
                    (true, any) => options.get(any),
                    (false, _) => None,
                },
                ..SendItem::default()
            })
            .collect();
        let key = [self.numbers.below(20) as u8];
        let keyed = self.numbers.one_in(4);
        let command = Command::Send(Send {
            namespace,
            queue: self.queue(),
            idempotency_key: if keyed { &key } else { &[] },
            request_digest: self.numbers.below(2),
            items: &items,
        });
        self.apply(&command);
        self.know_sent();
    }

    /// The ids that the latest send gave are new, but for those of duplicates.
    pub(super) fn know_sent(&mut self) {
        if let Reply::Sent { first, count, duplicate: false } = self.driver.out.reply {
            let out = &self.driver.out;
            let listed = (0..count).zip(&out.ids).filter(|(item, _)| !out.duplicates.contains(item));
            let mut fresh: Vec<MessageId> = listed.map(|(_, id)| *id).collect();
            if out.ids.is_empty() {
                let id = |n| MessageId { sequence: first.sequence + n, ..first };
                fresh = (0..u64::from(count)).map(id).collect();
            } else {
                assert_eq!((out.ids.len(), out.ids[0]), (count as usize, first));
                assert!(!out.duplicates.is_empty());
                let known = |item: &u32| self.ids.contains(&out.ids[*item as usize]);
                let in_batch = |item: &u32| fresh.contains(&out.ids[*item as usize]);
                assert!(out.duplicates.iter().all(|item| known(item) || in_batch(item)));
            }
            for id in fresh {
                assert!(self.ids.insert(id), "an id was given twice");
            }
        }
    }

    pub(super) fn group(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let parents = self.parents(namespace);
        let step_options = self.step_options();
        let steps = self.steps(&step_options);
        let chain = self.chain(&steps);
        let mut options: Vec<SendOptions<'_>> = (0..3)
            .map(|at| SendOptions {
                unique: None,
                depends_on: if at > 0 { self.depends_on(&parents) } else { None },
                ..self.options()
            })
            .collect();
        if self.numbers.one_in(4) {
            options[1].expires = self.over();
        }
        self.put_chain(&chain, &mut options);
        let members: Vec<QueueItem<'_>> = (0..self.numbers.below(6))
            .map(|_| QueueItem {
                queue: self.queue(),
                item: SendItem {
                    payload: b"member",
                    options: options.get(self.numbers.below(5) as usize),
                    ..SendItem::default()
                },
            })
            .collect();
        let item = SendItem { payload: b"callback", options: options.first(), ..SendItem::default() };
        let callback = QueueItem { queue: self.queue(), item };
        let key = [self.numbers.below(20) as u8];
        let idempotency_key: &[u8] = if self.numbers.one_in(4) { &key } else { &[] };
        let group =
            Group { namespace, idempotency_key, request_digest: 0, members: &members, callback: &callback };
        self.apply(&Command::Group(group));
        if let Reply::Sent { first, count, duplicate: false } = self.driver.out.reply {
            for n in 0..u64::from(count) {
                let id = MessageId { sequence: first.sequence + n, ..first };
                assert!(self.ids.insert(id), "an id was given twice");
            }
            self.groups.enter(first, count);
        }
    }

    /// Some messages that are still here, and now and then one that is not.
    fn parents(&mut self, namespace: NamespaceId) -> Vec<[u8; 12]> {
        let ids: Vec<MessageId> =
            self.ids.iter().rev().filter(|id| id.namespace == namespace).copied().collect();
        if self.deliveries.in_order {
            return Vec::new();
        }
        let gone = self.numbers.one_in(10);
        let here = ids.into_iter().filter(|id| gone || self.driver.engine.message(*id).is_ok());
        let here: Vec<MessageId> = here.take(40).collect();
        let count = self.numbers.below(4).min(here.len() as u64);
        (0..count).map(|_| DependsOn::id_bytes(self.numbers.pick(&here))).collect()
    }

    fn depends_on<'a>(&mut self, ids: &'a [[u8; 12]]) -> Option<DependsOn<'a>> {
        if ids.is_empty() || self.numbers.one_in(2) {
            return None;
        }
        let mode = self.numbers.pick(&[DependsMode::All, DependsMode::Any]);
        let actions = [OnParentFailed::Cancel, OnParentFailed::Hold, OnParentFailed::Run];
        Some(DependsOn { ids, places: &[], mode, on_parent_failed: self.numbers.pick(&actions) })
    }

    pub(super) fn options(&mut self) -> SendOptions<'static> {
        let keys: [&[u8]; 5] = [b"", b"", b"k0", b"k1", b"k2, which does not lie in its place"];
        let keys = if self.tight { &keys[1..3] } else { &keys[..] };
        let ttl = self.numbers.one_in(4);
        SendOptions {
            ordering_key: self.numbers.pick(keys),
            fair_key: self.numbers.pick(keys),
            limit_key: self.numbers.pick(keys),
            cost: self.numbers.pick(&COSTS),
            unique: self.unique(),
            expires: match self.numbers.below(12) {
                0 => Expires::AfterMs(100_000 + self.numbers.below(100_000)),
                1 => Expires::AtUs(self.now_us + 200 + self.numbers.below(90_000_000)),
                _ => Expires::Never,
            },
            result_ttl_ms: if ttl { 1 + self.numbers.below(90_000) } else { 0 },
            correlation_id: self.numbers.pick::<&[u8]>(&[b"", b"c0"]),
            reply_to: self.numbers.pick(&["", "", "", "a", "replies"]),
            hold: self.numbers.one_in(10) && !self.deliveries.in_order,
            ..SendOptions::default()
        }
    }

    /// Of some batches, messages that are over on arrival, or duplicates that put off the first one for long.
    fn odd_times(&mut self, options: &mut [SendOptions<'_>]) -> OddTimes {
        match self.numbers.below(6) {
            0 => {
                let over = 1 + self.numbers.below(options.len() as u64) as usize;
                options[..over].iter_mut().for_each(|options| options.expires = self.over());
                OddTimes::Over
            }
            1 => {
                for options in options {
                    options.expires = Expires::Never;
                    options.unique =
                        self.unique().map(|unique| Unique { on_duplicate: OnDuplicate::Debounce, ..unique });
                }
                OddTimes::Late
            }
            _ => OddTimes::None,
        }
    }

    /// An end that has come already.
    pub(super) fn over(&mut self) -> Expires {
        Expires::AtUs(self.now_us - self.numbers.below(2_000_000))
    }

    fn unique(&mut self) -> Option<Unique<'static>> {
        let keys: [&[u8]; 4] = [b"u0", b"u1", b"u2", b"u3, which does not lie in its place"];
        self.numbers.one_in(4).then(|| Unique {
            key: self.numbers.pick(&keys),
            window_ms: 1 + self.numbers.below(100_000),
            until: self.numbers.pick(&[UniqueUntil::Gone, UniqueUntil::Window]),
            on_duplicate: self.numbers.pick(&[
                OnDuplicate::Keep,
                OnDuplicate::ReplacePayload,
                OnDuplicate::Debounce,
            ]),
        })
    }

    pub(super) fn backoff(&mut self) -> Backoff {
        let kind = self.numbers.pick(&[
            BackoffKind::None,
            BackoffKind::Fixed,
            BackoffKind::Linear,
            BackoffKind::Exponential,
        ]);
        Backoff { kind, base_ms: self.numbers.below(3_000), cap_ms: 60_000, jitter_percent: 20 }
    }
}
