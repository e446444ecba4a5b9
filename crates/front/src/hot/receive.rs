//! Receiving as JSON.

use std::sync::Arc;
use std::time::Duration;

use sluice_calls::access::Right;
use sluice_calls::hot::receive::{
    Receive, Room, TRANSACTION_TTL_MS_MAX, WAIT_MS_MAX, WEIGHT_MAX, check_consumer, done,
};
use sluice_calls::hot::{Cleared, Delivered};
use sluice_calls::standing::{Standing, Waited};
use sluice_calls::transactions::{self, Enlisting};
use sluice_calls::{CallError, Permit};
use sluice_engine::limits::{LEASE_MS_MAX, RECEIVE_QUEUES_MAX};

use crate::hot::Answer;
use crate::hot::content::Text;
use crate::hot::source::{Form, Source};
use sluice_calls::fault::{Fault, Read};

/// Fields of a receive from the queue in the path.
pub(crate) const RECEIVE_FIELDS: &[&str] =
    &["max", "wait_ms", "lease_ms", "consumer", "transaction", "transaction_ttl_ms"];
/// Fields of a receive from several queues.
pub(crate) const RECEIVE_MANY_FIELDS: &[&str] =
    &["max", "wait_ms", "lease_ms", "consumer", "transaction", "transaction_ttl_ms", "queues"];
/// Fields of a queue with its weight.
pub(crate) const WEIGHTED_FIELDS: &[&str] = &["name", "weight"];

/// A receive request.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) max: u32,
    pub(crate) wait_ms: u64,
    pub(crate) lease_ms: u64,
    consumer: Option<Text<'a>>,
    transaction: Option<Text<'a>>,
    transaction_ttl_ms: Option<u64>,
    queues: Vec<(Text<'a>, Option<u16>)>,
    scratch: String,
}

/// Takes messages from the queue that the request names.
pub(super) async fn receive<'b>(
    permit: &Permit<'_>,
    room: Arc<dyn Room>,
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let terms = Terms::read(source, RECEIVE_FIELDS, permit.calls().limits().receive_messages)?;
    let cleared = permit.cleared_by_name()?;
    answer(cleared, room, &terms, &[(permit.name(), 0)]).await
}

/// Takes messages from several queues.
pub(super) async fn receive_many<'b>(
    permit: &Permit<'_>,
    room: Arc<dyn Room>,
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let terms = Terms::read(source, RECEIVE_MANY_FIELDS, permit.calls().limits().receive_messages)?;
    let queues = terms.queues()?;
    let cleared = permit.cleared_queues(queues.iter().map(|(queue, _)| *queue))?;
    answer(cleared, room, &terms, &queues).await
}

/// Receives in the transaction that a request names, or in none.
async fn answer(
    cleared: Cleared<'_>,
    room: Arc<dyn Room>,
    terms: &Terms<'_>,
    queues: &[(&str, u16)],
) -> Result<Answer, CallError> {
    let Some(enlisting) = terms.enlisting()? else {
        return Ok(Answer::Delivered(take(cleared, room, terms, queues, terms.consumer()).await?));
    };
    let request = terms.receive(queues, terms.consumer(), room);
    let waiting = terms.standing(cleared.permit(), queues);
    let received = transactions::receive(cleared, enlisting, request, waiting).await?;
    Ok(Answer::Received(Box::new(received)))
}

/// Receives. Nothing is detached: a client that goes away drops the wait, and the node gives back what was on
/// its way.
pub(crate) async fn take(
    cleared: Cleared<'_>,
    room: Arc<dyn Room>,
    terms: &Terms<'_>,
    queues: &[(&str, u16)],
    consumer: &str,
) -> Result<Vec<Delivered>, CallError> {
    let permit = cleared.permit();
    let receiving = cleared.begin_receive(terms.receive(queues, consumer, room))?;
    done(receiving, terms.standing(permit, queues), permit.stopping()).await
}

impl<'a> Terms<'a> {
    /// The terms of a receive that says nothing else.
    pub(crate) fn new(max: u32, wait_ms: u64, lease_ms: u64) -> Terms<'a> {
        Terms {
            max,
            wait_ms,
            lease_ms,
            consumer: None,
            transaction: None,
            transaction_ttl_ms: None,
            queues: Vec::new(),
            scratch: String::new(),
        }
    }

    /// Reads a body with fields among `allowed`; it may be empty.
    pub(crate) fn read(
        mut reader: impl Source<'a>,
        allowed: &'static [&'static str],
        max_messages: u32,
    ) -> Read<Terms<'a>> {
        let mut terms = Terms::new(1, 0, 0);
        if reader.is_blank() {
            return Ok(terms);
        }
        reader.object(allowed, |reader, name| {
            match name {
                "max" => terms.max = reader.integer(1, u64::from(max_messages))? as u32,
                "wait_ms" => terms.wait_ms = reader.integer(0, WAIT_MS_MAX)?,
                "lease_ms" => terms.lease_ms = reader.integer(1, LEASE_MS_MAX)?,
                "consumer" => {
                    let text = reader.string()?;
                    check_consumer(text.get(reader.scratch()))?;
                    terms.consumer = Some(text);
                }
                "transaction" => terms.transaction = Some(reader.string()?),
                "transaction_ttl_ms" => {
                    terms.transaction_ttl_ms = Some(reader.integer(1, TRANSACTION_TTL_MS_MAX)?);
                }
                "queues" => reader.array(|reader, _| {
                    let queue = read_queue(reader)?;
                    if terms.queues.len() == RECEIVE_QUEUES_MAX {
                        return Err(Fault::invalid(format!("at most {RECEIVE_QUEUES_MAX} queues")));
                    }
                    terms.queues.push(queue);
                    Ok(())
                })?,
                other => return Err(Fault::unknown("field", other, allowed)),
            }
            Ok(())
        })?;
        terms.scratch = reader.finish()?;
        Ok(terms)
    }

    /// The standing of a caller that waits.
    fn standing(&self, permit: &Permit<'_>, queues: &[(&str, u16)]) -> Option<Standing> {
        let names = || Waited::queues(queues.iter().map(|(name, _)| *name));
        (self.wait_ms > 0).then(|| permit.standing(Right::Receive, names))
    }

    /// The receive of messages of these queues.
    pub(crate) fn receive<'o>(
        &self,
        queues: &'o [(&'o str, u16)],
        consumer: &'o str,
        room: Arc<dyn Room>,
    ) -> Receive<'o> {
        Receive {
            queues,
            max_messages: self.max,
            lease_ms: self.lease_ms,
            wait: Duration::from_millis(self.wait_ms),
            consumer,
            room: Some(room),
        }
    }

    /// The transaction that the messages are received in.
    pub(crate) fn enlisting(&self) -> Read<Option<Enlisting<'_>>> {
        let enlisting = match (self.transaction, self.transaction_ttl_ms) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(Fault::conflict("transaction", "transaction_ttl_ms")),
            (Some(id), None) => Enlisting::In(id.get(&self.scratch)),
            (None, Some(ttl_ms)) => Enlisting::Begin(ttl_ms),
        };
        if self.lease_ms > 0 {
            let reason = "leave it out: in a transaction leases last as long as it is open";
            return Err(Fault::new("conflicting_fields", reason).inside("lease_ms"));
        }
        Ok(Some(enlisting))
    }

    pub(crate) fn consumer(&self) -> &str {
        self.consumer.map_or("", |text| text.get(&self.scratch))
    }

    /// The queues with their weights: 0 everywhere when none has one, else 1 for those without.
    pub(crate) fn queues(&self) -> Read<Vec<(&str, u16)>> {
        if self.queues.is_empty() {
            return Err(Fault::missing("queues", "name at least one queue to receive from"));
        }
        let default = u16::from(self.queues.iter().any(|(_, weight)| weight.is_some()));
        let mut named: Vec<(&str, u16)> = Vec::with_capacity(self.queues.len());
        for (index, (name, weight)) in self.queues.iter().enumerate() {
            let name = name.get(&self.scratch);
            if named.iter().any(|(other, _)| *other == name) {
                let fault = Fault::invalid(format!("queue {name:?} is named twice"));
                return Err(fault.at(index).inside("queues"));
            }
            named.push((name, weight.unwrap_or(default)));
        }
        Ok(named)
    }
}

/// A name, or a name with a weight.
fn read_queue<'a>(reader: &mut impl Source<'a>) -> Read<(Text<'a>, Option<u16>)> {
    match reader.form()? {
        Form::Text => Ok((reader.string()?, None)),
        Form::Object => {
            let (mut queue, mut weight) = (None, None);
            reader.object(WEIGHTED_FIELDS, |reader, field| {
                match field {
                    "name" => queue = Some(reader.string()?),
                    _ => weight = Some(reader.integer(1, u64::from(WEIGHT_MAX))? as u16),
                }
                Ok(())
            })?;
            let queue = queue.ok_or_else(|| Fault::missing("name", "name the queue"))?;
            Ok((queue, weight))
        }
        Form::Other => Err(reader.wrong_type("a queue's name, or an object with name and weight")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    fn many(body: &str) -> Read<Terms<'_>> {
        Reader::new(body.as_bytes()).and_then(|reader| Terms::read(reader, RECEIVE_MANY_FIELDS, 1_000))
    }

    #[test]
    fn an_empty_body_takes_one_and_does_not_wait() {
        let terms = Reader::new(b"").and_then(|reader| Terms::read(reader, RECEIVE_FIELDS, 1_000)).unwrap();
        assert_eq!((terms.max, terms.wait_ms, terms.lease_ms), (1, 0, 0));
        assert_eq!(terms.consumer(), "");
    }

    #[test]
    fn queues_come_by_order_or_by_weight() {
        let terms = many(r#"{"queues":["a","b"],"max":1000,"consumer":"w\u0031"}"#).unwrap();
        assert_eq!(terms.queues().unwrap(), [("a", 0), ("b", 0)]);
        assert_eq!(terms.consumer(), "w1");
        let terms = many(r#"{"queues":["a",{"name":"b","weight":3},{"name":"c"}]}"#).unwrap();
        assert_eq!(terms.queues().unwrap(), [("a", 1), ("b", 3), ("c", 1)]);
    }

    #[test]
    fn mistakes_are_named() {
        let fault = |body| {
            let fault = match many(body) {
                Ok(terms) => terms.queues().unwrap_err(),
                Err(fault) => fault,
            };
            format!("{} {}: {}", fault.code, fault.field, fault.reason)
        };
        assert_eq!(fault("{}"), "missing_field queues: name at least one queue to receive from");
        assert_eq!(
            fault(r#"{"queues":["a","a"]}"#),
            "invalid_argument queues[1]: queue \"a\" is named twice"
        );
        assert_eq!(fault(r#"{"queues":[{"weight":1}]}"#), "missing_field queues[0].name: name the queue");
        assert_eq!(
            fault(r#"{"queues":[{"name":"a","weight":0}]}"#),
            "invalid_argument queues[0].weight: expected a number from 1 to 1000, got 0"
        );
        assert_eq!(
            fault(r#"{"queues":[1]}"#),
            "wrong_type queues[0]: expected a queue's name, or an object with name and weight, got the number 1"
        );
        assert_eq!(
            fault(r#"{"wait_ms":60001}"#),
            "invalid_argument wait_ms: expected a number from 0 to 60000, got 60001"
        );
        assert_eq!(
            fault(r#"{"max":1001}"#),
            "invalid_argument max: expected a number from 1 to 1000, got 1001"
        );
    }

    #[test]
    fn noise_never_panics() {
        let seed = r#"{"queues":["a",{"name":"b\u00e9","weight":3}],"max":5,"consumer":"c","lease_ms":7}"#;
        let mut random = sluice_calls::testing::Random(19);
        for _ in 0..20_000 {
            let mut body = seed.as_bytes().to_vec();
            random.mutate(&mut body);
            if let Ok(terms) =
                Reader::new(&body).and_then(|reader| Terms::read(reader, RECEIVE_MANY_FIELDS, 1_000))
            {
                let _ = terms.queues();
            }
        }
    }
}
