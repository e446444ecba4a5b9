//! Through the node: requests in a shard's mailbox, its thread, completions in a mailbox of the caller's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sluice_engine::command::{Command, Send};
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::Limits;
use sluice_node::mailbox::{Mailbox, YIELDS_BEFORE_SLEEP};
use sluice_node::shard::request::{Completion, Proposal, Pull, PullReply, ReplyTo, Request};
use sluice_node::{Durability, Node, Options};

use sluice_bench_rows::rig::{QUEUES, ack_of, usual_message};
use sluice_bench_rows::stats::per;

/// Messages that are sent and not yet acked, at most.
pub(super) const IN_FLIGHT: u64 = 64;
/// Room in a mailbox for all that can be on its way at once, with some to spare.
const MAILBOX: usize = 1_024;
/// Wait of one pull for a message.
const PULL_WAIT_US: u64 = 100_000;

/// The result of a sustained run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sustained {
    pub(super) sent: u64,
    pub(super) acked: u64,
    pub(super) per_s: f64,
}

fn node() -> Result<Node, String> {
    let options = Options {
        data_dir: None,
        shards: 1,
        durability: Durability::Os,
        cache_bytes: 0,
        limits: Limits::default(),
        mailbox_requests: 65_536,
        mailbox_bytes: 256 << 20,
        waiting_receives: MAILBOX,
        events: Default::default(),
        reserve_bytes: 0,
        low_water_bytes: 0,
        accept_clock_jump: false,
        movable_time: false,
        encryption: Default::default(),
        key_source: None,
    };
    Node::start(options).map_err(|error| error.to_string())
}

fn stop(node: &Node) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(node.shutdown(Duration::from_secs(10))).map_err(|error| error.to_string())
}

/// One producer and one consumer thread; every message is a request of its own, at most [`IN_FLIGHT`]
/// messages are unacknowledged.
pub(super) fn run(duration: Duration) -> Result<Sustained, String> {
    let node = node()?;
    let shard = node.mailbox(NamespaceId::DEFAULT).map_err(|error| error.to_string())?;
    let acked = Arc::new(AtomicU64::new(0));
    let sent_in_all = Arc::new(AtomicU64::new(u64::MAX));
    let start = Instant::now();
    let consumer = {
        let (shard, acked, sent_in_all) = (shard.clone(), Arc::clone(&acked), Arc::clone(&sent_in_all));
        std::thread::spawn(move || consume(&shard, &acked, &sent_in_all))
    };
    let produced = produce(&shard, &acked, start + duration);
    sent_in_all.store(produced.clone().unwrap_or(0), Ordering::Release);
    let consumed = consumer.join().map_err(|_| "the consumer thread failed".to_owned())?;
    let seconds = start.elapsed().as_secs_f64();
    stop(&node)?;
    let sent = produced?;
    consumed?;
    let acked = acked.load(Ordering::Acquire);
    Ok(Sustained { sent, acked, per_s: acked as f64 / seconds })
}

fn produce(shard: &Mailbox<Request>, acked: &AtomicU64, until: Instant) -> Result<u64, String> {
    let item = [usual_message()];
    let send = Command::Send(Send {
        namespace: NamespaceId::DEFAULT,
        queue: QUEUES[0],
        idempotency_key: b"",
        request_digest: 0,
        items: &item,
    });
    let mut sent = 0;
    loop {
        if sent - acked.load(Ordering::Acquire) >= IN_FLIGHT {
            // Going on at every single ack would only take the processor away from the one who acks.
            while sent - acked.load(Ordering::Acquire) > IN_FLIGHT / 2 {
                if Instant::now() >= until {
                    return Ok(sent);
                }
                std::thread::yield_now();
            }
        }
        push(shard, Request::Propose(Proposal::new(&send, ReplyTo::Nobody)));
        sent += 1;
        if sent % 256 == 0 && Instant::now() >= until {
            return Ok(sent);
        }
    }
}

/// Keeps as many pulls waiting as messages may be in flight; each gives one message, which is acked.
fn consume(shard: &Mailbox<Request>, acked: &AtomicU64, sent_in_all: &AtomicU64) -> Result<(), String> {
    let mail: Mailbox<Completion> = Mailbox::new(MAILBOX);
    mail.own();
    let queues: Arc<[_]> = [(QUEUES[0].into(), 0)].into();
    let mut ticket = 0;
    let mut pull = || {
        ticket += 1;
        push(shard, Request::Pull(Box::new(one_message(ticket, &queues, &mail))));
    };
    for _ in 0..IN_FLIGHT {
        pull();
    }
    while acked.load(Ordering::Relaxed) < sent_in_all.load(Ordering::Acquire) {
        let Some(completion) = mail.pop() else {
            // It is never idle for long, and sleeping would make the shard wake it for every single message.
            std::thread::yield_now();
            continue;
        };
        match completion {
            Completion::Given(_, given) => {
                for message in given.map_err(|error| error.to_string())? {
                    let items = [ack_of(message.delivery.receipt)];
                    let ack = Command::Settle { namespace: NamespaceId::DEFAULT, items: &items };
                    push(shard, Request::Propose(Proposal::new(&ack, ReplyTo::Mail(mail.clone(), 0))));
                }
                pull();
            }
            Completion::Answer(_, answer) => {
                answer.result.map_err(|error| error.to_string())?;
                if let Some(Err(error)) = answer.results.into_iter().find(Result::is_err) {
                    return Err(error.to_string());
                }
                acked.fetch_add(1, Ordering::Release);
            }
        }
    }
    Ok(())
}

fn one_message(ticket: u64, queues: &Arc<[(Box<str>, u16)]>, mail: &Mailbox<Completion>) -> Pull {
    Pull {
        ticket,
        namespace: NamespaceId::DEFAULT,
        queues: Arc::clone(queues),
        max_messages: 1,
        max_bytes: u32::MAX,
        lease_ms: 0,
        wait_us: PULL_WAIT_US,
        consumer: "".into(),
        room: None,
        reply: PullReply::Mail(mail.clone(), ticket),
    }
}

/// Puts a request into the mailbox; a full one is the shard's way to say that it is behind.
fn push(shard: &Mailbox<Request>, mut request: Request) {
    while let Err(back) = shard.push(request) {
        request = back;
        std::thread::yield_now();
    }
}

/// Sends from several threads at once, each with at most [`IN_FLIGHT`] unanswered. Nanoseconds per message.
pub(super) fn send_in_parallel(threads: u64, messages: u64) -> Result<f64, String> {
    let node = node()?;
    let shard = node.mailbox(NamespaceId::DEFAULT).map_err(|error| error.to_string())?;
    let failed = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                if send_answered(&shard, messages / threads).is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    let ns = per(start.elapsed().as_nanos() as f64, messages / threads * threads);
    stop(&node)?;
    if failed.load(Ordering::Relaxed) { Err("a send was refused".to_owned()) } else { Ok(ns) }
}

fn send_answered(shard: &Mailbox<Request>, messages: u64) -> Result<(), String> {
    let mail: Mailbox<Completion> = Mailbox::new(MAILBOX);
    mail.own();
    let item = [usual_message()];
    let send = Command::Send(Send {
        namespace: NamespaceId::DEFAULT,
        queue: QUEUES[0],
        idempotency_key: b"",
        request_digest: 0,
        items: &item,
    });
    let (mut sent, mut answered) = (0, 0);
    while answered < messages {
        while sent < messages && sent - answered < IN_FLIGHT {
            push(shard, Request::Propose(Proposal::new(&send, ReplyTo::Mail(mail.clone(), sent))));
            sent += 1;
        }
        match mail.pop() {
            Some(Completion::Answer(_, answer)) => {
                answer.result.map_err(|error| error.to_string())?;
                answered += 1;
            }
            Some(Completion::Given(..)) => return Err("an answer to nothing that was asked".to_owned()),
            None => mail.sleep(YIELDS_BEFORE_SLEEP, Some(Duration::from_millis(10)), || false),
        }
    }
    Ok(())
}
