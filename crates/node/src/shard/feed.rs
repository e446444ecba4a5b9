//! A feed: the latest events of a namespace or a queue, in memory, for any number of readers.
//!
//! The shard puts in, once a step; each reader has a position and no buffer. So a slow reader costs nothing:
//! the feed drops its oldest events whether they were read or not, and a reader that has missed some is told
//! how many.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_engine::event::EventKind;
use sluice_engine::id::{ConsumerId, MessageId};
use tokio::sync::Notify;

/// Position in a feed, between two events. Written as the id of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventPosition {
    /// Identity of the shard's start; no two starts have the same.
    pub run: u64,
    /// Index of the record.
    pub index: u64,
    /// Number of events of that record before the position, those of other feeds included.
    pub number: u32,
    /// Number of events of the feed before the position.
    pub count: u64,
}

impl EventPosition {
    fn place(self) -> EventPlace {
        (self.index, self.number)
    }
}

/// The text form of an event's id.
impl fmt::Display for EventPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.run, self.index, self.number, self.count)
    }
}

/// Error: the text is no id of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAPosition;

impl FromStr for EventPosition {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<EventPosition, NotAPosition> {
        fn number<T: FromStr>(part: Option<&str>) -> Result<T, NotAPosition> {
            let digits = part.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|part| part.parse().ok()).ok_or(NotAPosition)
        }
        let mut parts = text.split('-');
        let (run, index) = (number(parts.next())?, number(parts.next())?);
        let (number, count) = (number(parts.next())?, number(parts.next())?);
        if parts.next().is_some() {
            Err(NotAPosition)
        } else {
            Ok(EventPosition { run, index, number, count })
        }
    }
}

/// Index of a record, and number of an event within it.
pub(super) type EventPlace = (u64, u32);

/// An event with the names it needs.
#[derive(Clone, Debug)]
pub struct Told {
    /// Position after the event.
    pub(super) place: EventPlace,
    /// Kind of event.
    pub kind: EventKind,
    /// Time of its record, in microseconds since the Unix epoch.
    pub at_us: u64,
    /// Queue of the message afterwards, or before if it is gone.
    pub queue: Arc<str>,
    /// Id of the message; `None`: many.
    pub id: Option<MessageId>,
    /// Attempt that began or ended; 0: none.
    pub attempt: u16,
    /// Further details.
    pub detail: ToldDetail,
}

/// Details of an event, as [`sluice_engine::event::EventDetail`] with names.
#[derive(Clone, Debug)]
pub enum ToldDetail {
    /// Nothing.
    None,
    /// The message waits until this time, in microseconds since the Unix epoch.
    Until(u64),
    /// The message is leased until this time, in microseconds since the Unix epoch, by this consumer, if
    /// attached.
    Lease(u64, Option<ConsumerId>),
    /// Why.
    Why(&'static str),
    /// The queue that the message came from.
    From(Arc<str>),
    /// A number of messages at once, and the reason.
    Many(u64, &'static str),
}

/// Events that a reader does not get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Reason.
    pub why: GapReason,
    /// Number of events, where known.
    pub lost: Option<u64>,
}

/// Reason of a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapReason {
    /// The feed dropped events before a slow reader read them.
    Slow,
    /// The reader came back after the feed had dropped them.
    Window,
    /// There was no feed, since nobody read it for a while.
    Unwatched,
    /// The shard was restarted, or the position is of another shard.
    Restarted,
}

impl GapReason {
    /// All reasons.
    pub const ALL: [GapReason; 4] =
        [GapReason::Slow, GapReason::Window, GapReason::Unwatched, GapReason::Restarted];

    /// Name in every API.
    pub fn name(self) -> &'static str {
        match self {
            GapReason::Slow => "slow",
            GapReason::Window => "window",
            GapReason::Unwatched => "unwatched",
            GapReason::Restarted => "restarted",
        }
    }
}

/// Output of a reader.
#[derive(Debug)]
pub enum Heard {
    /// The next events, each with the position after it.
    Events(Vec<(EventPosition, Told)>),
    /// A gap; the reader is after it.
    Gap(Gap),
    /// The end: the namespace was deleted, or the shard has ended.
    Ended,
}

/// A feed, shared by the shard and its readers.
#[derive(Debug)]
pub struct Feed {
    run: u64,
    /// Position before which it has no events.
    since: EventPlace,
    ring: Mutex<Ring>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Told>,
    /// Number of dropped events.
    given_up: u64,
    /// Position after the last dropped event.
    floor: EventPlace,
    ended: bool,
}

impl Ring {
    fn give_up(&mut self) {
        if let Some(told) = self.events.pop_front() {
            self.given_up += 1;
            self.floor = told.place;
        }
    }

    /// Position before the first event that is kept.
    fn begin(&self) -> Option<EventPlace> {
        let (index, number) = self.events.front()?.place;
        Some((index, number.saturating_sub(1)))
    }
}

/// Position of a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Position after the last event that it got.
    at: EventPosition,
    /// Gap to report first, and the position after it.
    gap: Option<(Gap, EventPosition)>,
}

impl Cursor {
    /// Position of the reader.
    pub(crate) fn position(&self) -> EventPosition {
        self.at
    }
}

impl Feed {
    /// An empty feed of events from `since` on.
    pub(super) fn new(run: u64, since: EventPlace) -> Feed {
        Feed { run, since, ring: Mutex::default(), news: Notify::new() }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the events of a step. Keeps at most `window` events.
    pub(super) fn put(&self, fresh: &mut Vec<Told>, window: usize) {
        let mut ring = self.ring();
        for told in fresh.drain(..) {
            if ring.events.len() >= window {
                ring.give_up();
            }
            ring.events.push_back(told);
        }
        drop(ring);
        self.news.notify_waiters();
    }

    /// Drops events beyond the latest `window`.
    pub(super) fn shrink(&self, window: usize) {
        let mut ring = self.ring();
        while ring.events.len() > window {
            ring.give_up();
        }
        if ring.events.capacity() > 2 * window {
            ring.events.shrink_to(window);
        }
    }

    /// Ends the feed.
    pub(super) fn end(&self) {
        self.ring().ended = true;
        self.news.notify_waiters();
    }

    /// Position of a new reader, which was at `after` before, if anywhere. `now`: position of the next event.
    pub(super) fn enter(&self, after: Option<EventPosition>, now: EventPlace) -> Cursor {
        let ring = self.ring();
        let end = ring.given_up + ring.events.len() as u64;
        let Some(after) = after else { return Cursor { at: self.position(end, now), gap: None } };
        let place = after.place();
        let (why, lost) = if after.run != self.run {
            (GapReason::Restarted, None)
        } else if place > now {
            let gap = Gap { why: GapReason::Restarted, lost: None };
            return Cursor { at: after, gap: Some((gap, self.position(end, now))) };
        } else if place < self.since {
            (GapReason::Unwatched, None)
        } else if place < ring.floor {
            (GapReason::Window, ring.given_up.checked_sub(after.count))
        } else {
            let passed = ring.events.partition_point(|told| told.place <= place);
            return Cursor { at: self.position(ring.given_up + passed as u64, place), gap: None };
        };
        let behind = self.position(ring.given_up, ring.begin().unwrap_or(now));
        Cursor { at: after, gap: Some((Gap { why, lost }, behind)) }
    }

    /// The next events or gap for a reader, at most `most` events; `None`: nothing yet.
    fn take(&self, cursor: &mut Cursor, most: usize) -> Option<Heard> {
        if let Some((gap, behind)) = cursor.gap.take() {
            cursor.at = behind;
            return Some(Heard::Gap(gap));
        }
        let ring = self.ring();
        let EventPosition { count, .. } = cursor.at;
        if count < ring.given_up {
            let lost = Some(ring.given_up - count);
            cursor.at = self.position(ring.given_up, ring.begin().unwrap_or(cursor.at.place()));
            return Some(Heard::Gap(Gap { why: GapReason::Slow, lost }));
        }
        let passed = (count - ring.given_up) as usize;
        if passed >= ring.events.len() {
            return ring.ended.then_some(Heard::Ended);
        }
        let mut events = Vec::with_capacity(most.min(ring.events.len() - passed));
        for told in ring.events.range(passed..).take(most) {
            cursor.at = self.position(cursor.at.count + 1, told.place);
            events.push((cursor.at, told.clone()));
        }
        Some(Heard::Events(events))
    }

    fn position(&self, count: u64, (index, number): EventPlace) -> EventPosition {
        EventPosition { run: self.run, index, number, count }
    }

    /// Waits for the next events or gap. Dropping the future loses nothing.
    pub(crate) async fn next(&self, cursor: &mut Cursor, most: usize) -> Heard {
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // Before the look, so that no news is missed after it.
            news.as_mut().enable();
            if let Some(heard) = self.take(cursor, most) {
                return heard;
            }
            news.await;
        }
    }
}

/// Three quarters of a limit: the part that one namespace may use.
pub(super) fn share(most: usize) -> usize {
    most - most / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(index: u64, number: u32) -> Told {
        Told {
            place: (index, number),
            kind: EventKind::Sent,
            at_us: 0,
            queue: "q".into(),
            id: None,
            attempt: 0,
            detail: ToldDetail::None,
        }
    }

    /// Reads a feed: events as record and number, gaps as reason and number of missed events.
    fn read(feed: &Feed, cursor: &mut Cursor) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(heard) = feed.take(cursor, 2) {
            match heard {
                Heard::Events(events) => found
                    .extend(events.iter().map(|(at, _)| format!("{}.{}#{}", at.index, at.number, at.count))),
                Heard::Gap(gap) => found.push(format!("{} {:?}", gap.why.name(), gap.lost)),
                Heard::Ended => {
                    found.push("ended".to_owned());
                    return found;
                }
            }
        }
        found
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        let at = EventPosition { run: 17, index: u64::MAX, number: 3, count: 0 };
        assert_eq!(at.to_string().parse(), Ok(at));
        let bad = [
            "",
            "1",
            "1-2-3",
            "1-2-3-4-5",
            "1-2-3-",
            "-1-2-3-4",
            "1-2-+3-4",
            "1-2-4294967296-4",
            "a-b-c-d",
            "1--2-3",
        ];
        for bad in bad {
            assert_eq!(bad.parse::<EventPosition>(), Err(NotAPosition), "{bad}");
        }
    }

    #[test]
    fn a_reader_gets_what_came_since_and_hears_of_what_it_has_missed() {
        let feed = Feed::new(1, (5, 0));
        let mut cursor = feed.enter(None, (5, 0));
        feed.put(&mut vec![told(5, 1), told(5, 2), told(9, 1)], 3);
        let first = cursor.position();
        assert_eq!(read(&feed, &mut cursor), ["5.1#1", "5.2#2", "9.1#3"]);
        let mut again = feed.enter(Some(first), (10, 0));
        assert_eq!(read(&feed, &mut again), ["5.1#1", "5.2#2", "9.1#3"]);
        let at = EventPosition { index: 5, number: 1, count: 1, ..first };
        assert_eq!(read(&feed, &mut feed.enter(Some(at), (10, 0))), ["5.2#2", "9.1#3"]);

        // Two leave the window.
        let mut slow = feed.enter(Some(at), (10, 0));
        feed.put(&mut vec![told(10, 1), told(11, 4)], 3);
        assert_eq!(read(&feed, &mut slow), ["slow Some(1)", "9.1#3", "10.1#4", "11.4#5"]);
        assert_eq!(
            read(&feed, &mut feed.enter(Some(first), (12, 0))),
            ["window Some(2)", "9.1#3", "10.1#4", "11.4#5"]
        );
        assert_eq!(read(&feed, &mut cursor), ["10.1#4", "11.4#5"]);
        // Who comes back right behind what was given up has missed nothing.
        let at = EventPosition { index: 5, number: 2, count: 2, ..first };
        assert_eq!(read(&feed, &mut feed.enter(Some(at), (12, 0))), ["9.1#3", "10.1#4", "11.4#5"]);
        feed.end();
        assert_eq!(read(&feed, &mut cursor), ["ended"]);
    }

    #[test]
    fn a_gap_is_told_once_to_who_comes_back_with_the_place_behind_it() {
        let feed = Feed::new(1, (1, 0));
        let mut slow = feed.enter(None, (1, 0));
        let begin = slow.position();
        feed.put(&mut (1..=9).map(|index| told(index, 1)).collect(), 4);
        assert!(matches!(feed.take(&mut slow, 1), Some(Heard::Gap(Gap { lost: Some(5), .. }))));
        let behind = slow.position();
        assert_eq!(read(&feed, &mut feed.enter(Some(behind), (10, 0))), ["6.1#6", "7.1#7", "8.1#8", "9.1#9"]);
        // Until it was told, it stands where it was: else the gap would be lost with the connection.
        let mut late = feed.enter(Some(begin), (10, 0));
        assert_eq!(late.position(), begin);
        assert!(matches!(feed.take(&mut late, 1), Some(Heard::Gap(Gap { lost: Some(5), .. }))));
        assert_eq!(late.position(), behind);
    }

    #[test]
    fn places_of_another_start_or_of_before_the_feed_are_gaps() {
        let feed = Feed::new(2, (5, 0));
        feed.put(&mut vec![told(6, 1)], 3);
        let at = |run, index| EventPosition { run, index, number: 0, count: 7 };
        assert_eq!(read(&feed, &mut feed.enter(Some(at(1, 5)), (7, 0))), ["restarted None", "6.1#1"]);
        assert_eq!(read(&feed, &mut feed.enter(Some(at(2, 8)), (7, 0))), ["restarted None"]);
        assert_eq!(read(&feed, &mut feed.enter(Some(at(2, 4)), (7, 0))), ["unwatched None", "6.1#1"]);
        assert_eq!(read(&feed, &mut feed.enter(Some(at(2, 5)), (7, 0))), ["6.1#1"]);
    }

    #[test]
    fn a_feed_that_is_to_be_smaller_keeps_the_latest() {
        let feed = Feed::new(1, (1, 0));
        feed.put(&mut vec![told(1, 1), told(2, 1)], 10);
        feed.shrink(1);
        let mut late = feed.enter(Some(EventPosition { run: 1, index: 1, number: 0, count: 0 }), (3, 0));
        assert_eq!(read(&feed, &mut late), ["window Some(1)", "2.1#2"]);
    }
}
