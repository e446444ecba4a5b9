//! Draws what is done to schedules.

use sluice_engine::command::{Command, Deliver, SchedulePut};
use sluice_engine::id::NamespaceId;

use super::generate::Generator;
use super::op::{Item, Lend, Op, SentBlob};
use super::seen::Seen;

const SCHEDULES: [&str; 2] = ["beat", "daily"];
/// Expressions of the same length of time from instant to instant, in UTC, so that the model can tell them by
/// counting.
const EXPRESSIONS: [(&str, u64); 4] =
    [("*/10 * * * * *", 10), ("* * * * *", 60), ("*/15 * * * *", 900), ("@hourly", 3_600)];

/// What becomes of instants at which the server was down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missed {
    /// One message for all of them.
    Once,
    /// One message each.
    All,
    /// None, but for the latest if that is hardly late.
    Skip,
}

/// When a schedule fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// From instant to instant.
    pub step_us: u64,
    /// Whether instants are multiples of that since the Unix epoch; else they count from when they were set.
    pub aligned: bool,
    /// See [`Missed`].
    pub missed: Missed,
}

impl Times {
    /// The first instant after this time, counted from that time.
    pub fn first_after(&self, us: u64) -> u64 {
        self.next_after(us, us)
    }

    /// The first instant after `us`, counted from an earlier instant. One that was set by older times, just
    /// before others were put, need not be one of these.
    pub fn next_after(&self, instant_us: u64, us: u64) -> u64 {
        let from_us = if self.aligned { 0 } else { instant_us };
        from_us + ((us - from_us) / self.step_us + 1) * self.step_us
    }

    /// As the node lays them down in the log.
    fn to_bytes(self) -> Vec<u8> {
        let missed = match self.missed {
            Missed::Once => "once",
            Missed::All => "all",
            Missed::Skip => "skip",
        };
        let seconds = self.step_us / 1_000_000;
        let expression = EXPRESSIONS.iter().find(|(_, step)| self.aligned && *step == seconds);
        match expression {
            Some((expression, _)) => format!("1 {missed} cron UTC {expression}"),
            None => format!("1 {missed} every {}", self.step_us / 1_000),
        }
        .into_bytes()
    }

    /// Reads them again.
    pub fn of(spec: &[u8]) -> Option<Times> {
        let text = std::str::from_utf8(spec).ok()?;
        let missed = match text.split(' ').nth(1)? {
            "once" => Missed::Once,
            "all" => Missed::All,
            "skip" => Missed::Skip,
            _ => return None,
        };
        let expression = text.split_once("UTC ").map(|(_, expression)| expression);
        let step_us = match expression {
            Some(expression) => EXPRESSIONS.iter().find(|(known, _)| *known == expression)?.1 * 1_000_000,
            None => text.rsplit(' ').next()?.parse::<u64>().ok()? * 1_000,
        };
        Some(Times { step_us, aligned: expression.is_some(), missed })
    }
}

/// What is done to a schedule.
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
        matches!(self, ScheduleOp::Put { queue, item, .. } if item.is_wrong() || super::op::wrong_name(queue))
    }
}

impl Generator {
    /// Somebody sets a schedule, or does something to one.
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
            // Each of those that were missed is a message.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_as_they_were_written() {
        for missed in [Missed::Once, Missed::All, Missed::Skip] {
            for (seconds, aligned) in [(1, false), (10, false), (10, true), (3_600, true)] {
                let times = Times { step_us: seconds * 1_000_000, aligned, missed };
                assert_eq!(Times::of(&times.to_bytes()), Some(times));
            }
        }
    }
}
