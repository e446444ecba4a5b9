//! Random schedules, and their instants.

use sluice_engine::Command;
use sluice_engine::command::{Deliver, ScheduleFire, SchedulePut, SendItem};
use sluice_engine::item::Expires;
use sluice_engine::outcome::Reply;

use super::Run;

impl Run {
    pub(super) fn schedule(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let schedule = self.numbers.pick(&["s", "t", "u"]);
        let queue = self.queue();
        let next_at_us = self.now_us + 1 + self.numbers.below(100_000);
        match self.numbers.below(12) {
            0 => self.apply(&Command::ScheduleDelete { namespace, schedule }),
            1 | 2 => {
                let paused = self.numbers.one_in(2);
                self.apply(&Command::SchedulePause { namespace, schedule, paused, next_at_us });
            }
            3 => {
                self.apply(&Command::ScheduleTrigger { namespace, schedule });
                self.know_scheduled();
            }
            4 | 5 => {
                let mut options = self.options();
                if let Expires::AtUs(_) = options.expires {
                    // A schedule's messages come again and again.
                    options.expires = Expires::Never;
                }
                let item = SendItem {
                    payload: b"again",
                    deliver: if self.numbers.one_in(3) { Deliver::AfterMs(700) } else { Deliver::Now },
                    backoff: self.numbers.one_in(3).then(|| self.backoff()),
                    options: options.given(),
                    ..SendItem::default()
                };
                let spec = self.numbers.pick::<&[u8]>(&[b"one", b"two"]);
                let put = SchedulePut { namespace, schedule, queue, spec, next_at_us, item: &item };
                self.apply(&Command::SchedulePut(put));
            }
            _ => self.fire(),
        }
    }

    fn know_scheduled(&mut self) {
        if let Reply::Sent { first, duplicate, .. } = self.driver.out.reply {
            assert_eq!(self.ids.insert(first), !duplicate, "an id was given twice, or is of nobody");
        }
    }

    /// Instants come early, late and twice, of schedules that are there and that are not.
    fn fire(&mut self) {
        let at = self.numbers.below(4) as usize;
        let due = self.driver.engine.schedules_by_time().nth(at).map(|due| (due.number, due.instant_us));
        let Some((number, instant_us)) = due else { return };
        let next_at_us =
            if self.numbers.one_in(8) { 0 } else { instant_us + 1 + self.numbers.below(2_000_000) };
        let number = if self.numbers.one_in(10) { number - 1 } else { number };
        let fire = ScheduleFire { number, instant_us, send: !self.numbers.one_in(4), next_at_us };
        self.apply(&Command::ScheduleFire(fire));
        self.know_scheduled();
        self.again = self.numbers.one_in(3).then_some(fire);
    }
}
