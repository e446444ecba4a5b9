//! Events of random commands: they add up to the counters, and follow from the log alone.

use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::query::Counters;
use sluice_engine::{Engine, Outcome};

use super::Run;

/// How many messages events of one kind were about.
fn count(events: &[Vec<Event>], kind: EventKind) -> u64 {
    let of_kind = events.iter().flatten().filter(|event| event.kind == kind);
    of_kind
        .map(|event| match &event.detail {
            EventDetail::Many { messages, .. } => *messages,
            _ => 1,
        })
        .sum()
}

impl Run {
    pub(super) fn check_events(&self) {
        let Counters { sent, delivered, acked, nacked, released, rejected, .. } = self.driver.engine.totals();
        let Counters { expired, died, redriven, dropped, cancelled, moved_in, .. } =
            self.driver.engine.totals();
        let counted = [
            (EventKind::Sent, sent),
            (EventKind::Delivered, delivered),
            (EventKind::Acked, acked),
            (EventKind::Nacked, nacked),
            (EventKind::Released, released),
            (EventKind::Rejected, rejected),
            (EventKind::Expired, expired),
            (EventKind::Died, died),
            (EventKind::Redriven, redriven),
            (EventKind::Dropped, dropped),
            (EventKind::Cancelled, cancelled),
            (EventKind::Moved, moved_in),
        ];
        for (kind, counter) in counted {
            assert_eq!(count(&self.events, kind), counter, "{}", kind.name());
        }
    }

    /// The same events come of the same log, and none where nobody watches; the state is the same either way.
    pub(super) fn replay_events(&self) {
        let mut replayed = Engine::new();
        replayed.watch_events(true);
        let mut unwatched = Engine::new();
        let mut out = Outcome::default();
        assert_eq!(self.driver.log.len(), self.events.len());
        for (record, events) in self.driver.log.iter().zip(&self.events) {
            unwatched.apply(record.now_us, record.index, &record.body, &mut out);
            assert_eq!(out.events, []);
            replayed.apply(record.now_us, record.index, &record.body, &mut out);
            assert_eq!(&out.events, events, "record {}", record.index);
        }
        for engine in [replayed, unwatched] {
            assert_eq!(engine.digest(), self.driver.engine.digest());
        }
    }
}

#[test]
fn events_add_up_to_the_counters_and_follow_from_the_log() {
    for seed in 200..=212 {
        let mut run = Run::new(seed);
        for step in 0..1_000 {
            run.step();
            if step % 32 == 0 {
                run.check_events();
            }
        }
        run.settle_down();
        run.check_events();
        run.replay_events();
    }
}
