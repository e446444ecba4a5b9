//! Transactions: operations that are done together, among them messages to send and deliveries to settle.

use sluice_calls::documents::patch::KeyedPatch;
use sluice_calls::documents::{KeyedCheck, KeyedDelete, KeyedPut};
use sluice_calls::fault::{Fault, Read};
use sluice_calls::locks::{AcquireAtOnce, Release};
use sluice_calls::transactions::{self, Operation};
use sluice_calls::{CallError, Permit};
use sluice_engine::command::{QueueItem, SendItem, SettleItem};
use sluice_engine::limits::{Limits, TRANSACTION_OPERATIONS_MAX};

use super::send::Batch;
use super::settle::Settlements;
use super::source::Source;
use crate::hot::Answer;
use crate::hot::content::Text;

/// Fields of a transaction.
pub(crate) const TRANSACTION_FIELDS: &[&str] = &["operations"];
/// Fields of an operation, of which it has one.
pub(crate) const OPERATION_FIELDS: &[&str] =
    &["send", "settle", "put", "patch", "delete", "acquire", "release", "check"];

/// Does operations together.
pub(super) async fn commit<'b>(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let read = Operations::read(source, &permit.calls().limits());
    let placed = |fault| CallError::from(fault).of_operation(|_| None);
    let read = read.map_err(placed)?;
    let (headers, tags, plain) = (read.batch.headers(), read.batch.tags(), read.batch.options());
    let steps = read.batch.steps(&headers, &tags, &plain);
    let chains = read.batch.chains(&steps);
    let options = read.batch.chained(plain.clone(), &chains);
    let items = read.batch.items(&headers, &tags, &options);
    let settled = read.settled().map_err(placed)?;
    let operations = read.operations(&items, &settled);
    let committed = transactions::commit(permit, idempotency_key, &operations).await?;
    Ok(Answer::Committed(Box::new(committed)))
}

/// An operation as it comes in.
#[derive(Debug)]
enum Given {
    Send,
    Settle,
    Put(Box<KeyedPut>),
    Patch(Box<KeyedPatch>),
    Delete(Box<KeyedDelete>),
    Check(Box<KeyedCheck>),
    Acquire(Box<AcquireAtOnce>),
    Release(Box<Release>),
}

/// The operations of a request. Messages and settlements are in lists of their own, in order.
#[derive(Debug, Default)]
pub(crate) struct Operations<'a> {
    given: Vec<Given>,
    batch: Batch<'a>,
    queues: Vec<Text<'a>>,
    settlements: Settlements<'a>,
}

impl<'a> Operations<'a> {
    pub(crate) fn read(mut reader: impl Source<'a>, limits: &Limits) -> Read<Operations<'a>> {
        let mut read = Operations::default();
        reader.object(TRANSACTION_FIELDS, |reader, _| {
            reader.array(|reader, at| {
                if at == TRANSACTION_OPERATIONS_MAX {
                    let most = TRANSACTION_OPERATIONS_MAX;
                    return Err(Fault::invalid(format!("too many operations: use at most {most}")));
                }
                read.one(reader, at, limits)
            })
        })?;
        if read.given.is_empty() {
            return Err(Fault::missing("operations", "expected at least one operation"));
        }
        let scratch = reader.finish()?;
        let places = read.places(|given| matches!(given, Given::Settle));
        read.settlements.finish(scratch.clone()).map_err(|(at, fault)| {
            fault.inside("settle").at(places.get(at).copied().unwrap_or_default()).inside("operations")
        })?;
        read.batch.finish(scratch)?;
        Ok(read)
    }

    fn one(&mut self, reader: &mut impl Source<'a>, at: usize, limits: &Limits) -> Read<()> {
        let mut first = None;
        reader.object(OPERATION_FIELDS, |reader, name| {
            if let Some(first) = first.replace(name) {
                return Err(Fault::conflict(first, name));
            }
            let given = match name {
                "send" => {
                    self.queues.push(self.batch.read_for_queue(reader, at, limits)?);
                    Given::Send
                }
                "settle" => {
                    self.settlements.read_one(reader)?;
                    Given::Settle
                }
                "put" => Given::Put(reader.value()?),
                "patch" => Given::Patch(reader.value()?),
                "delete" => Given::Delete(reader.value()?),
                "check" => Given::Check(reader.value()?),
                "acquire" => Given::Acquire(reader.value()?),
                _ => Given::Release(reader.value()?),
            };
            self.given.push(given);
            Ok(())
        })?;
        match first {
            Some(_) => Ok(()),
            None => {
                let names = OPERATION_FIELDS.join(", ");
                Err(Fault::new("missing_field", format!("an operation is one of {names}")))
            }
        }
    }

    /// The places of some operations.
    fn places(&self, is_one: impl Fn(&Given) -> bool) -> Vec<usize> {
        (0..self.given.len()).filter(|at| is_one(&self.given[*at])).collect()
    }

    /// The settlements as the engine takes them.
    fn settled(&self) -> Read<Vec<SettleItem<'_>>> {
        let (items, refused) = self.settlements.items();
        let Some((at, error)) = refused.into_iter().next() else { return Ok(items) };
        let place = self.places(|given| matches!(given, Given::Settle))[at];
        Err(Box::<Fault>::from(error).inside("receipt").inside("settle").at(place).inside("operations"))
    }

    fn operations<'o>(
        &'o self,
        items: &'o [SendItem<'o>],
        settled: &'o [SettleItem<'o>],
    ) -> Vec<Operation<'o>> {
        let queues = self.queues.iter().map(|queue| self.batch.text(*queue));
        let mut messages = queues.zip(items).map(|(queue, item)| QueueItem { queue, item: item.clone() });
        let mut settled = settled.iter();
        let operation = |given: &'o Given| {
            Some(match given {
                Given::Send => Operation::Send(messages.next()?),
                Given::Settle => Operation::Settle(*settled.next()?),
                Given::Put(put) => Operation::Put(put),
                Given::Patch(patch) => Operation::Patch(patch),
                Given::Delete(delete) => Operation::Delete(delete),
                Given::Check(check) => Operation::Check(check),
                Given::Acquire(acquire) => Operation::Acquire(acquire),
                Given::Release(release) => Operation::Release(release),
            })
        };
        self.given.iter().filter_map(operation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    fn read(body: &str) -> Result<Vec<String>, String> {
        let told = |fault: Box<Fault>| format!("{} {}: {}", fault.code, fault.field, fault.reason);
        let read = Reader::new(body.as_bytes()).and_then(|it| Operations::read(it, &Limits::default()));
        let read = read.map_err(told)?;
        let (headers, options) = (read.batch.headers(), read.batch.options());
        let items = read.batch.items(&headers, &[], &options);
        let settled = read.settled().map_err(told)?;
        let shown = |operation: &Operation<'_>| match operation {
            Operation::Send(QueueItem { queue, item }) => format!("send {queue} {:?}", item.payload),
            Operation::Settle(item) => format!("settle {:?} {:?}", item.settlement, item.error),
            Operation::Put(_) => "put".to_owned(),
            Operation::Patch(_) => "patch".to_owned(),
            Operation::Delete(_) => "delete".to_owned(),
            Operation::Check(_) => "check".to_owned(),
            Operation::Acquire(_) => "acquire".to_owned(),
            Operation::Release(_) => "release".to_owned(),
        };
        Ok(read.operations(&items, &settled).iter().map(shown).collect())
    }

    const RECEIPT: &str = "0000008000000020000g000000040001lakf0983cu240";

    #[test]
    fn operations_are_read_in_their_order() {
        let body = format!(
            r#"{{"operations":[{{"put":{{"key":"k","content":"x"}}}},{{"send":{{"queue":"a","payload":"\u0031"}}}},
            {{"settle":{{"receipt":"{RECEIPT}","outcome":"nack","error":"\u0065"}}}},{{"release":{{"token":"t"}}}},
            {{"send":{{"payload_base64":"/w==","queue":"b"}}}},{{"acquire":{{"key":"k"}}}},{{"delete":{{"key":"k"}}}},
            {{"patch":{{"key":"k","increment":[{{"pointer":"/n"}}]}}}},{{"check":{{"key":"k","if_absent":true}}}}]}}"#
        );
        let expected = [
            "put",
            "send a [49]",
            "settle Nack { delay_ms: None } \"e\"",
            "release",
            "send b [255]",
            "acquire",
            "delete",
            "patch",
            "check",
        ];
        assert_eq!(read(&body).unwrap(), expected);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let many = format!(r#"{{"operations":[{}{{}}]}}"#, r#"{"delete":{"key":"k"}},"#.repeat(1_000));
        let settle = |receipt: &str| {
            format!(
                r#"{{"operations":[{{"delete":{{}}}},{{"settle":{{"receipt":"{receipt}","outcome":"ack","result_base64":"?"}}}}]}}"#
            )
        };
        for (body, expected) in [
            ("{}", "missing_field operations: expected at least one operation"),
            (r#"{"operations":[]}"#, "missing_field operations: expected at least one operation"),
            (r#"{"operations":[{}]}"#, "missing_field operations[0]: an operation is one of send,"),
            (
                r#"{"operations":[{"put":{"content":""},"delete":{}}]}"#,
                "conflicting_fields operations[0].delete: put and delete",
            ),
            (r#"{"operations":[{"ack":{}}]}"#, "unknown_field operations[0].ack: unknown field"),
            (
                r#"{"operations":[{"send":{"payload":""}}]}"#,
                "missing_field operations[0].send.queue: say which queue",
            ),
            (
                r#"{"operations":[{"delete":{}},{"send":{"queue":"a","payload_base64":"?"}}]}"#,
                "invalid_argument operations[1].send.payload_base64:",
            ),
            (&settle(RECEIPT), "invalid_argument operations[1].settle.result_base64:"),
            (&settle("x").replace('?', ""), "invalid_receipt operations[1].settle.receipt:"),
            (
                r#"{"operations":[{"put":{"if_version":0}}]}"#,
                "invalid_argument operations[0].put.if_version:",
            ),
            (&many, "invalid_argument operations[1000]: too many operations"),
        ] {
            let told = read(body).unwrap_err();
            assert!(told.starts_with(expected), "{body}: {told}");
        }
    }
}
