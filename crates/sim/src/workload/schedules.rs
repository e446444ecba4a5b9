//! Random operations on schedules.

use sluice_engine::command::{Command, Deliver, SchedulePut};
use sluice_engine::id::NamespaceId;

use super::Generator;
use super::names::wrong_name;
use super::seen::Seen;
use super::times::{Missed, Times};
use super::{Item, Lend, Op, SentBlob};

const SCHEDULES: [&str; 2] = ["beat", "daily"];
/// An operation on a schedule.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum ScheduleOp {
    Put {
        namespace: NamespaceId,
        schedule: String,
        queue: String,
        spec: Vec<u8>,
        next_at_us: u64,
        item: Box<Item>,
    },
    Pause {
        namespace: NamespaceId,
        schedule: String,
        paused: bool,
        next_at_us: u64,
    },
    Delete {
        namespace: NamespaceId,
        schedule: String,
    },
    Trigger {
        namespace: NamespaceId,
        schedule: String,
    },
}

impl Lend for ScheduleOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        match self {
            ScheduleOp::Put { namespace, schedule, queue, spec, next_at_us, item } => {
                let options = item.options();
                f(&Command::SchedulePut(SchedulePut {
                    namespace: *namespace,
                    schedule,
                    queue,
                    spec,
                    next_at_us: *next_at_us,
                    item: &item.lend(&options),
                }));
            }
            ScheduleOp::Pause { namespace, schedule, paused, next_at_us } => f(&Command::SchedulePause {
                namespace: *namespace,
                schedule,
                paused: *paused,
                next_at_us: *next_at_us,
            }),
            ScheduleOp::Delete { namespace, schedule } => {
                f(&Command::ScheduleDelete { namespace: *namespace, schedule });
            }
            ScheduleOp::Trigger { namespace, schedule } => {
                f(&Command::ScheduleTrigger { namespace: *namespace, schedule });
            }
        }
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        match self {
            ScheduleOp::Put { item, .. } if number == 0 => Some(item.blob()),
            _ => None,
        }
    }

    fn is_wrong(&self) -> bool {
        matches!(self, ScheduleOp::Put { queue, item, .. } if item.is_wrong() || wrong_name(queue))
    }
}

impl Generator {
    /// Draws an operation on a schedule.
    pub(super) fn schedule(&mut self, seen: &Seen<'_>) -> Op {
        let namespace = self.a_namespace(seen);
        let schedule = (*self.rng.pick(&SCHEDULES)).to_owned();
        Op::Schedule(match self.rng.below(12) {
            0 => ScheduleOp::Delete { namespace, schedule },
            1 | 2 => ScheduleOp::Trigger { namespace, schedule },
            3..=5 => {
                let paused = self.rng.chance(1, 3);
                let times = seen.times_of(namespace, &schedule).filter(|_| !paused);
                let next_at_us = times.map_or(0, |times| times.first_after(seen.now_us()));
                ScheduleOp::Pause { namespace, schedule, paused, next_at_us }
            }
            _ => self.put_schedule(seen, namespace, schedule),
        })
    }

    fn put_schedule(&mut self, seen: &Seen<'_>, namespace: NamespaceId, schedule: String) -> ScheduleOp {
        let missed = self.rng.weighted(&[(3, Missed::Once), (2, Missed::All), (2, Missed::Skip)]);
        let seconds = match missed {
            // Each missed instant becomes a message.
            Missed::All => self.rng.weighted(&[(1, 1), (3, 10), (3, 60)]),
            _ => self.rng.weighted(&[(2, 1), (3, 10), (3, 60), (1, 900), (1, 3_600)]),
        };
        let aligned = seconds > 1 && self.rng.chance(1, 2);
        let times = Times { step_us: seconds * 1_000_000, aligned, missed };
        let queue = self.a_queue();
        let mut item = Box::new(self.item(&queue));
        if let Deliver::AtUs(_) = item.deliver {
            item.deliver = Deliver::Now;
        }
        let next_at_us = times.first_after(seen.now_us());
        ScheduleOp::Put { namespace, schedule, queue, spec: times.to_bytes(), next_at_us, item }
    }
}
