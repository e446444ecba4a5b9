//! Settling and extending.

use sluice_calls::hot::Cleared;
use sluice_calls::{CallError, Permit};
use sluice_engine::command::{Content as Octets, SettleItem, Settlement};
use sluice_engine::id::{MessageId, Receipt};
use sluice_engine::limits::{DELAY_MS_MAX, ERROR_TEXT_BYTES_MAX};
use sluice_engine::{Error, Limits};

use crate::hot::Answer;
use crate::hot::content::Text;
use crate::hot::content::{Content, Names};
use crate::hot::options::{cost, word};
use crate::hot::source::Source;
use sluice_calls::fault::{Fault, Read};
pub(crate) use sluice_calls::hot::settle::Outcome;
use sluice_calls::hot::settle::{Parsed, in_order, parse_receipts};
use sluice_calls::value::Words;

/// Fields of ack.
pub(crate) const ACK_FIELDS: &[&str] =
    &["receipt", "receipts", "add_cost", "result", "result_base64", "result_content_type"];
/// Fields of nack.
pub(crate) const NACK_FIELDS: &[&str] = &["receipt", "receipts", "add_cost", "error", "delay_ms"];
/// Fields of release.
pub(crate) const RELEASE_FIELDS: &[&str] = &["receipt", "receipts", "add_cost", "delay_ms"];
/// Fields of reject.
pub(crate) const REJECT_FIELDS: &[&str] = &["receipt", "receipts", "add_cost", "error"];
/// Fields of settle.
pub(crate) const SETTLE_FIELDS: &[&str] = &["items"];
/// Fields of an item of settle.
pub(crate) const SETTLE_ITEM_FIELDS: &[&str] = &[
    "receipt",
    "outcome",
    "add_cost",
    "error",
    "delay_ms",
    "result",
    "result_base64",
    "result_content_type",
];
/// Bytes of a receipt in a list: 45 characters, the quotes and a comma.
const RECEIPT_BYTES: usize = 48;

/// The fields that a request with this outcome may have.
fn fields_of(outcome: Outcome) -> &'static [&'static str] {
    match outcome {
        Outcome::Ack => ACK_FIELDS,
        Outcome::Nack => NACK_FIELDS,
        Outcome::Release => RELEASE_FIELDS,
        Outcome::Reject => REJECT_FIELDS,
    }
}

/// The word of an outcome.
fn name_of(outcome: Outcome) -> &'static str {
    Outcome::WORDS.iter().find(|(known, _)| *known == outcome).map_or("", |(_, word)| word)
}

/// Settles deliveries, all with this outcome; `None`: each says its own.
pub(super) async fn settle<'b>(
    permit: &Permit<'_>,
    outcome: Option<Outcome>,
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let limits = permit.calls().limits();
    let request = match outcome {
        Some(outcome) => Settlements::read_one_outcome(source, outcome, &limits)?,
        None => Settlements::read_mixed(source, &limits)?,
    };
    let ids = || request.items().0.into_iter().map(|item| item.receipt.id);
    let results = request.settle(cleared(permit, ids).await?).await?;
    Ok(Answer::Settled { results, is_list: request.is_list })
}

/// Clears a request about the messages of receipts.
pub(super) async fn cleared<'c, I: Iterator<Item = MessageId>>(
    permit: &Permit<'c>,
    ids: impl FnOnce() -> I,
) -> Result<Cleared<'c>, CallError> {
    match permit.cleared_everywhere() {
        Some(cleared) => Ok(cleared),
        None => permit.cleared_messages(ids()).await,
    }
}

/// A list that keeps no more than its limit and counts the rest.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    items: Vec<T>,
    count: u64,
    limit: u64,
}

impl<T> Bounded<T> {
    pub(crate) fn new(limits: &Limits) -> Bounded<T> {
        Bounded { items: Vec::new(), count: 0, limit: u64::from(limits.batch_items) }
    }

    /// With room for as many as `items`, though not for more than its limit.
    fn with_room(items: usize, limits: &Limits) -> Bounded<T> {
        let items = Vec::with_capacity(items.min(limits.batch_items as usize));
        Bounded { items, ..Bounded::new(limits) }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.count += 1;
        if self.count <= self.limit {
            self.items.push(item);
        }
    }

    pub(crate) fn finish(self, field: &str) -> Read<Vec<T>> {
        let Bounded { items, count, limit } = self;
        match count {
            0 => Err(Fault::invalid("expected at least one item").inside(field)),
            count if count > limit => Err(Error::BatchTooLarge { what: "items", size: count, limit }.into()),
            _ => Ok(items),
        }
    }
}

/// A request to settle.
#[derive(Debug, Default)]
pub(crate) struct Settlements<'a> {
    receipts: Vec<Text<'a>>,
    /// Settlement of each of these deliveries, or a single one for all of them.
    ends: Vec<End<'a>>,
    scratch: String,
    octets: Vec<u8>,
    pub(crate) is_list: bool,
}

/// A settlement as it was read.
#[derive(Clone, Copy, Debug)]
struct End<'a> {
    settlement: Settlement,
    add_cost: u32,
    error: Option<Text<'a>>,
    result: Option<ResultText<'a>>,
}

/// The result of an ack as it was read.
#[derive(Clone, Copy, Debug)]
struct ResultText<'a> {
    content: Content<'a>,
    content_type: Option<Text<'a>>,
}

/// The fields of a result while they are read.
#[derive(Default)]
struct ResultFields<'a> {
    content: Option<Content<'a>>,
    content_type: Option<Text<'a>>,
}

const RESULT: Names = Names { text: "result", base64: "result_base64" };

impl<'a> ResultFields<'a> {
    fn field(&mut self, reader: &mut impl Source<'a>, name: &str) -> Read<()> {
        if name == "result_content_type" {
            self.content_type = Some(reader.string()?);
            return Ok(());
        }
        reader.content(&mut self.content, RESULT, name)
    }

    fn finish(self) -> Read<Option<ResultText<'a>>> {
        match (self.content, self.content_type) {
            (Some(content), content_type) => Ok(Some(ResultText { content, content_type })),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(Fault::missing("result", "result_content_type tells of what is not given"))
            }
        }
    }
}

impl<'a> Settlements<'a> {
    pub(crate) fn read_one_outcome(
        mut reader: impl Source<'a>,
        outcome: Outcome,
        limits: &Limits,
    ) -> Read<Settlements<'a>> {
        let (mut receipt, mut error, mut delay_ms, mut add_cost) = (None, None, None, 0);
        let mut receipts: Option<Bounded<Text<'a>>> = None;
        let mut result = ResultFields::default();
        reader.object(fields_of(outcome), |reader, name| {
            match name {
                "receipt" => receipt = Some(reader.string()?),
                "receipts" => {
                    let list = receipts
                        .insert(Bounded::with_room(reader.whole().bytes.len() / RECEIPT_BYTES, limits));
                    reader.array(|reader, _| {
                        list.push(reader.string()?);
                        Ok(())
                    })?;
                }
                "add_cost" => add_cost = cost(reader)?,
                "error" => error = Some(reader.string()?),
                "delay_ms" => delay_ms = Some(reader.integer(0, DELAY_MS_MAX)?),
                other => result.field(reader, other)?,
            }
            Ok(())
        })?;
        let scratch = reader.finish()?;
        let is_list = receipts.is_some();
        let receipts = match (receipt, receipts) {
            (Some(_), Some(_)) => return Err(Fault::conflict("receipt", "receipts")),
            (None, None) => return Err(Fault::missing("receipt", "give receipt, or receipts for many")),
            (Some(receipt), None) => vec![receipt],
            (None, Some(list)) => list.finish("receipts")?,
        };
        let settlement = outcome.settlement(delay_ms);
        let mut octets = Vec::new();
        let mut result = result.finish()?;
        if let Some(result) = &mut result {
            result.content.decode(RESULT, &scratch, &mut octets)?;
        }
        let ends = vec![End { settlement, add_cost, error, result }];
        Ok(Settlements { receipts, ends, scratch, octets, is_list })
    }

    pub(crate) fn read_mixed(mut reader: impl Source<'a>, limits: &Limits) -> Read<Settlements<'a>> {
        let mut items = Bounded::new(limits);
        reader.object(SETTLE_FIELDS, |reader, _| {
            reader.array(|reader, _| {
                items.push(read_settlement(reader)?);
                Ok(())
            })
        })?;
        let scratch = reader.finish()?;
        let (receipts, ends): (Vec<_>, Vec<_>) = items.finish("items")?.into_iter().unzip();
        let mut settlements = Settlements { receipts, ends, is_list: true, ..Settlements::default() };
        settlements.finish(scratch).map_err(|(at, fault)| fault.at(at).inside("items"))?;
        Ok(settlements)
    }

    /// Reads one that lies within a larger body; [`Settlements::finish`] must follow.
    pub(crate) fn read_one(&mut self, reader: &mut impl Source<'a>) -> Read<()> {
        let (receipt, end) = read_settlement(reader)?;
        self.receipts.push(receipt);
        self.ends.push(end);
        Ok(())
    }

    /// Takes over the scratch of the reader that has read them; a fault has the place of its settlement.
    pub(crate) fn finish(&mut self, scratch: String) -> Result<(), (usize, Box<Fault>)> {
        self.scratch = scratch;
        for (at, End { result, .. }) in self.ends.iter_mut().enumerate() {
            let Some(result) = result else { continue };
            let decoded = result.content.decode(RESULT, &self.scratch, &mut self.octets);
            decoded.map_err(|fault| (at, fault))?;
        }
        Ok(())
    }

    /// Settles them; one result per item, in order.
    pub(crate) async fn settle(&self, cleared: Cleared<'_>) -> Result<Vec<Result<(), Error>>, Error> {
        let (items, refused) = self.items();
        Ok(in_order(cleared.settle(&items).await?, refused))
    }

    /// The items as the engine takes them, and those whose receipt cannot be read.
    pub(crate) fn items(&self) -> Parsed<SettleItem<'_>> {
        let texts = self.receipts.iter().map(|receipt| receipt.get(&self.scratch));
        match self.ends.as_slice() {
            [end] => parse_receipts(texts, |_, receipt| self.item(receipt, end)),
            ends => parse_receipts(texts, |at, receipt| self.item(receipt, &ends[at])),
        }
    }

    fn item(&self, receipt: Receipt, end: &End<'a>) -> SettleItem<'_> {
        SettleItem {
            receipt,
            settlement: end.settlement,
            error: end.error.map_or("", |text| cut(text.get(&self.scratch))),
            result: end.result.map(|result| Octets {
                content_type: result.content_type.map_or("", |text| text.get(&self.scratch)),
                bytes: result.content.get(&self.scratch, &self.octets),
            }),
            add_cost: end.add_cost,
        }
    }
}

/// A receipt, and how its delivery ended.
fn read_settlement<'a>(reader: &mut impl Source<'a>) -> Read<(Text<'a>, End<'a>)> {
    let (mut receipt, mut outcome, mut error, mut delay_ms, mut add_cost) = (None, None, None, None, 0);
    let mut result = ResultFields::default();
    reader.object(SETTLE_ITEM_FIELDS, |reader, name| {
        match name {
            "receipt" => receipt = Some(reader.string()?),
            "outcome" => outcome = Some(word(reader)?),
            "add_cost" => add_cost = cost(reader)?,
            "error" => error = Some(reader.string()?),
            "delay_ms" => delay_ms = Some(reader.integer(0, DELAY_MS_MAX)?),
            other => result.field(reader, other)?,
        }
        Ok(())
    })?;
    let receipt = receipt.ok_or_else(|| Fault::missing("receipt", "which delivery is to be settled"))?;
    let outcome =
        outcome.ok_or_else(|| Fault::missing("outcome", "expected one of ack, nack, release, reject"))?;
    let result = result.finish()?;
    for (field, given) in
        [("error", error.is_some()), ("delay_ms", delay_ms.is_some()), ("result", result.is_some())]
    {
        if given && !fields_of(outcome).contains(&field) {
            let reason = format!("{field} has no meaning for {}", name_of(outcome));
            return Err(Fault::new("conflicting_fields", reason).inside(field));
        }
    }
    Ok((receipt, End { settlement: outcome.settlement(delay_ms), add_cost, error, result }))
}

/// The beginning of an error text, as much as is kept.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ERROR_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Reader;

    fn receipt(token: u64) -> Receipt {
        let id = sluice_engine::MessageId { namespace: sluice_engine::NamespaceId(1), sequence: 5 };
        Receipt { id, token, tag: 0 }
    }

    #[test]
    fn mixed_outcomes_are_read_in_order_and_a_bad_receipt_fails_alone() {
        let body = format!(
            r#"{{"items":[{{"receipt":"{}","outcome":"ack","add_cost":3}},{{"receipt":"nonsense","outcome":"ack"}},
                {{"outcome":"nack","receipt":"{}","error":"e","delay_ms":7}},
                {{"receipt":"{}","outcome":"release"}}]}}"#,
            receipt(1),
            receipt(2),
            receipt(3)
        );
        let request = Reader::new(body.as_bytes())
            .and_then(|reader| Settlements::read_mixed(reader, &Limits::default()))
            .unwrap();
        let (items, refused) = request.items();
        assert_eq!(items.iter().map(|item| item.add_cost).collect::<Vec<_>>(), [3, 0, 0]);
        assert_eq!(items[1].settlement, Settlement::Nack { delay_ms: Some(7) });
        assert_eq!(items[1].error, "e");
        assert_eq!(items[2].settlement, Settlement::Release { delay_ms: 0 });
        assert_eq!(refused, [(1, Error::InvalidReceipt { receipt: "nonsense".into() })]);
    }

    #[test]
    fn results_are_read() {
        let body = format!(
            r#"{{"items":[{{"receipt":"{}","outcome":"ack","result_base64":"/wA=","result_content_type":"image/x"}},
                {{"receipt":"{}","outcome":"ack","result":""}}]}}"#,
            receipt(1),
            receipt(2)
        );
        let request = Reader::new(body.as_bytes())
            .and_then(|reader| Settlements::read_mixed(reader, &Limits::default()))
            .unwrap();
        let (items, _) = request.items();
        assert_eq!(items[0].result, Some(Octets { content_type: "image/x", bytes: &[255, 0] }));
        assert_eq!(items[1].result, Some(Octets::default()));
    }

    #[test]
    fn mistakes_are_named() {
        let limits = Limits { batch_items: 2, ..Limits::default() };
        let mixed = |body: &str| {
            Reader::new(body.as_bytes())
                .and_then(|reader| Settlements::read_mixed(reader, &limits))
                .unwrap_err()
        };
        let ack = |body: &str| {
            Reader::new(body.as_bytes())
                .and_then(|reader| Settlements::read_one_outcome(reader, Outcome::Ack, &limits))
                .unwrap_err()
        };
        assert_eq!(ack("{}").field, "receipt");
        assert_eq!(ack(r#"{"receipt":"a","receipts":[]}"#).code, "conflicting_fields");
        assert_eq!(ack(r#"{"receipt":"a","delay_ms":1}"#).code, "unknown_field");
        assert_eq!(ack(r#"{"receipt":"a","add_cost":-1}"#).field, "add_cost");
        assert_eq!(ack(r#"{"receipts":["a","b","c"]}"#).code, "batch_too_large");
        assert_eq!(ack(r#"{"receipts":[1]}"#).field, "receipts[0]");
        assert_eq!(mixed("{}").field, "items");
        assert_eq!(mixed(r#"{"items":[{"receipt":"a"}]}"#).field, "items[0].outcome");
        assert_eq!(mixed(r#"{"items":[{"receipt":"a","outcome":"done"}]}"#).field, "items[0].outcome");
        let fault = mixed(r#"{"items":[{"receipt":"a","outcome":"ack","error":"x"}]}"#);
        assert_eq!(fault.reason, "error has no meaning for ack");
        let fault = mixed(r#"{"items":[{"receipt":"a","outcome":"nack","result":"x"}]}"#);
        assert_eq!(fault.reason, "result has no meaning for nack");
        assert_eq!(ack(r#"{"receipt":"a","result":"","result_base64":""}"#).code, "conflicting_fields");
        assert_eq!(ack(r#"{"receipt":"a","result_base64":"?"}"#).field, "result_base64");
        assert_eq!(ack(r#"{"receipt":"a","result_content_type":"text/plain"}"#).field, "result");
    }

    #[test]
    fn long_error_texts_are_cut_between_characters() {
        let text = format!("{}é", "a".repeat(ERROR_TEXT_BYTES_MAX - 1));
        assert_eq!(cut(&text).len(), ERROR_TEXT_BYTES_MAX - 1);
    }

    #[test]
    fn noise_never_panics() {
        let seed = format!(
            r#"{{"items":[{{"receipt":"{}","outcome":"nack","error":"\u00e9","delay_ms":5}},{{"receipt":"x","outcome":"ack"}}]}}"#,
            receipt(9)
        );
        let mut random = sluice_calls::testing::Random(13);
        for _ in 0..30_000 {
            let mut body = seed.clone().into_bytes();
            random.mutate(&mut body);
            if let Ok(request) =
                Reader::new(&body).and_then(|reader| Settlements::read_mixed(reader, &Limits::default()))
            {
                request.items();
            }
            let _ = Reader::new(&body)
                .and_then(|reader| Settlements::read_one_outcome(reader, Outcome::Ack, &Limits::default()));
            let _ = Reader::new(&body)
                .and_then(|reader| Settlements::read_one_outcome(reader, Outcome::Nack, &Limits::default()));
        }
    }
}
