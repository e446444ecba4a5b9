//! A bulk as a state machine, without a task, timer or clock of its own: each step gets the result of the
//! last output and the time, and returns the next output. The driver asks the shard, reads, and waits.
//!
//! What matches on a page is changed by one record; at a rate by several, each at its time.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::query::MessageView;
use sluice_journal::BlobRead;

use super::pace::Pace;
use super::{BulkAction, BulkRequest, BulkState, BulkView};
use crate::blobs::{ReadFailure, overloaded};
use crate::search::{Hit, Page, PageSeen, Portion, SeenMessage, find};
use crate::shard::request::{Answer, ShardView};

/// Shortest and longest rest between two pages, in microseconds; in between, as long as the page took.
const REST_US: (u64, u64) = (1_000, 50_000);
/// Number of further tries after a temporary failure, and the pause before each in microseconds.
const RETRIES: u32 = 60;
const RETRY_PAUSE_US: u64 = 500_000;

/// Upper limits of one step of a bulk.
#[derive(Clone, Copy, Debug)]
pub struct Portions {
    /// Number of messages of a page, and so of a record.
    pub page_messages: usize,
    /// Number of bytes read at once for the filter; a single message may have more.
    pub read_bytes: u64,
}

impl Default for Portions {
    fn default() -> Portions {
        Portions { page_messages: 128, read_bytes: 4 << 20 }
    }
}

/// Output of a step.
#[derive(Debug)]
pub enum Next {
    /// Read this page between two batches of the shard; answer with [`StepInput::Seen`].
    Look(Page),
    /// Read these blobs off the shard's thread; answer with [`StepInput::Read`].
    Read(Vec<BlobRead>),
    /// Change these messages by one record, see [`BulkRequest::with_change`]; answer with
    /// [`StepInput::Changed`].
    Change(Arc<[(MessageId, u64)]>),
    /// Wait until this time; answer with [`StepInput::Time`].
    Rest {
        /// Time in microseconds, by the driver's clock.
        until_us: u64,
    },
    /// The bulk has ended.
    End,
}

/// Input of a step.
#[derive(Debug)]
pub enum StepInput {
    /// Time has passed; also the first input.
    Time,
    /// The page, or the error of reading it.
    Seen(Result<PageSeen, Error>),
    /// The blobs, in order, or the error of each.
    Read(Vec<Result<Bytes, ReadFailure>>),
    /// The answer to the change, or its error.
    Changed(Result<Answer, Error>),
}

impl StepInput {
    /// Number of bytes that the step has to work on.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            StepInput::Read(read) => read.iter().flatten().map(|bytes| bytes.len() as u64).sum(),
            StepInput::Time | StepInput::Seen(_) | StepInput::Changed(_) => 0,
        }
    }
}

/// State of a bulk; see the module.
#[derive(Debug)]
pub struct Steps {
    pub(crate) view: BulkView,
    portions: Portions,
    /// Last message of the bulk.
    last: MessageId,
    /// End of the latest page.
    cursor: Option<u64>,
    phase: Phase,
    /// Messages of the page that match and are yet to be changed, each with its version.
    waiting: VecDeque<(MessageId, u64)>,
    pace: Pace,
    /// `cursor` and the number of messages looked at, before the page.
    before_page: (Option<u64>, u64),
    /// Time at which the page began, in microseconds.
    began_us: u64,
    rests_until_us: u64,
    /// Number of remaining tries.
    retries: u32,
    /// Times of the first and of the latest step, in microseconds.
    steps_us: Option<(u64, u64)>,
    cancelled: bool,
}

/// Phase of a bulk.
#[derive(Debug)]
enum Phase {
    /// Until the next record, or the next page.
    Rest,
    Look,
    Read(Reading),
    Change(Arc<[(MessageId, u64)]>),
    Ended,
}

/// A page of which a part is being read.
#[derive(Debug)]
struct Reading {
    portion: Portion,
    rest: VecDeque<SeenMessage>,
    matching: Vec<MessageView>,
}

impl Steps {
    /// Begins a bulk: checks that the queues exist, and notes the last message; later messages are not
    /// changed.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub fn begin(
        at: &mut ShardView<'_>,
        request: Arc<BulkRequest>,
        portions: Portions,
    ) -> Result<Steps, Error> {
        let queue = find(at.engine, request.namespace, &request.queue)?;
        if let BulkAction::Move { to } = &request.action {
            find(at.engine, request.namespace, to)?;
        }
        let counters = at.engine.queue(queue).map(|view| view.counters).unwrap_or_default();
        let total = counters.in_state(request.filter.state());
        let sequence = at.engine.last_sequence(request.namespace).unwrap_or(0);
        let last = MessageId { namespace: request.namespace, sequence };
        Ok(Steps::new(BulkView::new(request, total, at.now_us), last, portions))
    }

    fn new(view: BulkView, last: MessageId, portions: Portions) -> Steps {
        Steps {
            pace: Pace::new(view.request.per_second),
            view,
            portions,
            last,
            cursor: None,
            phase: Phase::Rest,
            waiting: VecDeque::new(),
            began_us: 0,
            before_page: (None, 0),
            rests_until_us: 0,
            retries: 0,
            steps_us: None,
            cancelled: false,
        }
    }

    /// State and counts.
    pub fn view(&self) -> &BulkView {
        &self.view
    }

    /// Ends the bulk, at the latest after the current page; at a rate, after the current record.
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Takes the result of the last output, and returns the next. `now_us` has any origin and never runs
    /// backwards.
    pub fn step(&mut self, now_us: u64, heard: StepInput) -> Next {
        self.steps_us = Some((self.steps_us.map_or(now_us, |(first_us, _)| first_us), now_us));
        self.hear(now_us, heard).unwrap_or_else(|error| {
            self.view.error = Some(error);
            self.end(BulkState::Failed)
        })
    }

    fn hear(&mut self, now_us: u64, heard: StepInput) -> Result<Next, Error> {
        match (std::mem::replace(&mut self.phase, Phase::Ended), heard) {
            (Phase::Ended, _) => Ok(Next::End),
            (phase, StepInput::Time) if now_us < self.rests_until_us => {
                Ok(self.rest(phase, self.rests_until_us))
            }
            (Phase::Rest, StepInput::Time) if self.waiting.is_empty() => Ok(self.begin_page(now_us)),
            (Phase::Rest, StepInput::Time) => Ok(self.change_next(now_us)),
            (Phase::Look, StepInput::Time) => Ok(self.look()),
            (Phase::Look, StepInput::Seen(Ok(seen))) => Ok(self.has_seen(now_us, seen)),
            (Phase::Look, StepInput::Seen(Err(error))) => self.retry(now_us, Phase::Look, error),
            (Phase::Read(reading), StepInput::Read(read)) => self.has_read(now_us, reading, read),
            (Phase::Change(items), StepInput::Time) => Ok(self.propose(items)),
            (Phase::Change(items), StepInput::Changed(answer)) => {
                match answer.and_then(|answer| answer.into_item_results(items.len())) {
                    Ok(results) => {
                        let changed = results.iter().filter(|result| result.is_ok()).count();
                        Ok(self.has_changed(now_us, items.len(), changed))
                    }
                    Err(error) => self.retry(now_us, Phase::Change(items), error),
                }
            }
            _ => Err(Error::Internal { reason: "a bulk was told what it has not asked for".to_owned() }),
        }
    }

    fn rest(&mut self, phase: Phase, until_us: u64) -> Next {
        self.phase = phase;
        self.rests_until_us = until_us;
        Next::Rest { until_us }
    }

    /// Waits for another try of what may pass by itself, unless the bulk is to end. Messages that could not
    /// be changed count as skipped.
    fn retry(&mut self, now_us: u64, phase: Phase, error: Error) -> Result<Next, Error> {
        let passes = matches!(error, Error::Overloaded { .. } | Error::DiskFull { .. });
        if passes && self.retries > 0 && !self.cancelled {
            self.retries -= 1;
            return Ok(self.rest(phase, now_us + RETRY_PAUSE_US));
        }
        if let Phase::Change(items) = phase {
            self.view.skipped += items.len() as u64;
        }
        if passes && self.cancelled { Ok(self.end(BulkState::Cancelled)) } else { Err(error) }
    }

    fn begin_page(&mut self, now_us: u64) -> Next {
        if self.cancelled {
            return self.end(BulkState::Cancelled);
        }
        self.began_us = now_us;
        self.retries = RETRIES;
        self.look()
    }

    fn look(&mut self) -> Next {
        self.phase = Phase::Look;
        let request = &self.view.request;
        Next::Look(Page {
            namespace: request.namespace,
            queue: Arc::clone(&request.queue),
            filter: Arc::clone(&request.filter),
            now_ms: self.now_ms(),
            cursor: self.cursor,
            last: Some(self.last),
            messages_max: self.portions.page_messages,
        })
    }

    /// Time by which the filter is evaluated: that of the begin.
    fn now_ms(&self) -> u64 {
        self.view.started_at_us / 1_000
    }

    fn has_seen(&mut self, now_us: u64, seen: PageSeen) -> Next {
        self.before_page = (self.cursor, self.view.scanned);
        self.view.scanned += seen.scanned;
        self.cursor = seen.next;
        self.read(now_us, seen.messages, Vec::new())
    }

    /// Reads, in portions, the bytes of a page's messages, and collects those that match.
    fn read(&mut self, now_us: u64, mut rest: VecDeque<SeenMessage>, mut matching: Vec<MessageView>) -> Next {
        while !rest.is_empty() {
            let (portion, reads) = Portion::take(&mut rest, self.portions.read_bytes);
            if reads.is_empty() {
                matching.extend(self.matching(portion, Vec::new()));
            } else {
                self.phase = Phase::Read(Reading { portion, rest, matching });
                return Next::Read(reads);
            }
        }
        self.change(now_us, matching)
    }

    fn matching(
        &self,
        portion: Portion,
        read: Vec<Result<Bytes, ReadFailure>>,
    ) -> impl Iterator<Item = MessageView> + use<> {
        let hits = portion.matching(&self.view.request.filter, self.now_ms(), read);
        hits.into_iter().map(|Hit { view, .. }| view)
    }

    fn has_read(
        &mut self,
        now_us: u64,
        reading: Reading,
        read: Vec<Result<Bytes, ReadFailure>>,
    ) -> Result<Next, Error> {
        if read.contains(&Err(ReadFailure::Later)) {
            // Nothing of the page is changed yet.
            (self.cursor, self.view.scanned) = self.before_page;
            return self.retry(now_us, Phase::Look, overloaded());
        }
        let Reading { portion, rest, mut matching } = reading;
        matching.extend(self.matching(portion, read));
        Ok(self.read(now_us, rest, matching))
    }

    /// Changes those of the matching messages whose state allows it.
    fn change(&mut self, now_us: u64, matching: Vec<MessageView>) -> Next {
        let request = &self.view.request;
        let states = request.action.verb().states();
        let possible = matching.iter().filter(|view| states.contains(&view.state));
        let items: VecDeque<(MessageId, u64)> = possible.map(|view| (view.id, view.version)).collect();
        self.view.matched += matching.len() as u64;
        self.view.skipped += (matching.len() - items.len()) as u64;
        if request.dry_run {
            self.view.changed += items.len() as u64;
            return self.end_page(now_us);
        }
        self.waiting = items;
        self.change_next(now_us)
    }

    /// Changes by one record as many of the waiting messages as the rate allows, or waits until it does.
    fn change_next(&mut self, now_us: u64) -> Next {
        if self.waiting.is_empty() {
            return self.end_page(now_us);
        }
        if self.cancelled {
            return self.end(BulkState::Cancelled);
        }
        if let Some(due_us) = self.pace.due_us(now_us) {
            return self.rest(Phase::Rest, due_us);
        }
        let count = self.pace.take(now_us, self.waiting.len());
        self.retries = RETRIES;
        let items = self.waiting.drain(..count).collect();
        self.propose(items)
    }

    fn propose(&mut self, items: Arc<[(MessageId, u64)]>) -> Next {
        self.phase = Phase::Change(Arc::clone(&items));
        Next::Change(items)
    }

    /// Counts the messages that a record has changed, and goes on with the next.
    fn has_changed(&mut self, now_us: u64, items: usize, changed: usize) -> Next {
        self.view.changed += changed as u64;
        self.view.skipped += (items - changed) as u64;
        self.change_next(now_us)
    }

    /// Goes on with the next page after a rest, if there is one.
    fn end_page(&mut self, now_us: u64) -> Next {
        if self.cursor.is_none_or(|cursor| cursor >= self.last.sequence) {
            return self.end(BulkState::Done);
        }
        let took_us = now_us - self.began_us;
        self.rest(Phase::Rest, now_us + took_us.clamp(REST_US.0, REST_US.1))
    }

    /// Ends the bulk. Messages of the page that it has not come to count as skipped.
    fn end(&mut self, state: BulkState) -> Next {
        self.phase = Phase::Ended;
        self.view.skipped += std::mem::take(&mut self.waiting).len() as u64;
        self.view.state = state;
        let took_us = self.steps_us.map_or(0, |(first_us, now_us)| now_us - first_us);
        self.view.ended_at_us = Some(self.view.started_at_us + took_us);
        Next::End
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::id::NamespaceId;
    use sluice_engine::outcome::Reply;

    use super::*;
    use crate::search::MessageFilter;

    /// A bulk of 100 messages.
    fn steps() -> Steps {
        steps_at(None)
    }

    fn steps_at(per_second: Option<u32>) -> Steps {
        let request = BulkRequest {
            namespace: NamespaceId::DEFAULT,
            queue: "a".into(),
            filter: Arc::new(MessageFilter::default()),
            action: BulkAction::Hold,
            by: String::new(),
            why: String::new(),
            dry_run: false,
            per_second,
        };
        let last = MessageId { namespace: NamespaceId::DEFAULT, sequence: 100 };
        Steps::new(BulkView::new(Arc::new(request), 100, 7), last, Portions::default())
    }

    /// A page on which nothing matches.
    fn page(next: Option<u64>) -> StepInput {
        StepInput::Seen(Ok(PageSeen { messages: VecDeque::new(), scanned: 50, next, index: None }))
    }

    fn overloaded() -> StepInput {
        StepInput::Seen(Err(Error::Overloaded { what: "reads", retry_after_ms: 1 }))
    }

    fn looks(next: &Next) -> bool {
        matches!(next, Next::Look(_))
    }

    #[test]
    fn it_rests_as_long_as_a_page_took_within_bounds() {
        for (took_us, rests_us) in [(0, 1_000), (20_000, 20_000), (9_000_000, 50_000)] {
            let mut steps = steps();
            assert!(looks(&steps.step(5, StepInput::Time)));
            let next = steps.step(5 + took_us, page(Some(50)));
            let until = 5 + took_us + rests_us;
            assert!(matches!(next, Next::Rest { until_us } if until_us == until), "{next:?}");
            assert!(matches!(steps.step(until - 1, StepInput::Time), Next::Rest { .. }));
            assert!(looks(&steps.step(until, StepInput::Time)));
            assert!(matches!(steps.step(until, page(Some(100))), Next::End));
            let view = steps.view();
            assert_eq!((view.state, view.scanned), (BulkState::Done, 100));
            assert_eq!(view.ended_at_us, Some(7 + until - 5), "it has begun at 7");
        }
    }

    #[test]
    fn what_passes_is_tried_again_and_not_for_ever() {
        let mut steps = steps();
        let mut now_us = 0;
        for _ in 0..RETRIES {
            assert!(looks(&steps.step(now_us, StepInput::Time)));
            assert!(matches!(steps.step(now_us, overloaded()), Next::Rest { .. }));
            now_us += RETRY_PAUSE_US;
        }
        assert!(looks(&steps.step(now_us, StepInput::Time)));
        assert!(matches!(steps.step(now_us, overloaded()), Next::End));
        assert_eq!(steps.view().state, BulkState::Failed);
        assert!(matches!(steps.view().error, Some(Error::Overloaded { .. })));
    }

    #[test]
    fn a_page_that_cannot_be_read_now_is_looked_at_again() {
        let mut steps = steps();
        steps.step(0, StepInput::Time);
        steps.step(0, page(Some(50)));
        assert!(looks(&steps.step(50_000, StepInput::Time)));
        (steps.before_page, steps.cursor, steps.view.scanned) = ((Some(50), 50), Some(100), 100);
        let portion = Portion::take(&mut VecDeque::new(), 1).0;
        let reading = Reading { portion, rest: VecDeque::new(), matching: Vec::new() };
        steps.phase = Phase::Read(reading);
        let next = steps.step(50_000, StepInput::Read(vec![Err(ReadFailure::Later)]));
        assert!(matches!(next, Next::Rest { .. }), "{next:?}");
        let next = steps.step(50_000 + RETRY_PAUSE_US, StepInput::Time);
        assert!(matches!(next, Next::Look(Page { cursor: Some(50), .. })), "{next:?}");
        assert_eq!(steps.view().scanned, 50);
    }

    #[test]
    fn it_ends_between_pages_when_it_is_cancelled() {
        let mut steps = steps();
        steps.step(0, StepInput::Time);
        steps.cancel();
        assert!(matches!(steps.step(0, page(Some(50))), Next::Rest { .. }));
        assert!(matches!(steps.step(1_000, StepInput::Time), Next::End));
        assert_eq!((steps.view().state, steps.view().scanned), (BulkState::Cancelled, 50));
    }

    #[test]
    fn it_is_cancelled_while_it_waits_for_what_passes() {
        let mut steps = steps();
        steps.step(0, StepInput::Time);
        steps.cancel();
        assert!(matches!(steps.step(0, overloaded()), Next::End));
        assert_eq!((steps.view().state, &steps.view().error), (BulkState::Cancelled, &None));
    }

    #[test]
    fn what_it_could_not_change_is_skipped() {
        let mut steps = steps();
        steps.retries = 0;
        steps.view.matched = 2;
        let id = |sequence| (MessageId { namespace: NamespaceId::DEFAULT, sequence }, 1);
        steps.phase = Phase::Change(Arc::new([id(1), id(2)]));
        let refused = Error::QueueClosed { queue: "b".to_owned() };
        assert!(matches!(steps.step(0, StepInput::Changed(Err(refused))), Next::End));
        let view = steps.view();
        assert_eq!((view.state, view.changed, view.skipped), (BulkState::Failed, 0, 2));
    }

    fn waiting(count: u64) -> VecDeque<(MessageId, u64)> {
        (1..=count).map(|sequence| (MessageId { namespace: NamespaceId::DEFAULT, sequence }, 1)).collect()
    }

    fn gone() -> Error {
        Error::MessageNotFound { id: String::new() }
    }

    fn answer(results: Vec<Result<(), Error>>) -> Answer {
        Answer { result: Ok(Reply::None), results, duplicates: None, operations: None }
    }

    fn asked(next: &Next) -> usize {
        let Next::Change(items) = next else { panic!("{next:?}") };
        items.len()
    }

    #[test]
    fn at_a_rate_a_page_is_changed_by_several_records() {
        let mut steps = steps_at(Some(200));
        (steps.waiting, steps.view.matched) = (waiting(5), 5);
        let (mut now_us, mut records) = (0, Vec::new());
        let mut heard = StepInput::Time;
        let end = loop {
            match steps.step(now_us, heard) {
                Next::Change(items) => {
                    records.push((now_us, items.len()));
                    let results = (0..items.len()).map(|at| if at == 0 { Ok(()) } else { Err(gone()) });
                    heard = StepInput::Changed(Ok(answer(results.collect())));
                }
                Next::Rest { until_us } => (now_us, heard) = (until_us, StepInput::Time),
                next => break next,
            }
        };
        assert_eq!(records, [(0, 2), (10_000, 2), (20_000, 1)]);
        assert!(matches!(end, Next::End), "{end:?}");
        assert_eq!((steps.view().state, steps.view().changed, steps.view().skipped), (BulkState::Done, 3, 2));
        assert_eq!(steps.view().ended_at_us, Some(7 + 20_000), "it has begun at 7");
    }

    #[test]
    fn a_cancelled_bulk_at_a_rate_skips_the_rest_of_its_page() {
        let mut steps = steps_at(Some(1));
        (steps.waiting, steps.view.matched) = (waiting(5), 5);
        assert_eq!(asked(&steps.step(0, StepInput::Time)), 1);
        steps.cancel();
        let refused = StepInput::Changed(Err(Error::QueueClosed { queue: "b".to_owned() }));
        assert!(matches!(steps.step(10, refused), Next::End));
        assert_eq!((steps.view().state, steps.view().skipped), (BulkState::Failed, 5));
        let mut steps = steps_at(Some(1));
        (steps.waiting, steps.view.matched) = (waiting(5), 5);
        steps.pace.take(0, 1);
        assert!(matches!(steps.step(0, StepInput::Time), Next::Rest { until_us: 1_000_000 }));
        steps.cancel();
        assert!(matches!(steps.step(1_000_000, StepInput::Time), Next::End));
        assert_eq!((steps.view().state, steps.view().skipped), (BulkState::Cancelled, 5));
    }

    #[test]
    fn an_answer_to_nothing_fails_it() {
        let mut steps = steps();
        assert!(matches!(steps.step(0, StepInput::Read(Vec::new())), Next::End));
        assert!(matches!(steps.view().error, Some(Error::Internal { .. })));
        assert!(matches!(steps.step(0, StepInput::Time), Next::End));
    }
}
