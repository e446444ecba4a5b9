//! Tests of locks.

use super::views::{List, Show};
use super::*;
use crate::operation::Operation;
use crate::testing::Open;

fn acquire(key: &str, request_id: Option<&str>) -> Acquire {
    let request_id = request_id.map(str::to_owned);
    Acquire { key: Some(key.to_owned()), request_id, ..Acquire::default() }
}

#[tokio::test]
async fn a_lock_is_acquired_shown_renewed_and_released() {
    let server = Open::new();
    let permit = server.permit(Operation::LockAcquire, "");
    let grant = acquire("k", Some("r")).run(&permit).await.unwrap().answer;
    assert_eq!(acquire("k", Some("r")).run(&permit).await.unwrap().answer.token, grant.token);
    for other in [Some("other"), None] {
        assert_eq!(acquire("k", other).run(&permit).await.unwrap_err().code(), "lock_held");
    }
    let shown = Show::default().run(&server.permit(Operation::LockShow, "k")).await.unwrap().answer;
    assert_eq!(shown.0.holders[0].fencing_token, grant.fencing_token);
    let token = Some(grant.token.clone());
    let renewed = Renew { token: token.clone(), ttl_ms: Some(Within::clamped(60_000)) };
    let renewed = renewed.run(&permit).await.unwrap().answer;
    assert!(renewed.token == grant.token && renewed.expires_at_ms > grant.expires_at_ms);
    for _ in 0..2 {
        Release { token: token.clone() }.run(&permit).await.unwrap();
    }
    let lost = Renew { token, ttl_ms: None }.run(&permit).await.unwrap_err();
    assert_eq!(lost.code(), "lease_lost");
    let free = Show::default().run(&server.permit(Operation::LockShow, "k")).await.unwrap().answer;
    assert!(free.0.holders.is_empty() && free.0.key == "k");
}

#[tokio::test]
async fn what_is_missing_or_contradicts_itself_is_told() {
    let server = Open::new();
    let permit = server.permit(Operation::LockAcquire, "");
    let counting = Acquire { mode: Word(Mode::Counting), ..acquire("k", None) };
    let shared =
        Acquire { mode: Word(Mode::Shared), holders: Some(Within::clamped(2)), ..acquire("k", None) };
    let waiting = Acquire { if_absent: Some(true), wait_ms: Some(Within::clamped(5)), ..acquire("k", None) };
    let both = Acquire { keys: Some(vec!["j".to_owned()]), ..acquire("k", None) };
    for (wrong, code) in [
        (Acquire::default(), "missing_field"),
        (counting, "missing_field"),
        (shared, "invalid_argument"),
        (both, "conflicting_fields"),
        (waiting, "conflicting_fields"),
        (acquire("", None), "invalid_argument"),
    ] {
        assert_eq!(wrong.run(&permit).await.unwrap_err().code(), code);
    }
    assert_eq!(Renew::default().run(&permit).await.unwrap_err().code(), "missing_field");
    let bad = Release { token: Some("x".to_owned()) };
    assert_eq!(bad.run(&permit).await.unwrap_err().code(), "invalid_argument");
}

#[tokio::test]
async fn several_locks_are_listed_by_key_and_broken() {
    let server = Open::new();
    let permit = server.permit(Operation::LockAcquire, "");
    let keys = ["a/1", "a/2", "b"].map(str::to_owned).to_vec();
    Acquire { keys: Some(keys), ..Acquire::default() }.run(&permit).await.unwrap();
    let list = List { prefix: Some("a/".to_owned()), limit: Some(Within::clamped(1)), after: None };
    let permit = server.permit(Operation::LockList, "");
    let page = list.clone().run(&permit).await.unwrap().answer;
    assert_eq!((page.locks[0].key.as_str(), page.next.as_deref()), ("a/1", Some("a/1")));
    let page = List { after: page.next, ..list }.run(&permit).await.unwrap().answer;
    assert_eq!((page.locks[0].key.as_str(), page.next), ("a/2", None));
    let broken = Break::default().run(&server.permit(Operation::LockBreak, "b")).await.unwrap();
    assert_eq!(broken.answer.holders, 1);
    let page = List::default().run(&permit).await.unwrap().answer;
    assert!(page.locks.is_empty());
}
