//! Between the frames of a session and the types of the client.

use bytes::Bytes;
use serde_json::Value;
use sluice_proto::v1;

use crate::answers::{Delivered, Details, ItemResult, Payload};
use crate::error::ClientError;
use crate::message::{Settle, SettleItem};
use crate::types::ErrorBody;

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn given(bytes: &Bytes) -> Option<String> {
    (!bytes.is_empty()).then(|| text(bytes))
}

/// A message.
pub(crate) fn delivered(message: v1::Delivered) -> Delivered {
    let details = Details {
        correlation_id: given(&message.correlation_id),
        reply_to: given(&message.reply_to),
        tags: message.tags.iter().map(text).collect(),
        checkpoint: message.checkpoint.map(|checkpoint| checkpoint.to_vec()),
        from_queue: given(&message.from_queue),
        reason: given(&message.reason),
    };
    Delivered {
        id: text(&message.id),
        receipt: text(&message.receipt),
        queue: text(&message.queue),
        payload: Payload(message.payload),
        content_type: given(&message.content_type),
        headers: message.headers.iter().map(|header| (text(&header.name), text(&header.value))).collect(),
        priority: message.priority as u8,
        attempt: message.attempt,
        max_attempts: message.max_attempts,
        deliveries: message.deliveries,
        sent_at_ms: message.sent_at_ms,
        lease_until_ms: message.lease_until_ms,
        details: (details != Details::default()).then(|| Box::new(details)),
    }
}

/// A settlement.
pub(crate) fn settlement(item: &SettleItem<'_>) -> v1::Settlement {
    let ms = |delay: &Option<std::time::Duration>| delay.map(|delay| delay.as_millis() as u64);
    let mut settlement = v1::Settlement {
        receipt: Bytes::copy_from_slice(item.receipt.as_bytes()),
        outcome: Bytes::from_static(item.settle.name().as_bytes()),
        add_cost: (item.add_cost > 0).then_some(item.add_cost),
        ..v1::Settlement::default()
    };
    match &item.settle {
        Settle::Ack => {}
        Settle::AckWith(result) => {
            settlement.result = Some(result.bytes.clone().into());
            settlement.result_content_type = result.content_type.clone().map(Bytes::from);
        }
        Settle::Nack { error, delay } => {
            settlement.error = (!error.is_empty()).then(|| error.clone().into());
            settlement.delay_ms = ms(delay);
        }
        Settle::Release { delay } => settlement.delay_ms = ms(delay),
        Settle::Reject { error } => settlement.error = (!error.is_empty()).then(|| error.clone().into()),
    }
    settlement
}

/// Results of the items of a frame.
pub(crate) fn item_results(result: &v1::FrameResult, items: usize) -> Vec<ItemResult> {
    let mut results = vec![ItemResult { ok: true, already_settled: false, error: None }; items];
    for failure in &result.failures {
        let Some(item) = results.get_mut(failure.item as usize) else { continue };
        item.already_settled = failure.already_settled;
        item.ok = failure.already_settled;
        item.error = failure.error.as_ref().map(body_of);
    }
    results
}

fn body_of(error: &v1::Error) -> ErrorBody {
    let details = error.details.iter().map(|(name, value)| (name.clone(), Value::from(value.clone())));
    ErrorBody { code: text(&error.code), message: text(&error.message), details: details.collect() }
}

/// The error of a frame as a whole.
pub(crate) fn error_of(error: &v1::Error) -> ClientError {
    let ErrorBody { code, message, details } = body_of(error);
    let status = match code.as_str() {
        "overloaded" | "queue_full" | "quota_exceeded" | "limit_exceeded" => 429,
        "shutting_down" | "not_leader" | "no_leader" | "in_doubt" | "outcome_unknown" | "journal_failed"
        | "internal" | "disk_full" => 503,
        code if code.ends_with("_not_found") => 404,
        _ => 400,
    };
    ClientError::Server { status, code, message, details, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_failed_is_listed_and_the_rest_is_well() {
        let error = v1::Error { code: "lease_lost".into(), message: "gone".into(), ..v1::Error::default() };
        let failures = vec![
            v1::ItemFailure { item: 0, already_settled: true, error: None },
            v1::ItemFailure { item: 2, already_settled: false, error: Some(error) },
            v1::ItemFailure { item: 9, already_settled: true, error: None },
        ];
        let result = v1::FrameResult { failures, ..v1::FrameResult::default() };
        let results = item_results(&result, 3);
        assert_eq!(
            results.iter().map(|it| (it.ok, it.already_settled)).collect::<Vec<_>>(),
            [(true, true), (true, false), (false, false)]
        );
        assert_eq!(results[2].error.as_ref().unwrap().code, "lease_lost");
    }
}
