//! Promises to holders of messages: a receipt counts until the lease or the time of grace is over, and a
//! consumer that comes back goes on with it under a new lease.

use sluice_engine::Error;
use sluice_engine::id::{ConsumerId, Receipt};

use super::calls::CONSUMER_LEASE_MS;
use super::holding::Hold;
use super::judge::Judge;
use super::promised::End;
use crate::model::Checked;

impl Judge {
    pub(super) fn held_with(&mut self, receipt: &Receipt) -> Option<&mut Hold> {
        self.holds.get_mut(&receipt.id).filter(|hold| hold.receipt == *receipt)
    }

    /// Receipts of what these consumers hold and nobody has tried to ack.
    pub(super) fn held_by(&self, consumers: &[ConsumerId]) -> Vec<Receipt> {
        let is_theirs = |hold: &&Hold| hold.holder.is_some_and(|holder| consumers.contains(&holder));
        let held = self.holds.values().filter(is_theirs).map(|hold| hold.receipt);
        held.filter(|receipt| !self.ack_tried.contains_key(&receipt.id)).collect()
    }

    /// Takes in which receipts a consumer goes on with.
    pub(super) fn is_resumed(
        &mut self,
        consumer: ConsumerId,
        receipts: &[Receipt],
        result: Result<Vec<Result<(), Error>>, Error>,
        begun_us: u64,
        now_us: u64,
    ) -> Checked {
        if let Err(Error::ConsumerNotFound { .. }) = result {
            // The next leadership began before it came to this.
            return Ok(());
        }
        self.outcome(&result)?;
        for (receipt, result) in receipts.iter().zip(result.unwrap_or_default()) {
            self.settled(&result)?;
            if result.is_err() {
                self.is_lost(receipt, 0, now_us)?;
                continue;
            }
            self.stats.resumed += 1;
            let until = End::after(begun_us, CONSUMER_LEASE_MS * 1_000);
            if let Some(hold) = self.held_with(receipt) {
                hold.is_resumed(consumer, until);
            }
        }
        Ok(())
    }

    /// A receipt was refused as one of a lease that is over; its message was tried to be acked so often.
    pub(super) fn is_lost(&self, receipt: &Receipt, acks: u32, now_us: u64) -> Checked {
        let is_this = |hold: &&Hold| hold.receipt == *receipt;
        let Some(hold) = self.holds.get(&receipt.id).filter(is_this) else { return Ok(()) };
        let tried = self.ack_tried.get(&receipt.id).copied().unwrap_or_default();
        match self.consumers.early_us(hold, &self.starts, now_us) {
            early_us if early_us > 0 && tried <= acks => {
                Err(format!("{} was lost {early_us} us before the end of its lease", receipt.id))
            }
            _ => Ok(()),
        }
    }
}
