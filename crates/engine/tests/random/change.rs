//! What people change of messages, at random.

use sluice_engine::Command;
use sluice_engine::change::{Change, ChangeAction, NewFields, Verb};
use sluice_engine::command::Deliver;
use sluice_engine::event::EventKind;
use sluice_engine::id::MessageId;
use sluice_engine::query::{MessageView, State};

use super::{COSTS, Run};

impl Run {
    pub(super) fn change(&mut self) {
        if self.deliveries.in_order {
            return;
        }
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let from = self.queue();
        let Some(queue) = self.driver.engine.queue_id(namespace, from) else { return };
        let verb = self.numbers.pick(&Verb::ALL);
        let state = if self.numbers.one_in(3) { None } else { Some(self.numbers.pick(verb.states())) };
        let limit = 1 + self.numbers.below(8) as usize;
        let found = self.driver.engine.messages(queue, state, None, limit).items;
        let items: Vec<(MessageId, u64)> = found.iter().map(|view| self.item(view)).collect();
        if items.is_empty() {
            return;
        }
        let texts: [&str; 3] = ["", "ann", "it looked wrong"];
        let (by, why) = (self.numbers.pick(&texts), self.numbers.pick(&texts));
        let action = match verb {
            Verb::Cancel => ChangeAction::Cancel,
            Verb::Hold => ChangeAction::Hold,
            Verb::Approve => ChangeAction::Approve,
            Verb::Deny => ChangeAction::Deny,
            Verb::Retry => ChangeAction::Retry,
            Verb::Move => ChangeAction::Move { to: self.queue() },
            Verb::Change => ChangeAction::Set(self.new_fields()),
        };
        self.apply(&Command::Change(Change { namespace, items: &items, action, by, why }));
        if self.driver.out.error.is_none() {
            assert_eq!(self.driver.out.results.len(), items.len());
        }
        if let (ChangeAction::Set(NewFields { deliver: Some(deliver), .. }), []) =
            (action, &*self.driver.out.deliveries)
        {
            self.check_delays(&found, deliver);
        }
        if items.len() == 1 && self.driver.out.results == [Ok(())] {
            self.check_changed(&found[0], verb);
        }
    }

    /// With its version, with that of another, or without.
    fn item(&mut self, view: &MessageView) -> (MessageId, u64) {
        (view.id, self.numbers.pick(&[view.version, view.version, 0, 1]))
    }

    fn new_fields(&mut self) -> NewFields<'static> {
        let tags: [&[&str]; 3] = [&[], &["red"], &["red", "blue"]];
        NewFields {
            priority: self.numbers.one_in(2).then(|| self.numbers.below(10) as u8),
            deliver: self.numbers.one_in(3).then(|| Deliver::AfterMs(self.numbers.below(120_000))),
            max_attempts: Some(1 + self.numbers.below(4) as u16),
            tags: self.numbers.one_in(2).then(|| self.numbers.pick(&tags)),
            cost: self.numbers.one_in(3).then(|| self.numbers.pick(&COSTS)),
        }
    }

    /// A message that was changed is another one than before, in a state that the change leads to.
    fn check_changed(&self, before: &MessageView, verb: Verb) {
        assert!(verb.states().contains(&before.state), "{verb:?} of {before:?}");
        if before.expires_at_us.is_some() {
            // The change may have been its end.
            return;
        }
        let Ok(after) = self.driver.engine.message(before.id) else {
            // One whose parents have failed may have to go.
            let mut events = self.driver.out.events.iter().filter(|event| event.id == Some(before.id));
            let is_judged = verb == Verb::Retry && events.any(|event| event.kind == EventKind::Cancelled);
            assert!(is_judged || verb == Verb::Cancel, "{verb:?} of {before:?}");
            return;
        };
        let expected: &[State] = match verb {
            Verb::Cancel => &[State::Leased],
            Verb::Hold => &[State::Held],
            Verb::Approve | Verb::Retry => &[State::Ready, State::Delayed, State::Blocked],
            // A dead letter may go on in the queue that takes those of its own.
            Verb::Deny if after.queue != before.queue => &[State::Ready, State::Blocked],
            Verb::Deny => &[State::Dead],
            Verb::Move | Verb::Change => &State::ALL,
        };
        // Whoever has credit takes it at once, and one whose parents have failed may have to be held.
        let taken = after.holder.is_some() && expected.contains(&State::Ready);
        let is_judged = verb == Verb::Retry && after.reason == Some("parent_failed");
        assert!(
            taken || is_judged || expected.contains(&after.state),
            "{verb:?} leads to {after:?} from {before:?}"
        );
        if verb == Verb::Move {
            assert_ne!(after.queue, before.queue);
            assert_ne!(after.version, before.version);
        }
    }

    /// Nobody can delay a message to its end or beyond.
    fn check_delays(&self, before: &[MessageView], deliver: Deliver) {
        let Deliver::AfterMs(delay_ms) = deliver else { return };
        let due_us = self.now_us + delay_ms * 1_000;
        for (view, result) in before.iter().zip(&self.driver.out.results) {
            let late = delay_ms > 0 && view.expires_at_us.is_some_and(|end_us| end_us <= due_us);
            assert!(!late || result.is_err(), "{view:?} is delayed until {due_us}");
        }
    }
}
