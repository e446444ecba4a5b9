//! The end of a leadership, by a stop and by a failed journal: every kind of waiting caller gets an answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use sluice_engine::Error;
use sluice_engine::command::{Attach, Command, DETACH_GRACE_MS, SendItem};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId};
use sluice_engine::query::State;
use sluice_node::Heard;
use sluice_node::shard::Step;
use sluice_node::shard::channel::{Channel, DetachedBy, News};
use sluice_node::shard::request::{
    Answer, Attaching, Given, Proposal, Read, Reader, ReplyTo, Request, ResultWait, Topic, WaitOutcome, Watch,
};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::rig::{Rig, SECOND_US};
use crate::support::sending;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const LONG_US: u64 = 3600 * SECOND_US;

/// One caller of each kind that waits without a record in flight.
struct Waiting {
    pull: oneshot::Receiver<Result<Vec<Given>, Error>>,
    result: oneshot::Receiver<Result<WaitOutcome, Error>>,
    lock: crate::locks::Reply,
    channel: Arc<Channel>,
    reader: Reader,
}

/// One caller of each kind that waits for its record.
struct InFlight {
    send: oneshot::Receiver<Answer>,
    pull: oneshot::Receiver<Result<Vec<Given>, Error>>,
    attached: oneshot::Receiver<Result<ConsumerId, Error>>,
}

impl Waiting {
    fn begin(rig: &mut Rig) -> Waiting {
        let items = [SendItem::default()];
        let sent = rig.answer(&Command::Send(sending(NAMESPACE, "others", &items)));
        assert!(sent.result.is_ok(), "{sent:?}");
        let (reply, result) = oneshot::channel();
        let id = MessageId { namespace: NAMESPACE, sequence: sequence_of(&sent) };
        rig.mailbox.push(Request::Await(ResultWait { ticket: 1, id, wait_us: LONG_US, reply })).unwrap();
        let (reply, mut reader) = oneshot::channel();
        let topic = Topic { namespace: NAMESPACE, queue: None };
        rig.mailbox.push(Request::Watch(Box::new(Watch { topic, after: None, reply }))).unwrap();
        let mut held = crate::locks::acquire(rig, 4, 1_000_000, 0);
        assert!(held.try_recv().unwrap().is_ok());
        let lock = crate::locks::acquire(rig, 5, 1_000_000, 100);
        let channel = rig.attach();
        let pull = rig.pull(2, LONG_US);
        rig.settle_down();
        let reader = reader.try_recv().unwrap().unwrap();
        Waiting { pull, result, lock, channel, reader }
    }
}

impl InFlight {
    /// Asks for what needs a record while the journal commits nothing.
    fn begin(rig: &mut Rig) -> InFlight {
        rig.held.store(true, Relaxed);
        let (reply, send) = oneshot::channel();
        let items = [SendItem::default()];
        let command = Command::Send(sending(NAMESPACE, "others", &items));
        rig.mailbox.push(Request::Propose(Proposal::new(&command, ReplyTo::Once(reply)))).unwrap();
        let (reply, attached) = oneshot::channel();
        let attach = Attach {
            namespace: NAMESPACE,
            name: "late",
            queues: &["others"],
            credit: 1,
            lease_ms: 1_000,
            grace_ms: DETACH_GRACE_MS,
        };
        let attaching = Attaching::new(&attach, Arc::default(), reply);
        rig.mailbox.push(Request::Attach(Box::new(attaching))).unwrap();
        let pull = rig.pull_of("new", 3, LONG_US);
        rig.settle_down();
        assert!(rig.shard.in_flight() >= 3);
        InFlight { send, pull, attached }
    }
}

fn sequence_of(answer: &Answer) -> u64 {
    match answer.result {
        Ok(sluice_engine::outcome::Reply::Sent { first, .. }) => first.sequence,
        ref other => panic!("{other:?}"),
    }
}

/// What a reader finds at once.
pub fn heard(reader: &mut Reader) -> Vec<Heard> {
    let mut found = Vec::new();
    loop {
        let next = pin!(reader.next(100)).poll(&mut Context::from_waker(Waker::noop()));
        match next {
            Poll::Ready(Heard::Ended) => {
                found.push(Heard::Ended);
                return found;
            }
            Poll::Ready(other) => found.push(other),
            Poll::Pending => return found,
        }
    }
}

fn ends(reader: &mut Reader) -> bool {
    matches!(heard(reader).last(), Some(Heard::Ended))
}

#[test]
fn a_failed_journal_leaves_nobody_without_an_answer() {
    let mut rig = Rig::new(16);
    let mut waiting = Waiting::begin(&mut rig);
    let mut in_flight = InFlight::begin(&mut rig);
    assert_eq!(in_flight.send.try_recv().unwrap_err(), TryRecvError::Empty);
    rig.failed.store(true, Relaxed);
    assert_eq!(rig.shard.step(), Step::Failed);
    assert_eq!(rig.shard.in_flight(), 0);

    assert_eq!(in_flight.send.try_recv().unwrap().result, Err(Error::OutcomeUnknown {}));
    assert_eq!(in_flight.attached.try_recv().unwrap(), Err(Error::OutcomeUnknown {}));
    assert_eq!(in_flight.pull.try_recv().unwrap().unwrap_err(), Error::ShuttingDown {});
    assert_eq!(waiting.pull.try_recv().unwrap().unwrap_err(), Error::ShuttingDown {});
    assert_eq!(waiting.result.try_recv().unwrap().unwrap_err(), Error::ShuttingDown {});
    assert_eq!(waiting.lock.try_recv().unwrap().unwrap_err(), Error::OutcomeUnknown {});
    assert!(matches!(waiting.channel.take(9, 9), Some(News::Detached(DetachedBy::ShardEnded))));
    assert!(ends(&mut waiting.reader));
    assert_eq!(rig.shard.step(), Step::Failed, "and it stays failed");
}

#[test]
fn a_stop_finishes_what_is_in_flight_and_ends_what_waits() {
    let mut rig = Rig::new(16);
    let mut waiting = Waiting::begin(&mut rig);
    let mut in_flight = InFlight::begin(&mut rig);
    rig.mailbox.push_surely(Request::Stop);
    rig.settle_down();
    assert!(waiting.pull.try_recv().unwrap().unwrap().is_empty(), "at once");
    let seen = waiting.result.try_recv().unwrap().unwrap();
    assert_eq!(seen.state, State::Ready);
    assert_eq!(waiting.lock.try_recv().unwrap().unwrap_err(), Error::OutcomeUnknown {});
    assert_eq!(in_flight.send.try_recv().unwrap_err(), TryRecvError::Empty);

    rig.held.store(false, Relaxed);
    while rig.shard.step() != Step::Stopped {}
    assert!(in_flight.send.try_recv().unwrap().result.is_ok());
    assert!(in_flight.attached.try_recv().unwrap().is_ok());
    assert!(in_flight.pull.try_recv().unwrap().unwrap().is_empty());
    assert!(matches!(waiting.channel.take(9, 9), Some(News::Detached(DetachedBy::Draining))));
    assert!(ends(&mut waiting.reader));
}

#[test]
fn a_read_in_the_line_is_answered_when_the_journal_fails() {
    let mut rig = Rig::new(4_096);
    let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
    // More than one step looks at: each takes longer than a step has for all of them.
    let look = |time: crate::rig::Time, sender: tokio::sync::mpsc::UnboundedSender<bool>| {
        Read(Box::new(move |looking| {
            time.advance(1_000);
            sender.send(looking.is_ok()).unwrap();
        }))
    };
    for _ in 0..3 {
        rig.mailbox.push(Request::Read(look(rig.time.clone(), sender.clone()))).unwrap();
    }
    assert_eq!(rig.shard.step(), Step::Worked);
    rig.failed.store(true, Relaxed);
    assert_eq!(rig.shard.step(), Step::Failed);
    let mut told = Vec::new();
    while let Ok(is_ok) = answers.try_recv() {
        told.push(is_ok);
    }
    assert_eq!(told, [true, false, false]);
}

#[test]
fn a_shard_that_is_dropped_leaves_nobody_without_an_answer() {
    let mut rig = Rig::new(16);
    let mut waiting = Waiting::begin(&mut rig);
    let mut in_flight = InFlight::begin(&mut rig);
    drop(rig);
    assert_eq!(in_flight.send.try_recv().unwrap().result, Err(Error::OutcomeUnknown {}));
    assert_eq!(waiting.pull.try_recv().unwrap().unwrap_err(), Error::ShuttingDown {});
    assert_eq!(waiting.result.try_recv().unwrap().unwrap_err(), Error::ShuttingDown {});
    assert_eq!(waiting.lock.try_recv().unwrap().unwrap_err(), Error::OutcomeUnknown {});
    assert!(matches!(waiting.channel.take(9, 9), Some(News::Detached(DetachedBy::ShardEnded))));
    assert!(ends(&mut waiting.reader));
}
