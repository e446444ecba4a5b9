//! Schedules that are put: their request carries a message.

use sluice_calls::schedules::{self, EVERY_MS_MIN, Missed, ScheduleSpec, When};
use sluice_calls::{CallError, Permit};
use sluice_engine::limits::{DELAY_MS_MAX, Limits};

use super::send::Batch;
use crate::hot::Answer;
use crate::hot::content::Text;
use crate::hot::options::word;
use crate::hot::source::Source;
use sluice_calls::fault::{Fault, Read};

/// Fields of a schedule that is put.
pub(crate) const SCHEDULE_FIELDS: &[&str] = &["cron", "time_zone", "every_ms", "missed", "queue", "message"];

/// Creates a schedule, or replaces it.
pub(super) async fn put<'b>(permit: &Permit<'_>, source: impl Source<'b>) -> Result<Answer, CallError> {
    let read = Put::read(source, &permit.calls().limits())?;
    let message = &read.message;
    let (headers, tags, plain) = (message.headers(), message.tags(), message.options());
    let steps = message.steps(&headers, &tags, &plain);
    let chains = message.chains(&steps);
    let options = message.chained(plain.clone(), &chains);
    let items = message.items(&headers, &tags, &options);
    let item = items
        .first()
        .ok_or_else(|| Fault::missing("message", "a schedule needs the message that it sends"))?;
    Ok(Answer::Schedule(Box::new(schedules::put(permit, &read.queue, &read.spec, item).await?)))
}

/// A schedule as it comes in.
pub(crate) struct Put<'a> {
    queue: String,
    spec: ScheduleSpec,
    message: Batch<'a>,
}

impl<'a> Put<'a> {
    pub(crate) fn read(mut reader: impl Source<'a>, limits: &Limits) -> Read<Put<'a>> {
        let (mut cron, mut time_zone, mut every_ms, mut queue) = (None, None, None, None);
        let (mut missed, mut message) = (Missed::default(), None);
        reader.object(SCHEDULE_FIELDS, |reader, name| {
            match name {
                "cron" => cron = Some(owned(reader)?),
                "time_zone" => time_zone = Some(owned(reader)?),
                "every_ms" => every_ms = Some(reader.integer(EVERY_MS_MIN, DELAY_MS_MAX)?),
                "queue" => queue = Some(owned(reader)?),
                "missed" => missed = word(reader)?,
                _ => message = Some(Batch::read_one(reader, limits)?),
            }
            Ok(())
        })?;
        let mut message =
            message.ok_or_else(|| Fault::missing("message", "a schedule needs the message that it sends"))?;
        message.finish(reader.finish()?).map_err(|fault| fault.inside("message"))?;
        let when = match (cron, every_ms, time_zone) {
            (Some(_), Some(_), _) => return Err(Fault::conflict("cron", "every_ms")),
            (None, Some(_), Some(_)) => return Err(Fault::conflict("time_zone", "every_ms")),
            (None, None, _) => return Err(Fault::missing("cron", "a schedule needs cron or every_ms")),
            (None, Some(every_ms), None) => When::Every { every_ms },
            (Some(expression), None, time_zone) => {
                When::Cron { expression, time_zone: time_zone.unwrap_or_else(|| "UTC".to_owned()) }
            }
        };
        let queue = queue.ok_or_else(|| Fault::missing("queue", "a schedule sends to a queue"))?;
        Ok(Put { queue, spec: ScheduleSpec { when, missed }, message })
    }
}

fn owned<'a>(reader: &mut impl Source<'a>) -> Read<String> {
    let text: Text<'_> = reader.string()?;
    Ok(text.get(reader.scratch()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    fn read(body: &str) -> Result<ScheduleSpec, String> {
        let put = Reader::new(body.as_bytes()).and_then(|reader| Put::read(reader, &Limits::default()));
        put.map(|put| put.spec).map_err(|fault| format!("{} {}: {}", fault.code, fault.field, fault.reason))
    }

    #[test]
    fn a_schedule_is_read() {
        let body = r#"{"cron":"0 9 * * *","queue":"a","missed":"skip","message":{"payload":"a\"b","headers":{"x":"\u0041"}}}"#;
        let put =
            Reader::new(body.as_bytes()).and_then(|reader| Put::read(reader, &Limits::default())).unwrap();
        let when = When::Cron { expression: "0 9 * * *".into(), time_zone: "UTC".into() };
        assert_eq!(put.spec, ScheduleSpec { when, missed: Missed::Skip });
        let (headers, options) = (put.message.headers(), put.message.options());
        let items = put.message.items(&headers, &[], &options);
        assert_eq!((items[0].payload, items[0].headers), (&b"a\"b"[..], &[("x", "A")][..]));
    }

    #[test]
    fn mistakes_are_named() {
        for (body, expected) in [
            (r#"{"queue":"a","message":{"payload":""}}"#, "missing_field cron"),
            (r#"{"every_ms":1000,"queue":"a"}"#, "missing_field message"),
            (r#"{"every_ms":1000,"message":{"payload":""}}"#, "missing_field queue"),
            (r#"{"every_ms":999}"#, "invalid_argument every_ms"),
            (r#"{"every_ms":1000,"missed":"never"}"#, "invalid_argument missed"),
            (r#"{"every_ms":1000,"queue":"a","message":{}}"#, "missing_field message.payload"),
            (
                r#"{"every_ms":1000,"queue":"a","message":{"payload_base64":"!"}}"#,
                "invalid_argument message.payload_base64",
            ),
            (
                r#"{"every_ms":1000,"cron":"* * * * *","queue":"a","message":{"payload":""}}"#,
                "conflicting_fields",
            ),
            (
                r#"{"every_ms":1000,"time_zone":"UTC","queue":"a","message":{"payload":""}}"#,
                "conflicting_fields",
            ),
        ] {
            let told = read(body).unwrap_err();
            assert!(told.starts_with(expected), "{body}: {told}");
        }
    }
}
