//! Receives in an open transaction: its commit acks what they have received. The leases last as long as the
//! transaction, so that nothing has to renew them.

use std::time::Duration;

use sluice_engine::limits::TRANSACTION_OPERATIONS_MAX;

use super::{Begun, led, lock_open};
use crate::error::CallError;
use crate::hot::receive::{Receive, done};
use crate::hot::{Cleared, Delivered};
use crate::open_transactions::{Enlisted, Open, OpenTransactions, Reserved, lost};
use crate::permit::Permit;
use crate::standing::Standing;

/// Time for which leases last beyond the end of the transaction, in milliseconds: then the messages are given
/// back, and the end of a lease would count as an attempt.
const LEASE_BEYOND_MS: u64 = 5_000;

/// The transaction that a receive belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enlisting<'a> {
    /// The open transaction with this id.
    In(&'a str),
    /// One that is begun when there are messages, and is open for so many milliseconds from then on.
    Begin(u64),
}

/// Messages that were received in a transaction.
#[derive(Debug)]
pub struct Received {
    /// None, when the wait ended without any.
    pub messages: Vec<Delivered>,
    /// The transaction that was begun for them.
    pub begun: Option<Begun>,
}

/// Receives messages, which are in the hands of a transaction from then on.
///
/// # Errors
/// `transaction_lost`: it has ended, also while this has waited. `wrong_state`: a commit of it may take
/// effect. `batch_too_large`: it has no room for more. Those of a receive, and of the begin of a transaction.
pub async fn receive(
    cleared: Cleared<'_>,
    enlisting: Enlisting<'_>,
    receive: Receive<'_>,
    waiting: Option<Standing>,
) -> Result<Received, CallError> {
    cleared.permit().allow_some_work()?;
    let received = match enlisting {
        Enlisting::In(id) => {
            let messages = receive_in(cleared, id, receive, waiting).await;
            messages.map(|messages| Received { messages, begun: None })
        }
        Enlisting::Begin(ttl_ms) => receive_and_begin(cleared, ttl_ms, receive, waiting).await,
    };
    received.map_err(|error| error.naming(cleared.permit().namespace_name()))
}

/// Receives in a transaction that is open. Other calls may work on it during the wait, and leave room for as
/// many messages as may come.
async fn receive_in(
    cleared: Cleared<'_>,
    id: &str,
    receive: Receive<'_>,
    waiting: Option<Standing>,
) -> Result<Vec<Delivered>, CallError> {
    let permit = cleared.permit();
    let (open, held) = lock_open(permit, id).await?;
    open.expect_no_commit()?;
    let reserved = held.reserve(receive.max_messages as usize)?;
    drop(held);
    let (max_messages, lease_ms) = (reserved.messages() as u32, lease_ms(open.time_left()));
    let receiving = cleared.begin_receive(Receive { max_messages, lease_ms, ..receive })?;
    let messages = tokio::select! {
        biased;
        () = open.waits.are_over() => return ended(&open, reserved).await,
        messages = done(receiving, waiting, permit.stopping()) => messages?,
    };
    let Some(enlisted) = enlisted(permit, &messages)? else { return Ok(messages) };
    let mut held = tokio::select! {
        biased;
        () = open.waits.are_over() => {
            drop(enlisted);
            return ended(&open, reserved).await;
        }
        held = open.lock(permit.calls().open_transactions()) => held?,
    };
    open.expect_led(led(permit).await?)?;
    open.expect_no_commit()?;
    drop(reserved);
    held.enlist(enlisted)?;
    Ok(messages)
}

/// The answer of a receive that ends since its transaction is committed or rolled back: no messages, if that
/// was refused and the transaction goes on.
async fn ended(open: &Open, reserved: Reserved) -> Result<Vec<Delivered>, CallError> {
    drop(reserved);
    if open.waits.has_ended().await {
        return Err(lost(&open.id));
    }
    open.expect_no_commit()?;
    Ok(Vec::new())
}

/// Receives, and begins a transaction for the messages.
async fn receive_and_begin(
    cleared: Cleared<'_>,
    ttl_ms: u64,
    receive: Receive<'_>,
    waiting: Option<Standing>,
) -> Result<Received, CallError> {
    let (permit, ttl) = (cleared.permit(), Duration::from_millis(ttl_ms));
    let (all, caller) = (permit.calls().open_transactions(), permit.caller().name());
    // Each delivery that goes back counts among those of its message.
    let max = (receive.max_messages as usize).min(TRANSACTION_OPERATIONS_MAX);
    let max_messages = all.room_for(caller, max)? as u32;
    let receiving = cleared.begin_receive(Receive { max_messages, lease_ms: lease_ms(ttl), ..receive })?;
    let messages = done(receiving, waiting, permit.stopping()).await?;
    let Some(enlisted) = enlisted(permit, &messages)? else { return Ok(Received { messages, begun: None }) };
    let led = led(permit).await?;
    let now_us = permit.node().log_us(led.namespace)?;
    let open = all.begin(led, ttl.min(time_left(&messages, now_us)), caller)?;
    if let Err(error) = enlist(all, &open, enlisted).await {
        all.end(&open.id);
        return Err(error);
    }
    Ok(Received { messages, begun: Some(Begun::of(&open)) })
}

async fn enlist(all: &OpenTransactions, open: &Open, enlisted: Enlisted) -> Result<(), CallError> {
    open.lock(all).await?.enlist(enlisted)
}

/// Time for which a transaction is open that has received messages: it ends before their leases, also where
/// some time has passed since they were delivered. `now_us`: the time of the log, by which leases are told.
fn time_left(messages: &[Delivered], now_us: u64) -> Duration {
    let until_us = messages.iter().map(|message| message.delivery.lease_until_us).min();
    let left_us = until_us.unwrap_or_default().saturating_sub(LEASE_BEYOND_MS * 1_000 + now_us);
    Duration::from_micros(left_us)
}

/// Takes messages that were received, if there are any. Until a transaction has them, they go back when the
/// call ends.
fn enlisted(permit: &Permit<'_>, messages: &[Delivered]) -> Result<Option<Enlisted>, CallError> {
    if messages.is_empty() {
        return Ok(None);
    }
    Ok(Some(Enlisted::new(permit.node(), permit.namespace_id()?, messages)))
}

/// The leases of messages that a transaction receives which is open for so long.
fn lease_ms(open_for: Duration) -> u64 {
    open_for.as_millis() as u64 + LEASE_BEYOND_MS
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::{Pin, pin};
    use std::task::Poll;

    use sluice_engine::id::NamespaceId;

    use super::*;
    use crate::call::Unary as _;
    use crate::operation::Operation as Name;
    use crate::testing::Open as Server;
    use crate::transactions::{Begin, Close, Rollback, close};

    const QUEUES: &[(&str, u16)] = &[("q", 0)];

    fn one(wait: Duration) -> Receive<'static> {
        Receive { queues: QUEUES, max_messages: 1, lease_ms: 0, wait, consumer: "", room: None }
    }

    async fn begin(server: &Server) -> String {
        let begun = Begin::default().run(&server.permit(Name::TransactionBegin, "")).await.unwrap();
        begun.answer.transaction
    }

    async fn received(server: &Server, id: &str, wait: Duration) -> Result<Vec<Delivered>, CallError> {
        let cleared = server.permit(Name::Receive, "q").cleared_by_name().unwrap();
        Ok(receive(cleared, Enlisting::In(id), one(wait), None).await?.messages)
    }

    async fn roll_back(server: &Server, id: &str) {
        Rollback {}.run(&server.permit(Name::TransactionRollback, id)).await.unwrap();
    }

    /// The attempt of a delivery outside of transactions, which is given back. It waits a while.
    async fn attempt(server: &Server) -> Option<u16> {
        let permit = server.permit(Name::Receive, "q");
        let cleared = permit.cleared_by_name().unwrap();
        let receiving = cleared.begin_receive(one(Duration::from_secs(5))).unwrap();
        let delivery = receiving.done().await.unwrap().first()?.delivery;
        let back =
            server.node().give_deliveries_back(permit.namespace_id().unwrap(), &[delivery.receipt]).unwrap();
        assert_eq!(back.done().await.unwrap(), [Ok(())]);
        Some(delivery.attempt)
    }

    /// Polls a call once; true: it has not ended.
    async fn is_pending<T>(call: &mut Pin<&mut impl Future<Output = T>>) -> bool {
        poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await
    }

    /// Polls a call for a while, in which it does not end.
    async fn wait<T>(call: &mut Pin<&mut impl Future<Output = T>>) {
        for _ in 0..100 {
            assert!(is_pending(call).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn what_is_given_back_is_there_when_the_rollback_is_answered() {
        let server = Server::new();
        server.send("q", b"x").await;
        for _ in 0..20 {
            let id = begin(&server).await;
            let messages = received(&server, &id, Duration::ZERO).await.unwrap();
            assert_eq!(messages[0].delivery.attempt, 1);
            roll_back(&server, &id).await;
        }
        assert_eq!(attempt(&server).await, Some(1));
    }

    #[tokio::test]
    async fn a_receive_whose_caller_is_gone_leaves_nothing_with_its_transaction() {
        let server = Server::new();
        let id = begin(&server).await;
        let open = server.calls().open_transactions().find(NamespaceId::DEFAULT, &id).unwrap();
        {
            let mut call = pin!(received(&server, &id, Duration::from_secs(5)));
            wait(&mut call).await;
            assert_eq!(open.waits.reserved(), 1);
        }
        assert_eq!(open.waits.reserved(), 0);
        server.send("q", b"x").await;
        assert_eq!(attempt(&server).await, Some(1));
        assert_eq!(received(&server, &id, Duration::ZERO).await.unwrap().len(), 1);
        roll_back(&server, &id).await;
    }

    #[tokio::test]
    async fn the_time_of_a_transaction_that_is_begun_counts_from_the_delivery() {
        let server = Server::new();
        server.send("q", b"x").await;
        let (permit, ttl) = (server.permit(Name::Receive, "q"), Duration::from_secs(20));
        let cleared = permit.cleared_by_name().unwrap();
        let terms = Receive { lease_ms: lease_ms(ttl), ..one(Duration::ZERO) };
        let messages = cleared.begin_receive(terms).unwrap().done().await.unwrap();
        let late = Duration::from_millis(50);
        tokio::time::sleep(late).await;
        let now_us = server.node().log_us(NamespaceId::DEFAULT).unwrap();
        assert!((ttl / 2..=ttl - late).contains(&time_left(&messages, now_us)));
        // The log need not tell the time of any wall clock.
        let mut of_past = messages;
        of_past[0].delivery.lease_until_us -= now_us - 7;
        let by_the_log = time_left(&of_past, 7);
        assert!((ttl / 2..=ttl - late).contains(&by_the_log), "{by_the_log:?}");
    }

    /// A receive that begins a transaction; its messages, and its id.
    async fn begun(server: &Server, max_messages: u32, wait: Duration) -> Result<Vec<Delivered>, CallError> {
        let cleared = server.permit(Name::Receive, "q").cleared_by_name().unwrap();
        let terms = Receive { max_messages, ..one(wait) };
        Ok(receive(cleared, Enlisting::Begin(20_000), terms, None).await?.messages)
    }

    #[tokio::test]
    async fn no_more_is_delivered_than_there_is_memory_for() {
        let server = Server::new();
        for _ in 0..9 {
            server.send("q", b"x").await;
        }
        let all = server.calls().open_transactions();
        let leave = |messages| all.leave_memory_for(messages);
        leave(5);
        assert_eq!(begun(&server, 1_000, Duration::ZERO).await.unwrap().len(), 5);
        for _ in 0..3 {
            assert_eq!(begun(&server, 1_000, Duration::ZERO).await.unwrap_err().code(), "overloaded");
        }
        leave(4);
        let rest = begun(&server, 1_000, Duration::ZERO).await.unwrap();
        assert_eq!(rest.iter().map(|message| message.delivery.deliveries).collect::<Vec<_>>(), [1; 4]);
        // Others take the memory while one waits.
        leave(4);
        let mut call = pin!(begun(&server, 4, Duration::from_secs(5)));
        assert!(is_pending(&mut call).await);
        leave(0);
        server.send("q", b"x").await;
        assert_eq!(call.await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_comes_while_its_transaction_ends_goes_back() {
        let server = Server::new();
        for way in ["rollback", "end"] {
            let id = begin(&server).await;
            let all = server.calls().open_transactions();
            let mut call = pin!(received(&server, &id, Duration::from_secs(5)));
            assert!(is_pending(&mut call).await);
            // A call works on the transaction when the message comes.
            let permit = server.permit(Name::TransactionClose, &id);
            let (open, held) = tokio::select! {
                biased;
                locked = lock_open(&permit, &id) => locked.unwrap(),
                _ = &mut call => panic!("there is nothing to receive"),
            };
            server.send("q", b"x").await;
            wait(&mut call).await;
            match way {
                "rollback" => super::super::roll_back(&permit, &open, &held.staged).await.unwrap(),
                _ => all.end(&id),
            }
            drop(held);
            assert_eq!(call.await.unwrap_err().code(), "transaction_lost");
            assert_eq!(attempt(&server).await, Some(1), "{way}");
            let id = begin(&server).await;
            assert_eq!(received(&server, &id, Duration::from_secs(5)).await.unwrap().len(), 1);
            let Close::Open(closing) = close(&server.permit(Name::TransactionClose, &id)).await.unwrap()
            else {
                panic!("committed before")
            };
            closing.commit(&server.permit(Name::TransactionClose, &id), &[]).await.unwrap();
        }
    }
}
