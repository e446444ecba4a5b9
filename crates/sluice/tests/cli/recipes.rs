//! The recipes of docs/transactions.md, as they stand there, while their workers crash at times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sluice_client::{Client, DocumentPut, Job, Message, Stop, Summary, Work, WorkError};
use tokio::sync::mpsc;

use crate::support::Server;
use crate::transactional::{client, content, patient_queue, send, waiting, worker};

/// Adds a payment to its account. The payload is `payment account amount`, such as `p17 ann 20`.
async fn book(job: Job, work: Work) -> Result<(), WorkError> {
    let order = String::from_utf8(job.message.payload.0.to_vec())?;
    let [payment, account, amount] = order.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("{order:?} is no payment").into());
    };
    let (payment, account) = (format!("payments/{payment}"), format!("accounts/{account}"));
    if work.get(&payment).await?.is_some() {
        return Ok(()); // sent twice
    }
    let balance = work.get(&account).await?.unwrap_or_else(|| b"0".to_vec());
    let balance: u64 = String::from_utf8(balance)?.parse()?;
    work.put(&account, (balance + amount.parse::<u64>()?).to_string())?;
    let month = Duration::from_secs(30 * 24 * 3_600);
    work.put_with(&payment, &DocumentPut { ttl: Some(month), ..DocumentPut::new(order.as_bytes()) })?;
    Ok(())
}

/// Takes one of what is free; `false`: nothing is.
async fn take(work: &Work, key: &str) -> Result<bool, WorkError> {
    let free = work.get(key).await?.ok_or_else(|| format!("{key} is missing"))?;
    let free: u32 = String::from_utf8(free)?.parse()?;
    if free > 0 {
        work.put(key, (free - 1).to_string())?;
    }
    Ok(free > 0)
}

/// First step: a seat on the flight. The payload of each step is the number of the trip.
async fn reserve_seat(job: Job, work: Work) -> Result<(), WorkError> {
    let trip = &job.message.payload.0;
    let state = if take(&work, "flight/seats").await? { "seat" } else { "no seat" };
    if state == "seat" {
        work.send("rooms", Message::new(trip))?;
    }
    work.put(&format!("trips/{}", std::str::from_utf8(trip)?), state)?;
    Ok(())
}

/// Second step: a room in the hotel. Where there is none, the first step is undone.
async fn reserve_room(job: Job, work: Work) -> Result<(), WorkError> {
    let trip = &job.message.payload.0;
    let state = if take(&work, "hotel/rooms").await? { "booked" } else { "no room" };
    let next = if state == "booked" { "tickets" } else { "seats.return" };
    work.send(next, Message::new(trip))?;
    work.put(&format!("trips/{}", std::str::from_utf8(trip)?), state)?;
    Ok(())
}

/// Undoes the first step.
async fn return_seat(job: Job, work: Work) -> Result<(), WorkError> {
    let seats = work.get("flight/seats").await?.ok_or("flight/seats is missing")?;
    let seats: u32 = String::from_utf8(seats)?.parse()?;
    work.put("flight/seats", (seats + 1).to_string())?;
    work.put(&format!("trips/{}", std::str::from_utf8(&job.message.payload.0)?), "given up")?;
    Ok(())
}

/// Stores an order and tells of it; `false`: it was there before.
async fn place(client: &Client, order: &str, text: &str) -> Result<bool, WorkError> {
    let place = |work: Work| async move {
        let key = format!("orders/{order}");
        if work.get(&key).await?.is_some() {
            return Ok(false);
        }
        work.put(&key, text)?;
        work.send("orders.placed", Message::new(order.as_bytes()))?;
        Ok(true)
    };
    Ok(client.transact(place).await?.0)
}

/// The state that follows when nothing happens, and after how many milliseconds.
fn when_nothing_happens(state: &str) -> Option<(&'static str, u64)> {
    match state {
        "placed" => Some(("reminded", 300)),
        "reminded" => Some(("expired", 300)),
        _ => None,
    }
}

/// Enters a state, and sets its timer.
fn enter(work: &Work, order: &str, state: &str) -> Result<(), WorkError> {
    work.put(&format!("orders/{order}"), state)?;
    if let Some((_, delay_ms)) = when_nothing_happens(state) {
        let timer = format!("{order} {state}");
        work.send("timers", Message { delay_ms: Some(delay_ms), ..Message::new(timer.as_bytes()) })?;
    }
    Ok(())
}

/// Goes on when a timer ends; one of a state that the order has left changes nothing.
async fn time_is_over(job: Job, work: Work) -> Result<(), WorkError> {
    let timer = String::from_utf8(job.message.payload.0.to_vec())?;
    let (order, state) = timer.split_once(' ').ok_or("this is no timer")?;
    let current = work.get(&format!("orders/{order}")).await?;
    if current.as_deref() == Some(state.as_bytes())
        && let Some((next, _)) = when_nothing_happens(state)
    {
        if next == "reminded" {
            work.send("mail", Message::new(timer.as_bytes()))?;
        }
        enter(&work, order, next)?;
    }
    Ok(())
}

/// Notes that an order was paid; `false`: it is too late.
async fn pay(client: &Client, order: &str) -> Result<bool, WorkError> {
    let pay = |work: Work| async move {
        let state = work.get(&format!("orders/{order}")).await?.ok_or("there is no such order")?;
        let in_time = when_nothing_happens(std::str::from_utf8(&state)?).is_some();
        if in_time {
            enter(&work, order, "paid")?;
        }
        Ok(in_time)
    };
    Ok(client.transact(pay).await?.0)
}

/// Works until the queue is empty. A third of the handlers panic when all is staged, and nothing is left of
/// those.
async fn work_off<Fut>(
    client: &Client,
    queue: &str,
    handler: impl Fn(Job, Work) -> Fut + Send + Sync + 'static,
) -> Summary
where
    Fut: Future<Output = Result<(), WorkError>> + Send + 'static,
{
    let runs = Arc::new(AtomicU32::new(1));
    let crashing = move |job: Job, work: Work| {
        let (done, runs) = (handler(job, work), Arc::clone(&runs));
        async move {
            done.await?;
            assert!(runs.fetch_add(1, Ordering::Relaxed) % 3 != 0, "crashed on purpose");
            Ok(())
        }
    };
    let (events, _) = mpsc::unbounded_channel();
    worker(client, queue).transactional(Stop::new(), crashing, events).await.unwrap()
}

#[tokio::test]
async fn a_payment_counts_once_however_often_it_comes() {
    let server = Server::start();
    let client = client(&server);
    patient_queue(&client, "payments").await;
    // Each is sent twice, as by a sender that has lost the answer and has no idempotency key.
    for payment in (0..20).chain(0..20) {
        send(&client, "payments", [format!("p{payment} {} 5", ["ann", "bob"][payment % 2])]).await;
    }
    let summary = work_off(&client, "payments", book).await;
    assert_eq!(summary.acked, 40, "{summary:?}");
    assert!(summary.nacked > 5, "{summary:?}");
    for account in ["accounts/ann", "accounts/bob"] {
        assert_eq!(content(&client, account).await.as_deref(), Some("50"), "{account}");
    }
    send(&client, "payments", ["nonsense".to_owned()]).await;
    client
        .queue_set(
            "payments",
            &sluice_client::QueueChange { max_attempts: Some(1), ..Default::default() },
            false,
        )
        .await
        .unwrap();
    assert_eq!(work_off(&client, "payments", book).await.nacked, 1);
    let dead = client.dead("payments", None, 1).await.unwrap();
    assert!(format!("{dead:?}").contains("is no payment"), "{dead:?}");
}

#[tokio::test]
async fn a_trip_has_seat_and_room_or_neither() {
    const TRIPS: u32 = 12;
    let server = Server::start();
    let client = client(&server);
    for (key, free) in [("flight/seats", "10"), ("hotel/rooms", "6")] {
        client.document_put(key, &DocumentPut::new(free.as_bytes())).await.unwrap();
    }
    for queue in ["trips", "rooms", "seats.return"] {
        patient_queue(&client, queue).await;
    }
    send(&client, "trips", (0..TRIPS).map(|trip| trip.to_string())).await;
    assert_eq!(work_off(&client, "trips", reserve_seat).await.acked, 12);
    assert_eq!(work_off(&client, "rooms", reserve_room).await.acked, 10);
    assert_eq!(work_off(&client, "seats.return", return_seat).await.acked, 4);
    let mut states = Vec::new();
    for trip in 0..TRIPS {
        states.extend(content(&client, &format!("trips/{trip}")).await);
    }
    let count = |state: &str| states.iter().filter(|found| *found == state).count();
    assert_eq!((count("booked"), count("given up"), count("no seat")), (6, 4, 2), "{states:?}");
    assert_eq!(content(&client, "flight/seats").await.as_deref(), Some("4"));
    assert_eq!(content(&client, "hotel/rooms").await.as_deref(), Some("0"));
    assert_eq!(waiting(&client, "tickets").await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_told_of_once_if_it_is_stored() {
    let server = Server::start();
    let client = client(&server);
    // Many place the same orders at the same time.
    let placing: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { place(&client, &(n % 5).to_string(), "2 books").await.unwrap() })
        })
        .collect();
    let mut new = 0;
    for placed in placing {
        new += u32::from(placed.await.unwrap());
    }
    assert_eq!(new, 5);
    assert_eq!(waiting(&client, "orders.placed").await, ["0", "1", "2", "3", "4"]);
    assert_eq!(content(&client, "orders/3").await.as_deref(), Some("2 books"));
}

#[tokio::test]
async fn an_order_goes_on_by_itself_until_it_is_paid() {
    let server = Server::start();
    let client = client(&server);
    patient_queue(&client, "timers").await;
    for order in ["early", "late", "never"] {
        client.transact(|work| async move { enter(&work, order, "placed") }).await.unwrap();
    }
    assert!(pay(&client, "early").await.unwrap());
    let state = async |order: &str, expected: &str| {
        for _ in 0..500 {
            if content(&client, &format!("orders/{order}")).await.as_deref() == Some(expected) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{order} does not become {expected}");
    };
    let stop = Stop::new();
    let (working, stopped) = (client.clone(), stop.clone());
    let timers = tokio::spawn(async move {
        while !stopped.is_stopped() {
            work_off(&working, "timers", time_is_over).await;
        }
    });
    state("late", "reminded").await;
    let in_time = pay(&client, "late").await.unwrap();
    state("never", "expired").await;
    assert!(!pay(&client, "never").await.unwrap());
    stop.stop();
    timers.await.unwrap();
    assert_eq!(content(&client, "orders/early").await.as_deref(), Some("paid"));
    let late = if in_time { "paid" } else { "expired" };
    assert_eq!(content(&client, "orders/late").await.as_deref(), Some(late));
    assert_eq!(waiting(&client, "mail").await, ["late placed", "never placed"]);
    let counts = client.queue("timers").await.unwrap().counts;
    assert_eq!((counts.ready, counts.delayed, counts.leased), (0, 0, 0), "no timer is left: {counts:?}");
}

/// Each piece of Rust in the recipes of the page is a part of this file.
#[test]
fn the_page_has_the_recipes_as_they_are_here() {
    let page = include_str!("../../../../docs/transactions.md");
    let recipes = page.split("\n## Recipes\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let pieces: Vec<&str> =
        recipes.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(pieces.len() >= 4, "{pieces:?}");
    for piece in pieces {
        assert!(include_str!("recipes.rs").contains(piece), "not in recipes.rs:\n{piece}");
    }
}
