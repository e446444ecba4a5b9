//! The end of a leadership, case by case: what each kind of caller hears.

use std::sync::{Arc, Mutex};

use sluice_engine::command::{SchedulePut, SendItem};
use sluice_engine::query::State;
use sluice_engine::{Command, Error};
use sluice_node::Heard;
use sluice_node::clock::Clock;
use sluice_node::shard::Step;
use sluice_node::shard::channel::{Channel, DetachedBy, News};
use sluice_node::shard::request::{Proposal, Reader, ReplyTo, Request, Topic, Watch};
use tokio::sync::oneshot;

use super::agreement::Agreement;
use super::calls::{Answered, Call, Client, NAMESPACE, Waiting};
use super::machine::{Machine, NodeTime, begun};
use crate::rig::{SECOND_US, Time};

const ALL: usize = usize::MAX >> 1;
const LONG_US: u64 = 3600 * SECOND_US;

/// Two of three nodes; the first is elected.
struct Pair {
    agreement: Arc<Mutex<Agreement>>,
    time: Time,
    machines: [Machine; 2],
}

impl Pair {
    fn new() -> Pair {
        let (agreement, time) = (begun(3), Time::default());
        let machine = |node| {
            let clock = NodeTime { time: time.clone(), origin_us: 7, wall_us: 0 };
            Machine::new(&agreement, node, clock)
        };
        let machines = [machine(0), machine(1)];
        let mut pair = Pair { agreement, time, machines };
        pair.agree(|agreement| agreement.elect_with(0, 0, 0));
        pair.agree_on_all();
        pair
    }

    fn agree(&self, how: impl FnOnce(&mut Agreement)) {
        how(&mut self.agreement.lock().unwrap());
    }

    /// Commits what the leader proposes, until nobody has anything to do.
    fn agree_on_all(&mut self) {
        for _ in 0..20 {
            self.agree(|agreement| {
                agreement.commit(ALL);
                (0..2).for_each(|node| agreement.learn(node, ALL));
                agreement.confirm(false);
            });
            self.settle_down();
        }
    }

    fn settle_down(&mut self) {
        for machine in &mut self.machines {
            for step in 0.. {
                assert!(step < 1_000, "the shard spins");
                if machine.shard.step() == Step::Idle {
                    break;
                }
            }
        }
    }

    fn pass(&mut self, us: u64) {
        self.time.advance(us);
        self.settle_down();
    }

    fn client(&self, node: usize) -> Client<'_> {
        Client { mailbox: &self.machines[node].mailbox, now_us: self.time.monotonic_us(), ticket: 1 }
    }

    /// A send to the first node that it has proposed and nobody has committed.
    fn send_in_flight(&mut self) -> Waiting {
        let mut send = self.client(0).send("jobs", "<0000001>".to_owned(), 0);
        self.settle_down();
        assert!(heard(&mut send).is_none());
        assert_eq!(self.agreement.lock().unwrap().tail(0), 1);
        send
    }
}

fn heard(call: &mut Waiting) -> Option<Answered> {
    call.answer().unwrap()
}

/// The error that a call was answered with.
fn error(call: &mut Waiting) -> Error {
    match heard(call).expect("an answer") {
        Answered::Sent(Err(error))
        | Answered::Given(Err(error))
        | Answered::Settled(Err(error))
        | Answered::Attached(Err(error))
        | Answered::Counted(Err(error))
        | Answered::Awaited(Err(error)) => error,
        _ => panic!("it was done"),
    }
}

fn watch(pair: &mut Pair) -> Reader {
    let (reply, mut reader) = oneshot::channel();
    let topic = Topic { namespace: NAMESPACE, queue: None };
    pair.machines[0].mailbox.push(Request::Watch(Box::new(Watch { topic, after: None, reply }))).unwrap();
    pair.agree_on_all();
    reader.try_recv().unwrap().unwrap()
}

fn attach(pair: &mut Pair) -> Arc<Channel> {
    let mut attach = pair.client(0).attach("jobs");
    pair.agree_on_all();
    assert!(matches!(heard(&mut attach), Some(Answered::Attached(Ok(_)))));
    match attach.call {
        Call::Attach { channel, .. } => channel,
        _ => unreachable!("an attachment was asked for"),
    }
}

#[test]
fn whoever_waits_without_a_record_is_told_at_once() {
    let mut pair = Pair::new();
    let mut sent = pair.client(0).send("held-back", "<0000001>".to_owned(), LONG_US / 1_000);
    pair.agree_on_all();
    let Some(Answered::Sent(Ok(id))) = heard(&mut sent) else { panic!("it leads") };
    let (mut reader, channel) = (watch(&mut pair), attach(&mut pair));
    let mut pull = pair.client(0).pull("jobs", LONG_US);
    let mut result = pair.client(0).wait_for(id, LONG_US);
    pair.agree_on_all();
    assert!(heard(&mut pull).is_none() && heard(&mut result).is_none());

    pair.agree(|agreement| agreement.loses(0));
    pair.settle_down();
    assert!(matches!(heard(&mut pull), Some(Answered::Given(Ok(given))) if given.is_empty()));
    assert!(matches!(heard(&mut result), Some(Answered::Awaited(Ok(State::Delayed)))));
    assert!(matches!(channel.take(9, 9), Some(News::Detached(DetachedBy::SteppedDown))));
    assert!(crate::ending::heard(&mut reader).iter().any(|heard| matches!(heard, Heard::Ended)));
}

#[test]
fn a_record_that_the_next_leader_commits_is_answered_as_what_it_is() {
    let mut pair = Pair::new();
    let mut send = pair.send_in_flight();
    pair.agree(|agreement| {
        agreement.elect_with(1, 0, 1);
        agreement.follow(0);
    });
    pair.settle_down();
    assert!(heard(&mut send).is_none(), "nobody knows yet");
    pair.agree_on_all();
    assert!(matches!(heard(&mut send), Some(Answered::Sent(Ok(_)))));
}

#[test]
fn a_record_that_the_next_leader_overwrites_was_not_done() {
    let mut pair = Pair::new();
    let mut send = pair.send_in_flight();
    pair.agree(|agreement| agreement.elect_with(1, 1, 0));
    pair.agree_on_all();
    assert_eq!(error(&mut send), Error::NotLeader { leader: 1 });
    let engine = pair.machines[0].shard.engine();
    assert_eq!(engine.totals().sent, 0);
}

#[test]
fn a_record_that_nobody_decides_is_unknown_after_ten_seconds() {
    let mut pair = Pair::new();
    let mut send = pair.send_in_flight();
    pair.agree(|agreement| agreement.loses(0));
    pair.settle_down();
    pair.pass(10 * SECOND_US - 1);
    assert!(heard(&mut send).is_none());
    pair.pass(1);
    assert_eq!(error(&mut send), Error::OutcomeUnknown {});
    // Its record may come later, and concerns nobody any more.
    pair.agree(|agreement| agreement.elect_with(1, 0, 1));
    pair.agree_on_all();
    assert_eq!(pair.machines[0].shard.engine().totals().sent, 1);
}

#[test]
fn other_threads_read_the_leader_only_where_another_node_is_known_to_lead() {
    let mut pair = Pair::new();
    let leaders = |pair: &Pair| [0, 1].map(|node| pair.machines[node].shard.leader().elsewhere());
    assert_eq!(leaders(&pair), [None, Some(0)]);
    pair.agree(|agreement| (0..2).for_each(|node| agreement.loses(node)));
    pair.settle_down();
    assert_eq!(leaders(&pair), [None, None]);
    pair.agree(|agreement| agreement.elect_with(1, 0, 0));
    pair.agree_on_all();
    assert_eq!(leaders(&pair), [Some(1), None]);
}

#[test]
fn a_follower_names_the_leader_and_lets_requests_wait_for_one() {
    let mut pair = Pair::new();
    let mut calls = [pair.client(1).send("jobs", "<0000001>".to_owned(), 0), pair.client(1).count(0)];
    pair.settle_down();
    for call in &mut calls {
        assert_eq!(error(call), Error::NotLeader { leader: 0 });
    }
    pair.agree(|agreement| (0..2).for_each(|node| agreement.loses(node)));
    pair.settle_down();
    let mut late = pair.client(1).send("jobs", "<0000002>".to_owned(), 0);
    pair.settle_down();
    pair.pass(3 * SECOND_US);
    let mut in_time = pair.client(1).send("jobs", "<0000003>".to_owned(), 0);
    pair.pass(2 * SECOND_US);
    assert_eq!(error(&mut late), Error::NoLeader {});
    assert!(heard(&mut in_time).is_none());
    pair.agree(|agreement| agreement.elect_with(1, 1, 0));
    pair.agree_on_all();
    assert!(matches!(heard(&mut in_time), Some(Answered::Sent(Ok(_)))));
}

#[test]
fn a_lost_confirmation_is_asked_for_again_until_the_time_is_over() {
    let mut pair = Pair::new();
    let mut count = pair.client(0).count(0);
    pair.settle_down();
    pair.agree(|agreement| agreement.confirm(true));
    pair.settle_down();
    assert!(heard(&mut count).is_none());
    let idle_us = pair.machines[0].shard.idle_us().unwrap();
    assert!((1..=SECOND_US).contains(&idle_us), "it comes back by itself");
    pair.pass(idle_us);
    pair.agree(|agreement| agreement.confirm(false));
    pair.settle_down();
    assert!(matches!(heard(&mut count), Some(Answered::Counted(Ok(0)))));

    let mut count = pair.client(0).count(0);
    for _ in 0..5 {
        pair.settle_down();
        assert!(heard(&mut count).is_none());
        pair.pass(SECOND_US);
    }
    assert_eq!(error(&mut count), Error::NoLeader {});
}

#[test]
fn nobody_is_served_before_the_epoch_has_begun() {
    let mut pair = Pair::new();
    let epoch = pair.machines[1].shard.engine().epoch();
    pair.agree(|agreement| {
        agreement.full = true;
        agreement.elect_with(1, 1, 0);
    });
    pair.agree_on_all();
    let mut send = pair.client(1).send("jobs", "<0000001>".to_owned(), 0);
    pair.agree_on_all();
    pair.pass(SECOND_US);
    assert!(heard(&mut send).is_none(), "it waits");
    pair.agree(|agreement| agreement.full = false);
    pair.pass(SECOND_US);
    pair.agree_on_all();
    let Some(Answered::Sent(Ok(id))) = heard(&mut send) else { panic!("there is room") };
    assert_eq!(id.sequence >> 22, pair.machines[1].shard.engine().epoch());
    assert!(pair.machines[1].shard.engine().epoch() > epoch);
}

#[test]
fn a_schedule_fires_each_instant_once_whoever_leads() {
    let mut pair = Pair::new();
    let put = SchedulePut {
        namespace: NAMESPACE,
        schedule: "beat",
        queue: "jobs",
        spec: b"1 all every 1000",
        next_at_us: pair.machines[0].shard.engine().time_us() + SECOND_US,
        item: &SendItem::default(),
    };
    let put = Proposal::new(&Command::SchedulePut(put), ReplyTo::Nobody);
    pair.machines[0].mailbox.push(Request::Propose(put)).unwrap();
    pair.agree_on_all();
    for second in 1..10 {
        pair.pass(SECOND_US + SECOND_US / 100);
        // Its firing is in flight, and every other time comes to nothing.
        let (next, tail) = (second % 2, pair.agreement.lock().unwrap().tail((second + 1) % 2));
        assert!(tail > 0);
        pair.agree(|agreement| agreement.elect_with(next, (second + 1) % 2, second / 2 % 2));
        pair.agree_on_all();
        let fired = pair.machines[next].shard.engine().schedule(NAMESPACE, "beat").unwrap().fired;
        assert_eq!((fired, pair.machines[next].shard.engine().totals().sent), (second as u64, second as u64));
    }
}

#[test]
fn a_round_confirms_nothing_for_who_came_after_it_began() {
    let mut pair = Pair::new();
    let mut early = pair.client(0).count(0);
    pair.settle_down();
    pair.agree(|agreement| agreement.confirm(false));
    let mut late = pair.client(0).count(0);
    pair.settle_down();
    assert!(heard(&mut early).is_some() && heard(&mut late).is_none());
    pair.agree(|agreement| agreement.confirm(false));
    pair.settle_down();
    assert!(heard(&mut late).is_some());
}

#[test]
fn a_stop_of_a_follower_ends_what_waits_for_a_leader() {
    let mut pair = Pair::new();
    pair.agree(|agreement| agreement.loses(1));
    pair.settle_down();
    let mut send = pair.client(1).send("jobs", "<0000001>".to_owned(), 0);
    pair.settle_down();
    pair.machines[1].mailbox.push_surely(Request::Stop);
    while pair.machines[1].shard.step() != Step::Stopped {}
    assert_eq!(error(&mut send), Error::ShuttingDown {});
}

#[test]
fn a_stale_read_is_answered_at_once_by_whoever_is_asked() {
    let mut pair = Pair::new();
    let _send = pair.send_in_flight();
    pair.agree(|agreement| agreement.loses(0));
    for node in 0..2 {
        let mut count = pair.client(node).count_stale();
        pair.settle_down();
        assert!(matches!(heard(&mut count), Some(Answered::Counted(Ok(0)))), "node {node}");
    }
}
