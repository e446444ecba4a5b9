//! Calls that settle deliveries and extend leases.

use std::time::Duration;

use http::Method;

use crate::answers::{self, ItemResult};
use crate::client::Client;
use crate::encode;
use crate::error::ClientError;
use crate::message::{Settle, SettleItem};
use crate::retry::Safety;

impl Client {
    /// Acks one message. A receipt that has settled its message before counts as success.
    pub async fn ack(&self, receipt: &str) -> Result<(), ClientError> {
        self.settle_one(&SettleItem::ack(receipt)).await
    }

    /// Settles one message; the item's error becomes the call's.
    pub async fn settle_one(&self, item: &SettleItem<'_>) -> Result<(), ClientError> {
        only(self.settle(std::slice::from_ref(item)).await?)
    }

    /// Settles messages of any queues of the namespace, with any outcomes. One result per item, in order.
    pub async fn settle(&self, items: &[SettleItem<'_>]) -> Result<Vec<ItemResult>, ClientError> {
        if items.iter().all(|item| item.settle == Settle::Ack && item.add_cost == 0) {
            return self.ack_many(items.iter().map(|item| item.receipt.as_ref())).await;
        }
        self.many("/settle", encode::settle(items), items.len(), Safety::Repeatable).await
    }

    /// Acks messages of any queues of the namespace. One result per receipt, in order.
    pub async fn ack_many<'a>(
        &self,
        receipts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<ItemResult>, ClientError> {
        let mut count = 0;
        let body = encode::receipts(receipts.into_iter().inspect(|_| count += 1));
        self.many("/ack", body, count, Safety::Repeatable).await
    }

    /// Extends one lease, from now; `None`: by the setting of the queue.
    pub async fn extend(&self, receipt: &str, lease: Option<Duration>) -> Result<(), ClientError> {
        only(self.extend_many([(receipt, lease)]).await?)
    }

    /// Extends leases. One result per receipt, in order.
    pub async fn extend_many<'a>(
        &self,
        items: impl IntoIterator<Item = (&'a str, Option<Duration>)>,
    ) -> Result<Vec<ItemResult>, ClientError> {
        let mut count = 0;
        let body = encode::extend(items.into_iter().inspect(|_| count += 1));
        self.many("/extend", body, count, Safety::Repeatable).await
    }

    pub(super) async fn many(
        &self,
        path: &str,
        body: String,
        items: usize,
        safety: Safety,
    ) -> Result<Vec<ItemResult>, ClientError> {
        let call = self.call(Method::POST, self.path(path), body);
        let answer = self.run(call, safety).await?;
        let mut results = answers::results(&answer.body, items)?;
        for result in &mut results {
            if result.error.as_ref().is_some_and(|e| e.code == "already_settled") {
                *result = ItemResult { ok: true, already_settled: true, error: None };
            }
        }
        Ok(results)
    }
}

pub(super) fn only(results: Vec<ItemResult>) -> Result<(), ClientError> {
    match results.into_iter().next() {
        Some(ItemResult { ok: true, .. }) => Ok(()),
        Some(ItemResult { error: Some(e), .. }) => Err(ClientError::Server {
            status: 200,
            code: e.code,
            message: e.message,
            details: e.details,
            retry_after: None,
        }),
        _ => Err(ClientError::Protocol { status: 200, reason: "an item failed without an error".to_owned() }),
    }
}
