//! Settling messages and extending leases.

use sluice_engine::blob::BlobHead;
use sluice_engine::command::{SettleItem, Settlement};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, Receipt};
use sluice_engine::query::AttemptEnd;

use super::MessagePlace;
use super::item::code;
use super::{Apply, Checked, ensure};

impl Apply<'_> {
    pub(super) fn settle(&mut self, namespace: NamespaceId, items: &[SettleItem<'_>]) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        self.succeeds()?;
        self.one_result_each(items.len())?;
        let mut blobs = 0;
        for (number, item) in items.iter().enumerate() {
            blobs += u32::from(!item.error.is_empty());
            let len = item.result.map(|result| BlobHead::len(result.content_type, &[]) + result.bytes.len());
            let result = len.map(|len| self.blob_of_record(&mut blobs, len));
            if self.expect_result(number, namespace, item.receipt)? {
                self.settle_one(item, result)?;
            }
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, namespace: NamespaceId, items: &[(Receipt, u64)]) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        self.succeeds()?;
        self.one_result_each(items.len())?;
        for (number, (receipt, lease_ms)) in items.iter().enumerate() {
            if self.may_extend(number, namespace, *receipt)? {
                self.extend_one(*receipt, *lease_ms);
            }
        }
        Ok(())
    }

    pub(super) fn one_result_each(&self, items: usize) -> Checked {
        let results = self.outcome.results.len();
        ensure!(results == items, "{results} results for {items} items");
        Ok(())
    }

    /// Checks an item's result against the receipt; returns true when the receipt holds its message.
    fn expect_result(&self, number: usize, namespace: NamespaceId, receipt: Receipt) -> Result<bool, String> {
        let expected = self.standing(namespace, receipt);
        let got = code(&self.outcome.results[number]);
        ensure!(expected.contains(&got), "receipt {receipt} got {got}, not {}", expected.join(" or "));
        Ok(got == "ok")
    }

    /// Checks an item's result against the receipt; returns true when its lease may be extended.
    pub(super) fn may_extend(
        &self,
        number: usize,
        namespace: NamespaceId,
        receipt: Receipt,
    ) -> Result<bool, String> {
        let holds = self.standing(namespace, receipt) == ["ok"];
        if !holds || !self.is_cancelled(receipt.id) {
            return self.expect_result(number, namespace, receipt);
        }
        let got = code(&self.outcome.results[number]);
        ensure!(got == "cancelled", "receipt {receipt} of a cancelled message got {got}");
        Ok(false)
    }

    /// Codes that this receipt may get now; more than one where it was forged.
    pub(super) fn standing(&self, namespace: NamespaceId, receipt: Receipt) -> &'static [&'static str] {
        if receipt.id.namespace != namespace {
            return &["invalid_argument"];
        }
        match self.world.messages.get(&receipt.id).map(|message| message.place) {
            Some(MessagePlace::Leased { token, until_us, .. })
                if token == receipt.token
                    && until_us > self.now_us
                    && self.world.given.contains(&receipt) =>
            {
                &["ok"]
            }
            _ if self.world.settled.contains(&receipt) => &["already_settled"],
            _ if self.world.given.contains(&receipt) => &["lease_lost"],
            _ if self.world.outlived.contains(&receipt) => {
                &["lease_lost", "message_not_found", "already_settled"]
            }
            _ => &["lease_lost", "message_not_found"],
        }
    }

    pub(super) fn settle_one(&mut self, item: &SettleItem<'_>, result: Option<BlobRef>) -> Checked {
        let id = item.receipt.id;
        let error_len = item.error.len() as u32;
        self.add_cost(id, item.add_cost);
        if !matches!(item.settlement, Settlement::GiveBack { .. }) {
            self.world.settled.insert(item.receipt);
        }
        if self.is_cancelled(id) {
            self.remove_cancelled(id);
            return Ok(());
        }
        match item.settlement {
            Settlement::Ack => self.finish(id, result)?,
            Settlement::Nack { delay_ms } => {
                self.total(id, |totals| totals.nacked += 1);
                self.end_attempt(id, AttemptEnd::Nacked, error_len);
                self.retry(id, delay_ms);
            }
            Settlement::Release { delay_ms } | Settlement::GiveBack { delay_ms } => {
                self.release(id, delay_ms, error_len);
            }
            Settlement::Reject => {
                self.total(id, |totals| totals.rejected += 1);
                self.end_attempt(id, AttemptEnd::Rejected, error_len);
                self.die(id, "rejected");
            }
        }
        Ok(())
    }

    pub(super) fn release(&mut self, id: MessageId, delay_ms: u64, error_len: u32) {
        self.total(id, |totals| totals.released += 1);
        self.end_attempt(id, AttemptEnd::Released, error_len);
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        message.attempts -= 1;
        if message.deliveries >= self.world.queues[&message.queue].settings.max_deliveries {
            return self.die(id, "max_deliveries");
        }
        self.wait(id, delay_ms * 1_000, delay_ms * 1_000);
    }

    pub(super) fn extend_one(&mut self, receipt: Receipt, lease_ms: u64) {
        let Some(message) = self.world.messages.get_mut(&receipt.id) else { return };
        let queue_ms = self.world.queues[&message.queue].settings.lease_ms;
        let lease_ms = if lease_ms == 0 { queue_ms } else { lease_ms };
        if let MessagePlace::Leased { until_us, .. } = &mut message.place {
            *until_us = self.now_us + lease_ms * 1_000;
        }
        self.world.keep(receipt.id);
    }
}
