//! The counters of a queue tell where each of its messages has remained, and its listings show what they
//! count.

use std::collections::BTreeMap;

use sluice_engine::Engine;
use sluice_engine::id::QueueId;
use sluice_engine::query::{Counters, QueueView, State};

/// Checks that what has come to a queue is there or has left it. `refused`: messages that were acked and are
/// dead letters, since their next step was refused.
fn check_balance(what: &str, counters: &Counters, refused: u64) {
    let here: u64 = counters.states.iter().sum();
    // One that is finished was acked, and is here still.
    let finished = counters.states[State::Done as usize];
    let come = counters.sent + counters.moved_in + refused + finished;
    let gone = counters.acked + counters.dropped + counters.cancelled + counters.moved_out;
    assert_eq!(come, here + gone, "{what}: {counters:?}, {refused} refused");
}

fn check_listing(engine: &Engine, queue: &QueueView) {
    let (mut cursor, mut listed, mut last) = (None, [0u64; State::COUNT], 0);
    loop {
        let page = engine.messages(queue.id, None, cursor, 100);
        for view in &page.items {
            assert!(view.id.sequence > last, "{} is not listed by id", queue.name);
            last = view.id.sequence;
            listed[view.state as usize] += 1;
        }
        assert!(page.next.is_none() || page.next > cursor, "the pages of {} do not go on", queue.name);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, queue.counters.states, "all of {} are listed", queue.name);
}

/// Checks all queues; `refused` by the number of the queue.
pub(super) fn check_queues(engine: &Engine, refused: &BTreeMap<u32, u64>) {
    let mut states = [0; State::COUNT];
    for namespace in engine.namespaces() {
        for queue in engine.queues(namespace.id, "", None, usize::MAX) {
            let QueueId(number) = queue.id;
            check_balance(&queue.name, &queue.counters, refused.get(&number).copied().unwrap_or(0));
            check_listing(engine, &queue);
            let both = states.iter_mut().zip(queue.counters.states);
            both.for_each(|(sum, of_queue)| *sum += of_queue);
        }
    }
    assert_eq!(states, engine.totals().states, "of all queues");
}
