//! Transactions: operations that are done together, among them messages to send and deliveries to settle.

use sluice_calls::attachments::{KeyedAttach, KeyedDetach};
use sluice_calls::documents::patch::KeyedPatch;
use sluice_calls::documents::{KeyedCheck, KeyedDelete, KeyedPut};
use sluice_calls::fault::{Fault, Read};
use sluice_calls::locks::{AcquireAtOnce, Release};
use sluice_calls::transactions::{self, Close, Closing, Kept, KeyedGet, Operation};
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
pub(crate) const OPERATION_FIELDS: &[&str] = &[
    "send",
    "settle",
    "put",
    "patch",
    "delete",
    "acquire",
    "release",
    "check",
    "get",
    "attach",
    "delete_attachment",
    NAMESPACE,
];
/// The field of an operation that is none.
const NAMESPACE: &str = "namespace";

/// The use of operations that are read.
enum Use<'k> {
    /// Does those of one request together, under an idempotency key.
    Commit(&'k [u8]),
    /// Stages those of one request.
    Stage(Kept<'k>),
    /// Commits those of all requests, as they were staged.
    Close(&'k Closing),
}

/// Does operations together.
pub(super) async fn commit<'b>(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let read = Operations::read(source, &permit.calls().limits()).map_err(placed)?;
    run(permit, &[read], Use::Commit(idempotency_key)).await
}

/// Stages operations of an open transaction.
pub(super) async fn stage<'b>(permit: &Permit<'_>, source: impl Source<'b>) -> Result<Answer, CallError> {
    let kept = source.whole();
    let read = Operations::read(source, &permit.calls().limits()).map_err(placed)?;
    run(permit, &[read], Use::Stage(kept)).await
}

/// Commits an open transaction; its requests came over the protocol of this one.
pub(super) async fn close<'b, S: Source<'b>>(
    permit: &Permit<'_>,
    mut source: S,
) -> Result<Answer, CallError> {
    if !source.is_blank() {
        source.object(&[], |_, _| Ok(()))?;
        source.finish()?;
    }
    let closing = match transactions::close(permit).await? {
        Close::Open(closing) => closing,
        Close::Before(committed) => return Ok(Answer::Committed(committed)),
    };
    let limits = permit.calls().limits();
    let read = closing.requests().map(|kept| Operations::read(S::again(kept)?, &limits));
    let read = read.collect::<Read<Vec<_>>>().map_err(placed)?;
    run(permit, &read, Use::Close(&closing)).await
}

/// The error of a fault that is inside of an operation.
fn placed(fault: Box<Fault>) -> CallError {
    CallError::from(fault).of_operation(|_| None)
}

/// Makes the operations of requests, as the engine takes them, and uses them.
async fn run(permit: &Permit<'_>, read: &[Operations<'_>], then: Use<'_>) -> Result<Answer, CallError> {
    let batch = |at: usize| &read[at].batch;
    let headers = each(read, |at| batch(at).headers());
    let tags = each(read, |at| batch(at).tags());
    let plain = each(read, |at| batch(at).options());
    let steps = each(read, |at| batch(at).steps(&headers[at], &tags[at], &plain[at]));
    let chains = each(read, |at| batch(at).chains(&steps[at]));
    let options = each(read, |at| batch(at).chained(plain[at].clone(), &chains[at]));
    let items = each(read, |at| batch(at).items(&headers[at], &tags[at], &options[at]));
    let settled = read.iter().map(Operations::settled).collect::<Read<Vec<_>>>().map_err(placed)?;
    let operations = each(read, |at| read[at].operations(&items[at], &settled[at]));
    if !matches!(then, Use::Commit(_)) {
        read.iter().try_for_each(Operations::expect_own).map_err(placed)?;
    }
    Ok(match then {
        Use::Commit(key) => {
            let committed = transactions::commit(permit, key, &operations[0], &read[0].namespaces).await?;
            Answer::Committed(Box::new(committed))
        }
        Use::Stage(kept) => {
            let staged = transactions::stage(permit, kept, &operations[0]).await?;
            Answer::Staged(Box::new(staged))
        }
        Use::Close(closing) => {
            let committed = closing.commit(permit, &operations).await?;
            Answer::Committed(Box::new(committed))
        }
    })
}

/// Makes a value for the place of each request.
fn each<T>(read: &[Operations<'_>], make: impl Fn(usize) -> T) -> Vec<T> {
    (0..read.len()).map(make).collect()
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
    Attach(Box<KeyedAttach>),
    Detach(Box<KeyedDetach>),
    Acquire(Box<AcquireAtOnce>),
    Release(Box<Release>),
    Get(Box<KeyedGet>),
}

/// The operations of a request. Messages and settlements are in lists of their own, in order.
#[derive(Debug, Default)]
pub(crate) struct Operations<'a> {
    given: Vec<Given>,
    batch: Batch<'a>,
    queues: Vec<Text<'a>>,
    settlements: Settlements<'a>,
    /// Namespaces that operations name, each at the place of its operation.
    namespaces: Vec<Option<String>>,
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
        let (mut first, mut namespace) = (None, None);
        reader.object(OPERATION_FIELDS, |reader, name| {
            if name == NAMESPACE {
                namespace = Some(reader.value()?);
                return Ok(());
            }
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
                "get" => Given::Get(reader.value()?),
                "check" => Given::Check(reader.value()?),
                "attach" => Given::Attach(reader.value()?),
                "delete_attachment" => Given::Detach(reader.value()?),
                "acquire" => Given::Acquire(reader.value()?),
                _ => Given::Release(reader.value()?),
            };
            self.given.push(given);
            Ok(())
        })?;
        self.namespaces.push(namespace);
        match first {
            Some(_) => Ok(()),
            None => {
                let names = OPERATION_FIELDS.iter().copied().filter(|name| *name != NAMESPACE);
                let names = names.collect::<Vec<_>>().join(", ");
                Err(Fault::new("missing_field", format!("an operation is one of {names}")))
            }
        }
    }

    /// Refuses operations of other namespaces than that of the request.
    fn expect_own(&self) -> Read<()> {
        match self.namespaces.iter().position(Option::is_some) {
            None => Ok(()),
            Some(at) => {
                let reason = "an open transaction is about one namespace: \
                              leave it out, or make a transaction of one call";
                Err(Fault::invalid(reason).inside(NAMESPACE).at(at).inside("operations"))
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
                Given::Attach(attach) => Operation::Attach(attach),
                Given::Detach(detach) => Operation::Detach(detach),
                Given::Acquire(acquire) => Operation::Acquire(acquire),
                Given::Release(release) => Operation::Release(release),
                Given::Get(get) => Operation::Get(get),
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
            Operation::Attach(_) => "attach".to_owned(),
            Operation::Detach(_) => "delete_attachment".to_owned(),
            Operation::Acquire(_) => "acquire".to_owned(),
            Operation::Release(_) => "release".to_owned(),
            Operation::Get(_) => "get".to_owned(),
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
