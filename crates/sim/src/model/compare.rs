//! Comparison of the engine's state with the model's, through the engine's public reads.

use sluice_engine::Engine;
use sluice_engine::id::{MessageId, QueueId};
use sluice_engine::limits::HISTORY_ATTEMPTS_MAX;
use sluice_engine::query::{MessageView, State};

use super::budgets::compare_budgets;
use super::consumers::compare_consumers;
use super::queues::compare_defaults;
use super::schedules::compare_schedules;
use super::time::TICK_US;
use super::{Checked, Model, ensure};
use super::{Message, MessagePlace, ModelState};

/// Messages in one page of a listing: few, so that paging is tested.
const PAGE: usize = 7;

impl Model {
    /// Checks that the engine's whole readable state equals the model's.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, engine: &Engine) -> Checked {
        let world = &self.world;
        for id in world.queues.keys() {
            compare_queue(world, *id, engine)?;
        }
        for (id, message) in &world.messages {
            compare_message(world, *id, message, engine)?;
        }
        compare_namespaces(world, engine)?;
        compare_deadline(world, engine)?;
        compare_schedules(world, engine)?;
        compare_defaults(world, engine)?;
        compare_consumers(world, engine)?;
        compare_budgets(world, engine)?;
        engine.recount().map_err(|difference| format!("counters are not what a recount gives: {difference}"))
    }
}

fn compare_queue(world: &ModelState, id: QueueId, engine: &Engine) -> Checked {
    let queue = &world.queues[&id];
    let Some(view) = engine.queue(id) else {
        return Err(format!("queue {:?} is lost", queue.name));
    };
    ensure!(view.name == queue.name, "queue {id:?} is called {:?}, not {:?}", view.name, queue.name);
    ensure!(
        view.settings == queue.settings,
        "{:?} has {:?}, not {:?}",
        queue.name,
        view.settings,
        queue.settings
    );
    ensure!(view.created_at_us == queue.created_us, "{:?} was created at {}", queue.name, view.created_at_us);
    let counters = world.counters(id);
    let (mut shown, mut counters) = (view.counters, counters);
    if queue.blocks {
        // Whether a message counts as delayed or as blocked is the engine's choice.
        for counters in [&mut shown, &mut counters] {
            for state in [State::Delayed, State::Blocked] {
                counters.states[State::Ready as usize] +=
                    std::mem::take(&mut counters.states[state as usize]);
            }
        }
    }
    ensure!(shown == counters, "{:?} counts {:?}, the model {counters:?}", queue.name, view.counters);
    world.compare_redrive(id, &view)?;
    compare_listing(world, id, engine)?;
    if world.is_plain(id) {
        return compare_peek(world, id, engine);
    }
    if !world.is_fair(id) {
        return Ok(());
    }
    let (next, first) = (world.next_in_turn(id), engine.peek(id, 1));
    let known = first.first().and_then(|view| world.messages.get(&view.id));
    let same = known.map_or(next.is_empty(), |known| next.contains(&known));
    ensure!(same, "{id:?}: {first:?} stands first in line, and should be one of {next:?}");
    Ok(())
}

fn compare_listing(world: &ModelState, id: QueueId, engine: &Engine) -> Checked {
    let expected: Vec<MessageId> = world.messages_of(id).map(|(id, _)| *id).collect();
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = engine.messages(id, None, cursor, PAGE);
        ensure!(page.items.len() <= PAGE, "a page of {} messages, {PAGE} wanted", page.items.len());
        listed.extend(page.items.iter().map(|view| view.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    ensure!(listed == expected, "{id:?} lists {listed:?}, the model {expected:?}");
    Ok(())
}

/// Checks the first message in line, by priority, then by the order of becoming ready.
fn compare_peek(world: &ModelState, id: QueueId, engine: &Engine) -> Checked {
    let key = |message: &Message| match message.place {
        MessagePlace::Ready { line } => Some((std::cmp::Reverse(message.priority), line)),
        _ => None,
    };
    let mut expected: Vec<_> = world.messages_of(id).filter_map(|(_, message)| key(message)).collect();
    expected.sort_unstable();
    let peeked = engine.peek(id, 10);
    ensure!(
        peeked.len() == expected.len().min(10),
        "{id:?}: {} messages peeked of {}",
        peeked.len(),
        expected.len()
    );
    for (view, expected) in peeked.iter().zip(expected) {
        let found = world.messages.get(&view.id).and_then(key);
        ensure!(found == Some(expected), "{id:?}: {} stands in line at {found:?}, not {expected:?}", view.id);
    }
    Ok(())
}

fn compare_message(world: &ModelState, id: MessageId, message: &Message, engine: &Engine) -> Checked {
    let view = engine.message(id).map_err(|error| format!("message {id} is lost ({error}): {message:?}"))?;
    let settings = &world.queues[&message.queue].settings;
    let backoff = message.backoff.unwrap_or(settings.backoff);
    let same = view.queue == message.queue
        && world.agrees(message, view.state)
        && view.priority == message.priority
        && view.attempts == message.attempts
        && view.cost == message.keys.cost
        && view.deliveries == message.deliveries
        && view.max_attempts == message.max_attempts(settings)
        && view.sent_at_us == message.sent_us
        && view.backoff == backoff
        && view.blob == message.blob;
    ensure!(same, "the engine shows {view:?}, the model has {message:?}");
    compare_place(&view, message, engine.time_us())?;
    message.compare_results(&view)?;
    message.changes.compare(&view)?;
    message.compare_flow(id, engine)?;
    message.compare_end(&view)?;
    message.compare_holder(&view)?;
    compare_history(&view, message)
}

fn compare_place(view: &MessageView, message: &Message, now_us: u64) -> Checked {
    if view.state == State::Blocked {
        return Ok(());
    }
    ensure!(
        *view.from_queue == *message.origin_queue(),
        "the engine shows {view:?}, the model has {message:?}"
    );
    let origin = message.origin.as_ref().map(|origin| origin.reason);
    let (deadline, token, reason) = match message.place {
        MessagePlace::Delayed { until_us } => (Some(until_us), None, origin),
        MessagePlace::Ready { .. } | MessagePlace::Done { .. } => (None, None, origin),
        MessagePlace::Leased { token, until_us, .. } => (Some(until_us), Some(token), origin),
        MessagePlace::Held { reason } => {
            (Some(message.changes.due_us).filter(|due_us| *due_us > now_us), None, Some(reason))
        }
        MessagePlace::Dead { reason } => (None, None, Some(reason)),
    };
    let shown = (view.deadline_us, view.receipt.map(|receipt| receipt.token), view.reason);
    ensure!(
        shown == (deadline, token, reason),
        "message {} shows {shown:?}, the model {:?}",
        view.id,
        message.place
    );
    Ok(())
}

fn compare_history(view: &MessageView, message: &Message) -> Checked {
    if message.history.len() > HISTORY_ATTEMPTS_MAX {
        return Ok(());
    }
    let same = view.history.len() == message.history.len()
        && view.history.iter().zip(&message.history).all(|(shown, kept)| {
            shown.number == kept.number
                && shown.end == kept.end
                && shown.started_at_us == kept.started_us
                && shown.error.map_or(0, |blob| blob.len) == kept.error_len
        });
    ensure!(same, "message {} shows history {:?}, the model {:?}", view.id, view.history, message.history);
    Ok(())
}

fn compare_namespaces(world: &ModelState, engine: &Engine) -> Checked {
    for (id, namespace) in &world.namespaces {
        let Some(view) = engine.namespace(*id) else {
            return Err(format!("namespace {:?} is lost", namespace.name));
        };
        let (messages, bytes) = world.usage(*id);
        let queues = world.queues.values().filter(|queue| queue.namespace == *id).count() as u64;
        ensure!(
            (view.queues, view.messages, view.bytes) == (queues, messages, bytes),
            "namespace {:?} shows {view:?}, the model {queues} queues, {messages} messages, {bytes} bytes",
            namespace.name
        );
        ensure!(view.quotas == namespace.quotas, "{:?} has {:?}", namespace.name, view.quotas);
        let (name, shard) = (&namespace.name, namespace.shard);
        ensure!((&view.name, view.shard) == (name, shard), "{name:?} on shard {shard} shows {view:?}");
    }
    Ok(())
}

/// Checks the engine's next deadline: a timer that is too late would leave a message for ever.
fn compare_deadline(world: &ModelState, engine: &Engine) -> Checked {
    let timed = |id: &MessageId| {
        engine.message(*id).is_ok_and(|view| matches!(view.state, State::Delayed | State::Leased))
    };
    let first = world.messages.iter().filter_map(|(id, message)| match message.place {
        MessagePlace::Delayed { until_us } | MessagePlace::Leased { until_us, .. } => {
            timed(id).then_some(until_us)
        }
        _ => None,
    });
    if let Some(first) = first.chain(world.first_end_us()).min() {
        let next = engine.next_deadline();
        // A message may have been sent held with its end already past: the next tick ends it.
        let latest = first.max(world.now_us + 1).next_multiple_of(TICK_US);
        ensure!(
            next.is_some_and(|next| next <= latest),
            "next deadline is {next:?}, a message waits for {first}"
        );
    }
    Ok(())
}
