//! Settings of queues and quotas of namespaces, as JSON.

use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, LEASE_MS_MAX, RETAIN_DONE_COUNT_MAX};
use sluice_engine::settings::{
    Backoff, BackoffKind, FAIR_WEIGHT_MAX, FAIR_WEIGHTS_MAX, FairWeights, OnExpire, OrderingRetry,
    QueuePatch, QueueSettings, Quotas,
};

use super::json::{Fault, Object, Read, Reader, push_text};

/// Fields of a backoff.
pub(crate) const BACKOFF_FIELDS: &[&str] = &["kind", "base_ms", "cap_ms", "jitter_percent"];
/// Fields of a queue's settings.
pub(crate) const SETTINGS_FIELDS: &[&str] = &[
    "lease_ms",
    "max_attempts",
    "max_deliveries",
    "backoff",
    "fair_weights",
    "ordering_retry",
    "limit",
    "retain_done_ms",
    "retain_done_count",
    "on_expire",
    "max_messages",
    "max_bytes",
];
/// What a delayed message does to its ordering key.
pub(crate) const ORDERING_RETRIES: &[&str] = &["block", "step_aside"];
/// What becomes of a message that still waits at its end.
pub(crate) const ON_EXPIRE: &[&str] = &["dead_letter", "drop"];
/// Fields of a namespace's quotas.
pub(crate) const QUOTA_FIELDS: &[&str] = &["queues", "messages", "bytes"];
/// Names of the kinds of backoff.
pub(crate) const BACKOFF_KINDS: &[&str] = &["none", "fixed", "linear", "exponential"];

/// Reads a backoff; what is left out takes its default.
pub(crate) fn read_backoff(reader: &mut Reader<'_>) -> Read<Backoff> {
    let mut backoff = Backoff::default();
    reader.object(BACKOFF_FIELDS, |reader, name| {
        match name {
            "kind" => backoff.kind = read_kind(reader)?,
            "base_ms" => backoff.base_ms = reader.integer(0, u64::MAX)?,
            "cap_ms" => backoff.cap_ms = reader.integer(0, u64::MAX)?,
            "jitter_percent" => backoff.jitter_percent = reader.integer(0, 100)? as u8,
            other => return Err(Fault::unknown("field", other, BACKOFF_FIELDS)),
        }
        Ok(())
    })?;
    Ok(backoff)
}

fn read_kind(reader: &mut Reader<'_>) -> Read<BackoffKind> {
    let text = reader.string()?;
    match text.get(reader.scratch()) {
        "none" => Ok(BackoffKind::None),
        "fixed" => Ok(BackoffKind::Fixed),
        "linear" => Ok(BackoffKind::Linear),
        "exponential" => Ok(BackoffKind::Exponential),
        other => Err(Fault::one_of(BACKOFF_KINDS, other)),
    }
}

/// Reads the settings of a queue that are to change; an empty body changes none.
pub(crate) fn read_patch(body: &[u8]) -> Read<QueuePatch> {
    let mut reader = Reader::new(body)?;
    let mut patch = QueuePatch::default();
    if reader.is_blank() {
        return Ok(patch);
    }
    reader.object(SETTINGS_FIELDS, |reader, name| {
        match name {
            "lease_ms" => patch.lease_ms = Some(reader.integer(1, LEASE_MS_MAX)?),
            "max_attempts" => patch.max_attempts = Some(reader.integer(1, u64::from(ATTEMPTS_MAX))? as u16),
            "max_deliveries" => patch.max_deliveries = Some(reader.integer(1, u64::from(u16::MAX))? as u16),
            "backoff" => patch.backoff = Some(read_backoff(reader)?),
            "fair_weights" => patch.fair_weights = Some(read_fair_weights(reader)?),
            "ordering_retry" => patch.ordering_retry = Some(read_ordering_retry(reader)?),
            "max_messages" => patch.max_messages = Some(reader.integer(0, u64::MAX)?),
            "max_bytes" => patch.max_bytes = Some(reader.integer(0, u64::MAX)?),
            "on_expire" => patch.on_expire = Some(read_on_expire(reader)?),
            "limit" => {
                let name = reader.string()?;
                patch.limit = Some(name.get(reader.scratch()).into());
            }
            "retain_done_ms" => patch.retain_done_ms = Some(reader.integer(0, DELAY_MS_MAX)?),
            "retain_done_count" => {
                patch.retain_done_count = Some(reader.integer(0, u64::from(RETAIN_DONE_COUNT_MAX))? as u32);
            }
            other => return Err(Fault::unknown("field", other, SETTINGS_FIELDS)),
        }
        Ok(())
    })?;
    reader.finish()?;
    Ok(patch)
}

fn read_fair_weights(reader: &mut Reader<'_>) -> Read<FairWeights> {
    let mut weights: Vec<(Box<[u8]>, u16)> = Vec::new();
    reader.entries(|reader, key| {
        let key = key.get(reader.scratch()).to_owned();
        let weight = reader.integer(1, u64::from(FAIR_WEIGHT_MAX)).map_err(|fault| fault.inside(&key))?;
        if weights.len() > FAIR_WEIGHTS_MAX {
            return Err(Fault::invalid(format!("too many keys: use at most {FAIR_WEIGHTS_MAX}")));
        }
        weights.push((key.into_bytes().into(), weight as u16));
        Ok(())
    })?;
    let count = weights.len();
    let weights = FairWeights::new(weights);
    if weights.len() < count {
        return Err(Fault::new("duplicate_field", "a key is given twice"));
    }
    Ok(weights)
}

fn read_on_expire(reader: &mut Reader<'_>) -> Read<OnExpire> {
    let text = reader.string()?;
    match text.get(reader.scratch()) {
        "dead_letter" => Ok(OnExpire::DeadLetter),
        "drop" => Ok(OnExpire::Drop),
        other => Err(Fault::one_of(ON_EXPIRE, other)),
    }
}

fn read_ordering_retry(reader: &mut Reader<'_>) -> Read<OrderingRetry> {
    let text = reader.string()?;
    match text.get(reader.scratch()) {
        "block" => Ok(OrderingRetry::Block),
        "step_aside" => Ok(OrderingRetry::StepAside),
        other => Err(Fault::one_of(ORDERING_RETRIES, other)),
    }
}

/// Reads quotas into `quotas`; what is left out keeps its value.
pub(crate) fn read_quotas(reader: &mut Reader<'_>, quotas: &mut QuotaPatch) -> Read<()> {
    reader.object(QUOTA_FIELDS, |reader, name| {
        let value = Some(reader.integer(0, u64::MAX)?);
        match name {
            "queues" => quotas.queues = value,
            "messages" => quotas.messages = value,
            "bytes" => quotas.bytes = value,
            other => return Err(Fault::unknown("field", other, QUOTA_FIELDS)),
        }
        Ok(())
    })
}

/// A change of quotas: what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct QuotaPatch {
    queues: Option<u64>,
    messages: Option<u64>,
    bytes: Option<u64>,
}

impl QuotaPatch {
    /// The quotas `old` with the change made.
    pub(crate) fn apply(self, old: Quotas) -> Quotas {
        Quotas {
            queues: self.queues.unwrap_or(old.queues),
            messages: self.messages.unwrap_or(old.messages),
            bytes: self.bytes.unwrap_or(old.bytes),
        }
    }
}

/// Appends a backoff.
pub(crate) fn write_backoff(o: &mut Object<'_>, backoff: &Backoff) {
    o.object("backoff", |o| {
        let kind = match backoff.kind {
            BackoffKind::None => "none",
            BackoffKind::Fixed => "fixed",
            BackoffKind::Linear => "linear",
            BackoffKind::Exponential => "exponential",
        };
        o.text("kind", kind);
        o.number("base_ms", backoff.base_ms);
        o.number("cap_ms", backoff.cap_ms);
        o.number("jitter_percent", u64::from(backoff.jitter_percent));
    });
}

/// Appends the settings of a queue.
pub(crate) fn write_settings(o: &mut Object<'_>, settings: &QueueSettings) {
    o.object("settings", |o| {
        o.number("lease_ms", settings.lease_ms);
        o.number("max_attempts", u64::from(settings.max_attempts));
        o.number("max_deliveries", u64::from(settings.max_deliveries));
        write_backoff(o, &settings.backoff);
        if !settings.fair_weights.is_empty() {
            let out = o.name("fair_weights");
            out.push(b'{');
            for (at, (key, weight)) in settings.fair_weights.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                push_text(out, &String::from_utf8_lossy(key));
                out.extend_from_slice(format!(":{weight}").as_bytes());
            }
            out.push(b'}');
        }
        let retry = match settings.ordering_retry {
            OrderingRetry::Block => "block",
            OrderingRetry::StepAside => "step_aside",
        };
        o.text("ordering_retry", retry);
        if !settings.limit.is_empty() {
            o.text("limit", &settings.limit);
        }
        if settings.on_expire == OnExpire::Drop {
            o.text("on_expire", "drop");
        }
        for (name, most) in [("max_messages", settings.max_messages), ("max_bytes", settings.max_bytes)] {
            if most > 0 {
                o.number(name, most);
            }
        }
        o.number("retain_done_ms", settings.retain_done_ms);
        o.number("retain_done_count", u64::from(settings.retain_done_count));
    });
}

/// Appends quotas.
pub(crate) fn write_quotas(o: &mut Object<'_>, quotas: &Quotas) {
    o.object("quotas", |o| {
        o.number("queues", quotas.queues);
        o.number("messages", quotas.messages);
        o.number("bytes", quotas.bytes);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        let mut out = Vec::new();
        super::super::json::object(&mut out, |o| write_settings(o, &QueueSettings::default()));
        let body = &out[br#"{"settings":"#.len()..out.len() - 1];
        let patch = read_patch(body).unwrap();
        let default = QueueSettings::default();
        assert_eq!(patch.lease_ms, Some(default.lease_ms));
        assert_eq!(patch.max_attempts, Some(default.max_attempts));
        assert_eq!(patch.max_deliveries, Some(default.max_deliveries));
        assert_eq!(patch.backoff, Some(default.backoff));
        assert_eq!(patch.ordering_retry, Some(default.ordering_retry));
        assert_eq!(read_patch(b" ").unwrap(), QueuePatch::default());
    }

    #[test]
    fn weights_and_limits_come_back_as_they_were_read() {
        let body = br#"{"fair_weights":{"b":2,"a \"":7},"ordering_retry":"step_aside","limit":"shop","on_expire":"drop","max_messages":7,"max_bytes":8}"#;
        let mut settings = QueueSettings::default();
        settings.change(&read_patch(body).unwrap());
        assert_eq!((settings.fair_weights.of(b"a \""), settings.fair_weights.of(b"c")), (7, 1));
        let mut out = Vec::new();
        super::super::json::object(&mut out, |o| write_settings(o, &settings));
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains(r#""fair_weights":{"a \"":7,"b":2},"ordering_retry":"step_aside","limit":"shop","on_expire":"drop","max_messages":7,"max_bytes":8"#),
            "{text}"
        );
        let fault = read_patch(br#"{"fair_weights":{"a":0}}"#).unwrap_err();
        assert_eq!(fault.field, "fair_weights.a");
    }

    #[test]
    fn bad_settings_are_named() {
        let fault = read_patch(br#"{"backoff":{"kind":"cubic"}}"#).unwrap_err();
        assert_eq!(fault.field, "backoff.kind");
        assert_eq!(fault.reason, "expected one of none, fixed, linear, exponential, got \"cubic\"");
        let fault = read_patch(br#"{"lease_ms":0}"#).unwrap_err();
        assert_eq!(fault.reason, "expected a number from 1 to 43200000, got 0");
    }
}
