//! Odd cases, made on purpose: very many messages that are gone again before what follows is done, places
//! that are used up, delays that outlive what they were for.

use sluice_engine::change::{Change, ChangeAction};
use sluice_engine::command::{Deliver, Send, SendItem};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::SendOptions;
use sluice_engine::outcome::Reply;
use sluice_engine::query::State;
use sluice_engine::settings::Quotas;
use sluice_engine::{Command, Limits};

use super::Run;

impl Run {
    pub(super) fn odd(&mut self) {
        match self.numbers.below(12) {
            0 => self.storm(),
            1..=4 => self.squeeze(),
            5..=7 => self.outlive_delay(),
            _ => self.purge_and_go_on(),
        }
    }

    /// Sends more messages than a slice, and purges or deletes them while their consequences are being done.
    fn storm(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let queue = self.queue();
        let ordering_key = self.numbers.pick::<&[u8]>(&[b"", b"k0"]);
        let options = SendOptions { ordering_key, limit_key: b"k1", ..SendOptions::default() };
        let deliver = self.numbers.pick(&[Deliver::Now, Deliver::Now, Deliver::AfterMs(1_000)]);
        let item = SendItem { payload: b"many", deliver, options: options.given(), ..SendItem::default() };
        let items = vec![item; 2_500];
        let send = Send { namespace, queue, idempotency_key: b"", request_digest: 0, items: &items };
        self.apply(&Command::Send(send));
        self.know_sent();
        for _ in 0..self.numbers.below(3) {
            self.work_or_send();
        }
        let end = match self.numbers.below(5) {
            0 if namespace != NamespaceId::DEFAULT => {
                self.namespaces.retain(|other| *other != namespace);
                Command::NamespaceDelete { namespace, force: true }
            }
            0 | 1 => Command::QueueDelete { namespace, queue },
            _ => Command::QueuePurge { namespace, queue },
        };
        self.apply(&end);
        self.go_on();
    }

    fn purge_and_go_on(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let queue = self.queue();
        self.apply(&Command::QueuePurge { namespace, queue });
        self.go_on();
    }

    /// Goes on without a tick, so that work that is left stays so for a while.
    fn go_on(&mut self) {
        for _ in 0..self.numbers.below(10) {
            self.work_or_send();
        }
    }

    fn work_or_send(&mut self) {
        match self.numbers.below(4) {
            0 => self.receive(),
            1 => self.settle(),
            2 => self.change(),
            _ => self.send(),
        }
    }

    /// The shard, or a namespace, has room for a few more messages, or for as many as come.
    fn squeeze(&mut self) {
        let few = self.numbers.below(4);
        let wide = self.numbers.one_in(2);
        if self.numbers.one_in(2) {
            let messages =
                if wide { Limits::default().messages } else { self.driver.engine.message_count() + few };
            let limits = Limits { messages: messages.max(1), ..self.driver.engine.limits().clone() };
            return self.apply(&Command::Configure(limits));
        }
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let Some(view) = self.driver.engine.namespace(namespace) else { return };
        let messages = if wide { 0 } else { (view.messages + few).max(1) };
        self.apply(&Command::NamespaceSet { namespace, quotas: Quotas { messages, ..view.quotas } });
    }

    /// Holds a message with a delay, lets it die, redrives, holds and approves it: then the delay no longer
    /// counts.
    fn outlive_delay(&mut self) {
        if self.deliveries.in_order {
            return;
        }
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let queue = self.queue();
        let options = SendOptions { hold: true, ..SendOptions::default() };
        let item = SendItem {
            deliver: Deliver::AfterMs(3_000_000),
            options: options.given(),
            ..SendItem::default()
        };
        let send = Send { namespace, queue, idempotency_key: b"", request_digest: 0, items: &[item] };
        self.apply(&Command::Send(send));
        self.know_sent();
        let Reply::Sent { first: id, .. } = self.driver.out.reply else { return };
        let redrive = Command::DeadRedrive { namespace, queue, ids: &[id] };
        let done = self.change_one(id, ChangeAction::Deny)
            && self.is_in(id, State::Dead)
            && self.apply_well(&redrive)
            && self.change_one(id, ChangeAction::Hold)
            && self.change_one(id, ChangeAction::Approve);
        assert!(!done || !self.is_in(id, State::Delayed), "{id} is delayed again");
    }

    fn apply_well(&mut self, command: &Command<'_>) -> bool {
        self.apply(command);
        self.driver.out.error.is_none()
    }

    fn change_one(&mut self, id: MessageId, action: ChangeAction<'_>) -> bool {
        let change = Change { namespace: id.namespace, items: &[(id, 0)], action, by: "", why: "" };
        self.apply_well(&Command::Change(change)) && self.driver.out.results == [Ok(())]
    }

    fn is_in(&self, id: MessageId, state: State) -> bool {
        self.driver.engine.message(id).is_ok_and(|view| view.state == state)
    }
}
