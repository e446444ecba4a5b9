//! Waits for the end of a message. They exist in the node only: waiting costs no record. The engine reports
//! which messages an apply has ended while there is a wait.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sluice_engine::id::{BlobRef, MessageId};
use sluice_engine::outcome::Ended;
use sluice_engine::query::{MessageView, State};
use sluice_engine::{Engine, Error};
use smallvec::SmallVec;

use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::request::{ResultWait, WaitOutcome};
use crate::shard::store::{self, Store};

/// Wait suggested to a caller that found too many waiting, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// All waits, by ticket, message, and end.
#[derive(Debug, Default)]
pub(super) struct ResultWaits {
    waits: FxHashMap<u64, (u64, ResultWait)>,
    messages: FxHashMap<MessageId, SmallVec<[u64; 1]>>,
    ends: BTreeSet<(u64, u64)>,
}

impl ResultWaits {
    pub(super) fn len(&self) -> usize {
        self.waits.len()
    }

    fn push(&mut self, wait: ResultWait, until_us: u64) {
        self.messages.entry(wait.id).or_default().push(wait.ticket);
        self.ends.insert((until_us, wait.ticket));
        self.waits.insert(wait.ticket, (until_us, wait));
    }

    fn remove(&mut self, ticket: u64) -> Option<ResultWait> {
        let (until_us, wait) = self.waits.remove(&ticket)?;
        self.ends.remove(&(until_us, ticket));
        if let Some(tickets) = self.messages.get_mut(&wait.id) {
            tickets.retain(|other| *other != ticket);
            if tickets.is_empty() {
                self.messages.remove(&wait.id);
            }
        }
        Some(wait)
    }

    /// Takes a wait that is over.
    fn pop_ended(&mut self, monotonic_us: u64) -> Option<ResultWait> {
        let &(until_us, ticket) = self.ends.first()?;
        if until_us <= monotonic_us { self.remove(ticket) } else { None }
    }

    /// Answers every wait.
    pub(super) fn end(&mut self) {
        for (_, wait) in std::mem::take(self).waits.into_values() {
            answer(wait, Err(Error::ShuttingDown {}));
        }
    }

    /// Monotonic time at which the next wait is over, in microseconds.
    pub(super) fn next_end_us(&self) -> Option<u64> {
        self.ends.first().map(|&(until_us, _)| until_us)
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(in crate::shard) fn take_await(&mut self, wait: ResultWait) {
        let view = match self.engine.message(wait.id) {
            Ok(view) => view,
            Err(error) => return answer(wait, Err(error)),
        };
        let ended = matches!(view.state, State::Done | State::Dead);
        if ended || wait.wait_us == 0 || self.leading.draining {
            let seen = see(&mut self.store, view.state, Some(view));
            answer(wait, Ok(seen));
        } else if self.leading.results.len() >= self.leading.waiting_max {
            let overloaded = Error::Overloaded { what: "waits for results", retry_after_ms: RETRY_AFTER_MS };
            answer(wait, Err(overloaded));
        } else if !wait.reply.is_closed() {
            let until_us = self.monotonic_us + wait.wait_us;
            self.leading.results.push(wait, until_us);
            self.engine.watch_ends(true);
        }
    }

    /// Answers waits for messages that the last applied record ended.
    pub(super) fn tell_ends(&mut self) {
        for at in 0..self.outcome.ended.len() {
            let Ended { id, state } = self.outcome.ended[at];
            while let Some(&ticket) =
                self.leading.results.messages.get(&id).and_then(|tickets| tickets.first())
            {
                let Some(wait) = self.leading.results.remove(ticket) else { break };
                answer(wait, end_of(&self.engine, &mut self.store, id, state));
            }
        }
        self.watch_or_not();
    }

    /// Removes a wait whose caller has gone.
    pub(super) fn cancel_await(&mut self, ticket: u64) {
        self.leading.results.remove(ticket);
        self.watch_or_not();
    }

    /// Answers waits that are over at `monotonic_us`.
    pub(super) fn end_awaits(&mut self, monotonic_us: u64) {
        while let Some(wait) = self.leading.results.pop_ended(monotonic_us) {
            let view = self.engine.message(wait.id);
            let seen = view.map(|view| see(&mut self.store, view.state, Some(view)));
            answer(wait, seen);
        }
        self.watch_or_not();
    }

    fn watch_or_not(&mut self) {
        if self.leading.results.len() == 0 {
            self.engine.watch_ends(false);
        }
    }
}

/// Result for a message that an apply has ended. The message is gone already where its result was not to be
/// kept.
fn end_of(
    engine: &Engine,
    store: &mut impl Store,
    id: MessageId,
    state: Option<State>,
) -> Result<WaitOutcome, Error> {
    match (engine.message(id), state) {
        (Ok(view), state) => Ok(see(store, state.unwrap_or(view.state), Some(view))),
        (Err(_), Some(state)) => Ok(see(store, state, None)),
        (Err(error), None) => Err(error),
    }
}

fn see(store: &mut impl Store, state: State, view: Option<MessageView>) -> WaitOutcome {
    let mut read = |blob: BlobRef| store::read(store, blob);
    let result = view.as_ref().and_then(|view| view.result).map(&mut read);
    let note = view.as_ref().and_then(|view| view.progress?.note).map(&mut read);
    WaitOutcome { state, view, result, note }
}

/// Sends the answer; a caller that has gone is ignored.
fn answer(wait: ResultWait, seen: Result<WaitOutcome, Error>) {
    let _ = wait.reply.send(seen);
}

#[cfg(test)]
mod tests {
    use sluice_engine::id::NamespaceId;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn waits_leave_every_table_at_once() {
        let id = |sequence| MessageId { namespace: NamespaceId::DEFAULT, sequence };
        let wait = |ticket, sequence| ResultWait {
            ticket,
            id: id(sequence),
            wait_us: 0,
            reply: oneshot::channel().0,
        };
        let mut awaiting = ResultWaits::default();
        for (ticket, sequence, until_us) in [(1, 7, 30), (2, 7, 10), (3, 8, 20)] {
            awaiting.push(wait(ticket, sequence), until_us);
        }
        assert_eq!((awaiting.len(), awaiting.next_end_us()), (3, Some(10)));
        assert!(awaiting.remove(3).is_some() && awaiting.remove(3).is_none());
        assert!(awaiting.pop_ended(9).is_none());
        assert_eq!(awaiting.pop_ended(40).map(|wait| wait.ticket), Some(2));
        assert_eq!(awaiting.pop_ended(40).map(|wait| wait.ticket), Some(1));
        assert!(awaiting.messages.is_empty() && awaiting.ends.is_empty());
    }
}
