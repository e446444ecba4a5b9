//! Locks.

use std::future::Future;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Client, encoded};
use crate::encode::millis;
use crate::error::ClientError;
use crate::locks::{HeldLock, Lock, LockGrant, LockRequest, LockWatch};
use crate::retry::Safety;
use crate::types::parse;

/// Time after which a request that waits has surely reached its server.
const WAS_THERE: Duration = Duration::from_secs(1);

impl Client {
    /// Acquires locks, and leaves their renewal to the caller. A repeat after a lost answer gets the same
    /// grant.
    ///
    /// # Errors
    /// `lock_held`: they were not free in time.
    pub async fn lock_acquire(&self, request: &LockRequest<'_>) -> Result<LockGrant, ClientError> {
        let own = self.idempotency_key();
        let request = LockRequest { request_id: Some(request.request_id.unwrap_or(&own)), ..request.clone() };
        let until = Instant::now() + request.wait.min(LockRequest::WAIT_MAX);
        loop {
            let began_at = Instant::now();
            match self.acquire_once(&request, until.saturating_duration_since(began_at)).await {
                // The time for repeating counts from the loss of a server that was there all the time.
                Err(error)
                    if error.may_have_taken_effect()
                        && began_at.elapsed() >= WAS_THERE
                        && Instant::now() < until => {}
                answer => return answer,
            }
        }
    }

    /// The same, with the time for repeating counted from now on.
    async fn acquire_once(
        &self,
        request: &LockRequest<'_>,
        wait: Duration,
    ) -> Result<LockGrant, ClientError> {
        let mut fields = request.fields();
        fields["wait_ms"] = json!(millis(wait));
        fields["request_id"] = json!(request.request_id);
        if request.with_document {
            fields["with_document"] = json!(true);
        }
        let mut call = self.call(Method::POST, self.path("/locks"), fields.to_string());
        call.timeout = call.timeout.saturating_add(wait);
        let answer = self.run(call, Safety::Repeatable).await?;
        parse(&answer.body)
    }

    /// Acquires locks, which are renewed in the background for as long as they are held.
    ///
    /// # Errors
    /// `lock_held`: they were not free in time.
    pub async fn lock(&self, request: &LockRequest<'_>) -> Result<HeldLock, ClientError> {
        let began_at = Instant::now();
        let grant = self.lock_acquire(request).await?;
        // Who has waited does not know when the grant began: a renewal tells.
        let is_new = began_at.elapsed() < request.ttl / 3;
        let (grant, asked_at) = if is_new {
            (grant, began_at)
        } else {
            let asked_at = Instant::now();
            (self.lock_renew(&grant.token, None).await?, asked_at)
        };
        Ok(HeldLock::hold(self.clone(), grant, request.ttl, asked_at))
    }

    /// Does work while locks are held, and releases them then. The work is ended when they are lost.
    ///
    /// # Errors
    /// `lock_held`: they were not free in time. `lease_lost`: they were lost before the work was done.
    pub async fn with_lock<T, W>(
        &self,
        request: &LockRequest<'_>,
        work: impl FnOnce(LockGrant) -> W,
    ) -> Result<T, ClientError>
    where
        W: Future<Output = T>,
    {
        let held = self.lock(request).await?;
        let done = tokio::select! {
            biased;
            () = held.lost() => None,
            done = work(held.grant().clone()) => Some(done),
        };
        let released = held.release().await;
        let done = done.ok_or_else(ClientError::lost_lock)?;
        released.map(|()| done)
    }

    /// Begins the time of a grant anew, or another time.
    ///
    /// # Errors
    /// `lease_lost`.
    pub async fn lock_renew(&self, token: &str, ttl: Option<Duration>) -> Result<LockGrant, ClientError> {
        let mut fields = json!({ "token": token });
        if let Some(ttl) = ttl {
            fields["ttl_ms"] = json!(millis(ttl));
        }
        let call = self.call(Method::POST, self.path("/grants/renew"), fields.to_string());
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Releases a grant; one that was released before is no error.
    ///
    /// # Errors
    /// `lease_lost`.
    pub async fn lock_release(&self, token: &str) -> Result<(), ClientError> {
        let body = json!({ "token": token }).to_string();
        let call = self.call(Method::POST, self.path("/grants/release"), body);
        self.run(call, Safety::Repeatable).await.map(|_| ())
    }

    /// The lock of a key with its holders and those that wait; one that is free has none.
    pub async fn lock_show(&self, key: &str) -> Result<Lock, ClientError> {
        self.look(self.path(&format!("/locks/{}", encoded(key)))).await
    }

    /// All locks of the namespace whose keys begin with `prefix` and that are held or waited for, by key.
    pub async fn locks(&self, prefix: &str) -> Result<Vec<Lock>, ClientError> {
        self.all_of("locks", prefix).await
    }

    /// A stream of the states of a lock: as it is, and again after each change, with the first 10 holders and
    /// the first 10 of those that wait. States between two that are told may be left out, never the last.
    pub fn lock_watch(&self, key: &str) -> LockWatch {
        LockWatch::new(self.clone(), self.path(&format!("/locks/{}/stream", encoded(key))))
    }

    /// Breaks a lock, whose holders lose it; the number of them.
    pub async fn lock_break(&self, key: &str) -> Result<u64, ClientError> {
        #[derive(Deserialize)]
        struct Broken {
            holders: u64,
        }
        let path = self.path(&format!("/locks/{}", encoded(key)));
        let answer = self.run(self.call(Method::DELETE, path, ""), Safety::Once).await?;
        Ok(parse::<Broken>(&answer.body)?.holders)
    }
}
