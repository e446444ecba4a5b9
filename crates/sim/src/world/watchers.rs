//! Clients that watch events: each reads all events of its namespace or queue in order, or is told how many
//! it has missed, and why. They are slow, go away, and come back where they were.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sluice_engine::Error;
use sluice_node::shard::request::Request;
use sluice_node::shard::request::{Topic, Watch};
use sluice_node::{EventPosition, Gap, GapReason, Heard, Reader, Told};
use tokio::sync::oneshot;

use super::World;
use super::event_log::About;
use crate::model::Checked;
use crate::workload::QUEUES;

/// Upper limit of watchers at a time, and of remembered positions of those that have gone.
const WATCHERS_MAX: usize = 3;
const LEFT_MAX: usize = 8;

/// A client that watches, or is about to.
pub(super) struct Watcher {
    about: About,
    /// Position at which it had stopped before.
    after: Option<EventPosition>,
    asked: Option<oneshot::Receiver<Result<Reader, Error>>>,
    reader: Option<Reader>,
    /// Position after the last event that it got.
    at: Option<EventPosition>,
    /// True until it gets something.
    new: bool,
}

/// The watchers of one shard.
#[derive(Default)]
pub(super) struct Watchers {
    here: Vec<Watcher>,
    /// Positions at which watchers have gone.
    left: Vec<(About, EventPosition)>,
}

impl Watchers {
    /// Drops all watchers after the end of the server.
    pub(super) fn cut_off(&mut self) {
        for watcher in self.here.drain(..) {
            self.left.extend(watcher.at.or(watcher.after).map(|at| (watcher.about, at)));
        }
        let surplus = self.left.len().saturating_sub(LEFT_MAX);
        self.left.drain(..surplus);
    }
}

impl World {
    /// Begins to watch, comes back, or goes away.
    pub(super) fn watch(&mut self) {
        let here = self.lanes[self.at].clients.watchers.here.len();
        if here > 0 && (here >= WATCHERS_MAX || self.rng.chance(1, 3)) {
            let at = self.rng.index(here);
            let watchers = &mut self.lanes[self.at].clients.watchers;
            let gone = watchers.here.swap_remove(at);
            watchers.left.extend(gone.at.or(gone.after).map(|at| (gone.about.clone(), at)));
            return;
        }
        let (about, after) = self.a_place();
        let lane = &mut self.lanes[self.at];
        let Some(server) = &lane.server else { return };
        let (reply, asked) = oneshot::channel();
        let topic = Topic { namespace: about.namespace, queue: about.queue.clone() };
        if server.mailbox.push(Request::Watch(Box::new(Watch { topic, after, reply }))).is_ok() {
            let watcher = Watcher { about, after, asked: Some(asked), reader: None, at: None, new: true };
            lane.clients.watchers.here.push(watcher);
        }
    }

    /// A subject to watch, and the position to begin at.
    fn a_place(&mut self) -> (About, Option<EventPosition>) {
        let left = &self.lanes[self.at].clients.watchers.left;
        if !left.is_empty() && self.rng.chance(1, 2) {
            let (about, at) = self.rng.pick(left).clone();
            return (about, Some(at));
        }
        let namespaces = self.lanes[self.at].history.seen().namespaces(self.at as u32);
        let namespace =
            namespaces.first().map_or(sluice_engine::NamespaceId::DEFAULT, |_| *self.rng.pick(&namespaces));
        let queue = self.rng.chance(1, 2).then(|| Box::from(*self.rng.pick(&QUEUES)));
        (About { namespace, queue }, None)
    }

    /// Lets some watchers read what has arrived.
    pub(super) fn watchers_look(&mut self) -> Checked {
        let watchers = std::mem::take(&mut self.lanes[self.at].clients.watchers.here);
        for mut watcher in watchers {
            let slow = self.rng.chance(9, 10);
            if slow || self.reads_events(&mut watcher)? {
                self.lanes[self.at].clients.watchers.here.push(watcher);
            }
        }
        Ok(())
    }

    /// Reads what has arrived. Returns false at the end of the feed.
    fn reads_events(&mut self, watcher: &mut Watcher) -> Result<bool, String> {
        if let Some(asked) = &mut watcher.asked {
            match asked.try_recv() {
                Ok(Ok(reader)) => watcher.enters(reader),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => return Ok(false),
                Err(oneshot::error::TryRecvError::Empty) => return Ok(true),
            }
        }
        let most = self.rng.between(1, 20) as usize;
        let Some(reader) = &mut watcher.reader else { return Ok(false) };
        match now(reader.next(most)) {
            None => self.missed_nothing(watcher).map(|()| true),
            Some(Heard::Events(events)) => {
                self.stats.heard += events.len() as u64;
                for (at, told) in events {
                    self.hears(watcher, at, &told)?;
                }
                Ok(true)
            }
            Some(Heard::Gap(gap)) => {
                self.stats.gaps += 1;
                self.hears_gap(watcher, gap).map(|()| true)
            }
            Some(Heard::Ended) => Ok(false),
        }
    }

    /// Checks that an event is the next one in the log for this watcher.
    fn hears(&self, watcher: &mut Watcher, at: EventPosition, told: &Told) -> Checked {
        let Some(before) = watcher.at else { return Ok(()) };
        let log = self.lanes[self.at].history.told();
        let mut next = log.between(place(before), place(at), &watcher.about);
        let same = next.next().is_some_and(|event| {
            (event.kind, event.id, event.attempt) == (told.kind, told.id, told.attempt)
                && (event.queue == told.queue || event.queue.is_empty())
        });
        let counted = (at.run, at.count) == (before.run, before.count + 1);
        if !same || next.next().is_some() || !counted {
            return Err(format!("a feed tells {told:?} at {at} behind {before}; the log has something else"));
        }
        (watcher.at, watcher.new) = (Some(at), false);
        Ok(())
    }

    /// Checks that a gap has the right number of missed events, and a reason.
    fn hears_gap(&self, watcher: &mut Watcher, gap: Gap) -> Checked {
        let before = watcher.at;
        let Some(now) = watcher.reader.as_ref().map(Reader::position) else { return Ok(()) };
        let log = self.lanes[self.at].history.told();
        let of_this_run = before.filter(|before| before.run == now.run);
        let missed =
            of_this_run.map(|before| log.between(place(before), place(now), &watcher.about).count() as u64);
        let small = self.config.events.window < super::config::WINDOW_ROOMY;
        let may = match gap.why {
            GapReason::Slow => small,
            GapReason::Window => small && watcher.new && watcher.after.is_some(),
            GapReason::Unwatched | GapReason::Restarted => watcher.new && watcher.after.is_some(),
        };
        let right = gap.lost.is_none_or(|lost| Some(lost) == missed);
        if !may || !right {
            return Err(format!("{gap:?} is told between {before:?} and {now}: {missed:?} were missed"));
        }
        (watcher.at, watcher.new) = (Some(now), false);
        Ok(())
    }

    /// Checks that no event of a watcher's subject is left unread.
    fn missed_nothing(&self, watcher: &Watcher) -> Checked {
        let lane = &self.lanes[self.at];
        let (Some(server), Some(at)) = (&lane.server, watcher.at) else { return Ok(()) };
        // A shard that has failed reports nothing more.
        if server.shard.failure().is_some() {
            return Ok(());
        }
        let end = (server.shard.engine().applied_index(), u32::MAX);
        let missed = lane.history.told().between(place(at), end, &watcher.about).next();
        missed.map_or(Ok(()), |missed| {
            Err(format!("{missed:?} is in the log, and not in the feed behind {at}"))
        })
    }
}

impl Watcher {
    fn enters(&mut self, reader: Reader) {
        self.asked = None;
        self.at = Some(reader.position());
        self.reader = Some(reader);
    }
}

/// The output of a future that is ready; `None`: it is not.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => Some(ready),
        Poll::Pending => None,
    }
}

fn place(at: EventPosition) -> super::event_log::EventPlace {
    (at.index, at.number)
}
