//! Checks of receives, settles and reports that do not look at the state.

use crate::command::{Receive, ReportItem, SettleItem, Settlement};
use crate::error::Error;
use crate::limit::COST_MAX;
use crate::limits::{
    CHECKPOINT_BYTES_MAX, DELAY_MS_MAX, ERROR_TEXT_BYTES_MAX, LEASE_MS_MAX, Limits, NAME_BYTES_MAX,
    PROGRESS_NOTE_BYTES_MAX, RECEIVE_QUEUES_MAX, RESULT_BYTES_MAX,
};
use crate::rules::{
    at_most, at_most_of, between, between_of, check_bytes, check_content_type, check_items, invalid,
    name_rule,
};

pub(crate) fn check_receive(receive: &Receive<'_>, limits: &Limits) -> Result<(), Error> {
    between("max", u64::from(receive.max_messages), 1, u64::from(limits.receive_messages))?;
    at_most("lease_ms", receive.lease_ms, LEASE_MS_MAX)?;
    at_most_of("bytes", "consumer", receive.consumer.len() as u64, NAME_BYTES_MAX as u64)?;
    between_of("queues", "queues", receive.queues.len() as u64, 1, RECEIVE_QUEUES_MAX as u64)?;
    for (name, _) in receive.queues {
        name_rule("queue", name)?;
    }
    let weighted = receive.queues.iter().filter(|(_, weight)| *weight > 0).count();
    if weighted > 0
        && weighted < receive.queues.len()
        && let Some((name, _)) = receive.queues.iter().find(|(_, weight)| *weight == 0)
    {
        let reason =
            format!("queue {name:?} has none, others have: give every queue a weight of 1 to 65535, or none");
        return Err(invalid("weight", reason));
    }
    Ok(())
}

pub(crate) fn check_settle(items: &[SettleItem<'_>], limits: &Limits) -> Result<(), Error> {
    check_items("items", items.len(), limits)?;
    let bytes = |item: &SettleItem<'_>| item.error.len() + item.result.map_or(0, |result| result.bytes.len());
    check_bytes("bytes of error texts and results", items.iter().map(bytes).sum(), limits)?;
    for item in items {
        at_most_of("bytes", "error", item.error.len() as u64, ERROR_TEXT_BYTES_MAX as u64)?;
        at_most("add_cost", item.add_cost.into(), COST_MAX.into())?;
        if let Some(result) = &item.result {
            check_content_type("result_content_type", result.content_type)?;
            at_most_of("bytes", "result", result.bytes.len() as u64, RESULT_BYTES_MAX as u64)?;
            if item.settlement != Settlement::Ack {
                return Err(invalid("result", "only an ack takes one: leave it out".into()));
            }
        }
        match item.settlement {
            Settlement::Nack { delay_ms: Some(delay_ms) }
            | Settlement::Release { delay_ms }
            | Settlement::GiveBack { delay_ms } => {
                at_most("delay_ms", delay_ms, DELAY_MS_MAX)?;
            }
            Settlement::Ack | Settlement::Nack { delay_ms: None } | Settlement::Reject => {}
        }
    }
    Ok(())
}

pub(crate) fn check_report(items: &[ReportItem<'_>], limits: &Limits) -> Result<(), Error> {
    check_items("items", items.len(), limits)?;
    let bytes = |item: &ReportItem<'_>| {
        item.progress.map_or(0, |progress| progress.note.len()) + item.checkpoint.map_or(0, <[u8]>::len)
    };
    check_bytes("bytes of notes and checkpoints", items.iter().map(bytes).sum(), limits)?;
    for item in items {
        at_most("lease_ms", item.lease_ms, LEASE_MS_MAX)?;
        at_most("add_cost", item.add_cost.into(), COST_MAX.into())?;
        if let Some(progress) = &item.progress {
            at_most("progress.percent", u64::from(progress.percent), 100)?;
            at_most_of("bytes", "progress.note", progress.note.len() as u64, PROGRESS_NOTE_BYTES_MAX as u64)?;
        }
        if let Some(checkpoint) = item.checkpoint {
            at_most_of("bytes", "checkpoint", checkpoint.len() as u64, CHECKPOINT_BYTES_MAX as u64)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{MessageId, NamespaceId, Receipt};

    #[test]
    fn error_texts_together_are_bounded() {
        let id = MessageId { namespace: NamespaceId::DEFAULT, sequence: 1 };
        let error = "e".repeat(ERROR_TEXT_BYTES_MAX);
        let item = SettleItem {
            receipt: Receipt { id, token: 1, tag: 0 },
            settlement: Settlement::Reject,
            error: &error,
            result: None,
            add_cost: 0,
        };
        let limits = Limits::default();
        let most = limits.batch_bytes as usize / ERROR_TEXT_BYTES_MAX;
        assert_eq!(check_settle(&vec![item; most], &limits), Ok(()));
        let refused = check_settle(&vec![item; most + 1], &limits);
        assert!(
            matches!(refused, Err(Error::BatchTooLarge { what: "bytes of error texts and results", .. })),
            "{refused:?}"
        );
    }
}
