//! Fields that records and snapshots share.

use crate::limits::Limits;
use crate::settings::{Backoff, BackoffKind, Quotas};
use crate::wire::{Put, Reader};

pub(crate) fn write_backoff(out: &mut Vec<u8>, backoff: &Backoff) {
    out.raw(&backoff_bytes(backoff));
}

/// Bytes of a backoff.
pub(crate) const BACKOFF_BYTES: usize = 18;

pub(crate) fn backoff_bytes(backoff: &Backoff) -> [u8; BACKOFF_BYTES] {
    let mut bytes = [0; BACKOFF_BYTES];
    bytes[0] = match backoff.kind {
        BackoffKind::None => 0,
        BackoffKind::Fixed => 1,
        BackoffKind::Linear => 2,
        BackoffKind::Exponential => 3,
    };
    bytes[1] = backoff.jitter_percent;
    bytes[2..10].copy_from_slice(&backoff.base_ms.to_le_bytes());
    bytes[10..].copy_from_slice(&backoff.cap_ms.to_le_bytes());
    bytes
}

pub(crate) fn read_backoff(reader: &mut Reader<'_>) -> Option<Backoff> {
    let kind = match reader.u8()? {
        0 => BackoffKind::None,
        1 => BackoffKind::Fixed,
        2 => BackoffKind::Linear,
        3 => BackoffKind::Exponential,
        _ => return None,
    };
    Some(Backoff { jitter_percent: reader.u8()?, kind, base_ms: reader.u64()?, cap_ms: reader.u64()? })
}

pub(crate) fn write_quotas(out: &mut Vec<u8>, quotas: &Quotas) {
    out.u64(quotas.queues);
    out.u64(quotas.messages);
    out.u64(quotas.bytes);
}

pub(crate) fn read_quotas(reader: &mut Reader<'_>) -> Option<Quotas> {
    Some(Quotas { queues: reader.u64()?, messages: reader.u64()?, bytes: reader.u64()? })
}

pub(crate) fn write_limits(out: &mut Vec<u8>, limits: &Limits) {
    out.u32(limits.payload_bytes);
    out.u32(limits.headers);
    out.u32(limits.headers_bytes);
    out.u32(limits.batch_items);
    out.u32(limits.batch_bytes);
    out.u32(limits.receive_messages);
    out.u32(limits.queues);
    out.u32(limits.namespaces);
    out.u64(limits.messages);
    out.u32(limits.idempotency_keys);
    out.u64(limits.idempotency_window_ms);
    out.bool(limits.auto_create);
}

pub(crate) fn read_limits(reader: &mut Reader<'_>) -> Option<Limits> {
    Some(Limits {
        payload_bytes: reader.u32()?,
        headers: reader.u32()?,
        headers_bytes: reader.u32()?,
        batch_items: reader.u32()?,
        batch_bytes: reader.u32()?,
        receive_messages: reader.u32()?,
        queues: reader.u32()?,
        namespaces: reader.u32()?,
        messages: reader.u64()?,
        idempotency_keys: reader.u32()?,
        idempotency_window_ms: reader.u64()?,
        auto_create: reader.bool()?,
    })
}
