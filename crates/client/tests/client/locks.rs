//! Locks that a client holds: they are renewed, released, and their loss is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_client::{Client, LockRequest};
use tokio::time::timeout;

use crate::support::{Reply, Request, client, serve, until};

/// Time within which everything here happens, on a busy machine as well.
const SOON: Duration = Duration::from_secs(20);

/// A server with one lock, which grants each claim.
#[derive(Default)]
struct Server {
    /// Number of calls by path.
    calls: BTreeMap<String, u32>,
    /// Ids of the requests that claimed the lock.
    requests: Vec<String>,
    /// True: no renewal is known.
    is_broken: bool,
    /// Number of claims whose connection is closed without an answer.
    breaks: u32,
}

async fn start() -> (Arc<Mutex<Server>>, Client) {
    let server = Arc::new(Mutex::new(Server::default()));
    let asked = Arc::clone(&server);
    let address = serve(move |request| {
        let reply = asked.lock().unwrap().answer(&request);
        async { reply }
    })
    .await;
    (server, client(address))
}

impl Server {
    fn answer(&mut self, request: &Request) -> Reply {
        *self.calls.entry(request.path.clone()).or_default() += 1;
        let grant = r#"{"token":"t","fencing_token":"7","expires_at_ms":1}"#.to_owned();
        let lost = r#"{"error":{"code":"lease_lost","message":"it is over"}}"#.to_owned();
        match request.path.rsplit('/').next() {
            Some("locks") => {
                let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
                self.requests.push(body["request_id"].as_str().unwrap().to_owned());
                if self.breaks > 0 {
                    self.breaks -= 1;
                    return Reply::Break;
                }
                Reply::Json(200, grant)
            }
            Some("renew") if !self.is_broken => Reply::Json(200, grant),
            Some("release") if !self.is_broken => Reply::Json(200, "{}".to_owned()),
            _ => Reply::Json(409, lost),
        }
    }

    fn count(&self, path: &str) -> u32 {
        self.calls.iter().filter(|(called, _)| called.ends_with(path)).map(|(_, count)| count).sum()
    }
}

fn short() -> LockRequest<'static> {
    LockRequest { ttl: Duration::from_millis(600), ..LockRequest::new("k") }
}

#[tokio::test]
async fn a_lock_is_renewed_while_the_work_is_done_and_released_then() {
    let (server, client) = start().await;
    let renewed = Arc::clone(&server);
    let work = |grant: sluice_client::LockGrant| async move {
        until(|| renewed.lock().unwrap().count("/renew") > 1).await;
        grant.fencing_token
    };
    assert_eq!(client.with_lock(&short(), work).await.unwrap(), "7");
    assert_eq!(server.lock().unwrap().count("/release"), 1);
}

#[tokio::test]
async fn work_ends_when_its_lock_is_lost() {
    let (server, client) = start().await;
    server.lock().unwrap().is_broken = true;
    let request = short();
    let never = client.with_lock(&request, |_| std::future::pending::<()>());
    let lost = timeout(SOON, never).await.unwrap().unwrap_err();
    assert_eq!(lost.code(), Some("lease_lost"));
    let held = client.lock(&request).await.unwrap();
    timeout(SOON, held.lost()).await.unwrap();
    assert!(held.is_lost());
    assert_eq!(held.release().await.unwrap_err().code(), Some("lease_lost"));
}

#[tokio::test]
async fn a_lock_that_is_dropped_is_released_wherever_that_is() {
    let (server, client) = start().await;
    let held = client.lock(&short()).await.unwrap();
    std::thread::spawn(move || drop(held)).join().unwrap();
    until(|| server.lock().unwrap().count("/release") == 1).await;
}

#[tokio::test]
async fn a_claim_without_an_answer_is_repeated_under_one_id() {
    let (server, client) = start().await;
    server.lock().unwrap().breaks = 2;
    client.lock_acquire(&short()).await.unwrap();
    client.lock_acquire(&LockRequest { request_id: Some("mine"), ..short() }).await.unwrap();
    let requests = server.lock().unwrap().requests.clone();
    assert_eq!(requests.len(), 4);
    assert!(requests[..3].iter().all(|id| *id == requests[0]) && requests[3] == "mine", "{requests:?}");
}
