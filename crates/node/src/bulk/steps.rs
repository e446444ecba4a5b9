//! A bulk as a state machine, without a task, timer or clock of its own: each step gets the result of the
//! last output and the time, and returns the next output. The driver asks the shard, reads, and waits.

use std::sync::Arc;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::query::MessageView;
use sluice_journal::BlobRead;

use super::page::{Page, PageSeen, Reading, SeenMessage, find};
use super::{BulkAction, BulkRequest, BulkState, BulkView};
use crate::blobs::ReadFailure;
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
    /// Time at which the page began, in microseconds.
    began_us: u64,
    rests_until_us: u64,
    /// Number of remaining tries.
    retries: u32,
    /// Time of the shard at the latest page, in microseconds.
    shard_us: u64,
    cancelled: bool,
}

/// Phase of a bulk.
#[derive(Debug)]
enum Phase {
    /// Until the next page.
    Rest,
    Look,
    Read(Portion),
    Change(Arc<[(MessageId, u64)]>),
    Ended,
}

/// A page of which a part is being read.
#[derive(Debug)]
struct Portion {
    reading: Vec<Reading>,
    rest: Vec<SeenMessage>,
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
        let queue = find(at.engine, &request, &request.filter.queue)?;
        if let BulkAction::Move { to } = &request.action {
            find(at.engine, &request, to)?;
        }
        let counters = at.engine.queue(queue).map(|view| view.counters).unwrap_or_default();
        let total = match request.filter.state {
            Some(state) => counters.states[state as usize],
            None => counters.states.iter().sum(),
        };
        let sequence = at.engine.last_sequence(request.namespace).unwrap_or(0);
        let last = MessageId { namespace: request.namespace, sequence };
        Ok(Steps::new(BulkView::new(request, total, at.engine.time_us()), last, portions))
    }

    fn new(view: BulkView, last: MessageId, portions: Portions) -> Steps {
        Steps {
            view,
            portions,
            last,
            cursor: None,
            phase: Phase::Rest,
            began_us: 0,
            rests_until_us: 0,
            retries: 0,
            shard_us: 0,
            cancelled: false,
        }
    }

    /// State and counts.
    pub fn view(&self) -> &BulkView {
        &self.view
    }

    /// Ends the bulk, at the latest after the current page.
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Takes the result of the last output, and returns the next. `now_us` has any origin and never runs
    /// backwards.
    pub fn step(&mut self, now_us: u64, heard: StepInput) -> Next {
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
            (Phase::Rest, StepInput::Time) => Ok(self.begin_page(now_us)),
            (Phase::Look, StepInput::Time) => Ok(self.look()),
            (Phase::Look, StepInput::Seen(Ok(seen))) => Ok(self.has_seen(now_us, seen)),
            (Phase::Look, StepInput::Seen(Err(error))) => self.retry(now_us, Phase::Look, error),
            (Phase::Read(portion), StepInput::Read(read)) => self.has_read(now_us, portion, read),
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
        Next::Look(Page {
            request: Arc::clone(&self.view.request),
            last: self.last,
            cursor: self.cursor,
            messages_max: self.portions.page_messages,
        })
    }

    fn has_seen(&mut self, now_us: u64, seen: PageSeen) -> Next {
        self.shard_us = seen.now_us;
        self.view.scanned += seen.scanned;
        self.cursor = seen.next;
        if self.view.request.filter.needs_bytes() {
            self.read(now_us, seen.messages, Vec::new())
        } else {
            self.change(now_us, seen.messages.into_iter().map(|message| message.view).collect())
        }
    }

    /// Reads, in portions, the bytes of a page's messages, and collects those that match.
    fn read(&mut self, now_us: u64, mut rest: Vec<SeenMessage>, matching: Vec<MessageView>) -> Next {
        if rest.is_empty() {
            return self.change(now_us, matching);
        }
        let mut bytes = 0;
        let fit = rest.iter().take_while(|message| {
            bytes += message.bytes();
            bytes <= self.portions.read_bytes
        });
        let later = rest.split_off(fit.count().max(1));
        let mut reads = Vec::new();
        let reading = rest.into_iter().map(|message| message.ask(&mut reads)).collect();
        self.phase = Phase::Read(Portion { reading, rest: later, matching });
        Next::Read(reads)
    }

    fn has_read(
        &mut self,
        now_us: u64,
        portion: Portion,
        read: Vec<Result<Bytes, ReadFailure>>,
    ) -> Result<Next, Error> {
        if read.contains(&Err(ReadFailure::Later)) {
            return Err(Error::Overloaded { what: "reads from the disk", retry_after_ms: 1_000 });
        }
        let Portion { reading, rest, mut matching } = portion;
        let mut read = read.into_iter();
        for message in reading {
            let (view, content) = message.take(&mut read);
            if self.view.request.filter.matches_bytes(&content) {
                matching.push(view);
            }
        }
        Ok(self.read(now_us, rest, matching))
    }

    /// Changes the matching messages by one record.
    fn change(&mut self, now_us: u64, matching: Vec<MessageView>) -> Next {
        let request = &self.view.request;
        let states = request.action.verb().states();
        let possible = matching.iter().filter(|view| states.contains(&view.state));
        let items: Arc<[(MessageId, u64)]> = possible.map(|view| (view.id, view.version)).collect();
        self.view.matched += matching.len() as u64;
        self.view.skipped += (matching.len() - items.len()) as u64;
        if items.is_empty() || request.dry_run {
            return self.has_changed(now_us, items.len(), items.len());
        }
        self.retries = RETRIES;
        self.propose(items)
    }

    fn propose(&mut self, items: Arc<[(MessageId, u64)]>) -> Next {
        self.phase = Phase::Change(Arc::clone(&items));
        Next::Change(items)
    }

    /// Counts the changed messages, and goes on with the next page.
    fn has_changed(&mut self, now_us: u64, items: usize, changed: usize) -> Next {
        self.view.changed += changed as u64;
        self.view.skipped += (items - changed) as u64;
        if self.cursor.is_none_or(|cursor| cursor >= self.last.sequence) {
            return self.end(BulkState::Done);
        }
        let took_us = now_us - self.began_us;
        self.rest(Phase::Rest, now_us + took_us.clamp(REST_US.0, REST_US.1))
    }

    fn end(&mut self, state: BulkState) -> Next {
        self.phase = Phase::Ended;
        self.view.state = state;
        self.view.ended_at_us = Some(self.shard_us.max(self.view.started_at_us));
        Next::End
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::id::NamespaceId;

    use super::super::Filter;
    use super::*;

    /// A bulk of 100 messages.
    fn steps() -> Steps {
        let request = BulkRequest {
            namespace: NamespaceId::DEFAULT,
            filter: Filter::default(),
            action: BulkAction::Hold,
            by: String::new(),
            why: String::new(),
            dry_run: false,
        };
        let last = MessageId { namespace: NamespaceId::DEFAULT, sequence: 100 };
        Steps::new(BulkView::new(Arc::new(request), 100, 7), last, Portions::default())
    }

    /// A page on which nothing matches.
    fn page(next: Option<u64>) -> StepInput {
        StepInput::Seen(Ok(PageSeen { messages: Vec::new(), scanned: 50, next, now_us: 9 }))
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
            assert_eq!((view.state, view.scanned, view.ended_at_us), (BulkState::Done, 100, Some(9)));
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

    #[test]
    fn an_answer_to_nothing_fails_it() {
        let mut steps = steps();
        assert!(matches!(steps.step(0, StepInput::Read(Vec::new())), Next::End));
        assert!(matches!(steps.view().error, Some(Error::Internal { .. })));
        assert!(matches!(steps.step(0, StepInput::Time), Next::End));
    }
}
