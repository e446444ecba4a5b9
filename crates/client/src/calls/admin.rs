//! Namespaces, status, backup: what belongs to the server, not to one namespace.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::transport::Download;
use crate::types::{Keys, Namespace, QuotaChange, TestTime, parse};

impl Client {
    /// The namespaces by name; with `all` also `$sys`, the server's own.
    pub async fn namespaces(&self, all: bool) -> Result<Vec<Namespace>, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            namespaces: Vec<Namespace>,
        }
        Ok(self.look::<Page>(format!("/v1/namespaces?all={all}")).await?.namespaces)
    }

    /// One namespace.
    pub async fn namespace(&self, name: &str) -> Result<Namespace, ClientError> {
        self.look(namespace_path(name)).await
    }

    /// Creates a namespace, or sets the quotas of one that exists; on the shard given or one of the server's
    /// choice. Tells whether it is new.
    pub async fn namespace_create(
        &self,
        name: &str,
        quotas: QuotaChange,
        shard: Option<u32>,
    ) -> Result<(Namespace, bool), ClientError> {
        let mut body = json!({ "quotas": quotas });
        if let Some(shard) = shard {
            body["shard"] = json!(shard);
        }
        let call = self.call(Method::PUT, namespace_path(name), body.to_string());
        let answer = self.run(call, Safety::Repeatable).await?;
        Ok((parse(&answer.body)?, answer.status == 201))
    }

    /// Changes the quotas of a namespace.
    pub async fn namespace_set(&self, name: &str, quotas: QuotaChange) -> Result<Namespace, ClientError> {
        let body = json!({ "quotas": quotas }).to_string();
        let answer =
            self.run(self.call(Method::PATCH, namespace_path(name), body), Safety::Repeatable).await?;
        parse(&answer.body)
    }

    /// Deletes a namespace; with `force` its queues and messages too.
    pub async fn namespace_delete(&self, name: &str, force: bool) -> Result<(), ClientError> {
        let path = format!("{}?force={force}", namespace_path(name));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    /// Metrics of the server, in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let answer = self.run(self.call(Method::GET, "/metrics".to_owned(), ""), Safety::Repeatable).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Status of the server, as `docs/api.md` describes it.
    pub async fn status(&self) -> Result<Value, ClientError> {
        self.get("/v1/status".to_owned()).await
    }

    /// Time of a server that runs with `sluice serve --test`.
    pub async fn test_time(&self) -> Result<TestTime, ClientError> {
        self.get("/v1/test/time".to_owned()).await
    }

    /// Moves the time of a server that runs with `sluice serve --test` forward, by whole milliseconds.
    /// Returns when everything that is due by then is done.
    pub async fn test_time_advance(&self, by: Duration) -> Result<TestTime, ClientError> {
        let body = json!({ "advance_ms": u64::try_from(by.as_millis()).unwrap_or(u64::MAX) }).to_string();
        let call = self.call(Method::POST, "/v1/test/time".to_owned(), body);
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// Root keys of the server, with the files that are encrypted under each.
    pub async fn keys(&self) -> Result<Keys, ClientError> {
        self.get("/v1/admin/keys".to_owned()).await
    }

    /// Lets the server encrypt what it writes from now on under a new root key.
    pub async fn rotate_keys(&self) -> Result<Keys, ClientError> {
        let call = self.call(Method::POST, "/v1/admin/keys/rotate".to_owned(), "");
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// A consistent copy of everything, taken while the server works. Restore it with `sluice restore`.
    pub async fn backup(&self) -> Result<Download, ClientError> {
        let mut call = self.call(Method::GET, "/v1/admin/backup".to_owned(), "");
        call.timeout = Duration::MAX;
        self.open_again(&call).await
    }
}

fn namespace_path(name: &str) -> String {
    format!("/v1/namespaces/{}", encoded(name))
}
