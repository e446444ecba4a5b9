//! Extending leases, with what their holders report on the way.

use sluice_calls::hot::Cleared;
use sluice_calls::{CallError, Permit};
use sluice_engine::command::{Progress, ReportItem};
use sluice_engine::limits::{LEASE_MS_MAX, PROGRESS_NOTE_BYTES_MAX};
use sluice_engine::{Error, Limits};

use super::settle::{Bounded, cleared};
use crate::hot::Answer;
use crate::hot::content::{Content, Names, Text};
use crate::hot::options::cost;
use crate::hot::source::Source;
use sluice_calls::fault::{Fault, Read};
use sluice_calls::hot::settle::{Parsed, in_order, parse_receipts};

/// Fields of extend.
pub(crate) const EXTEND_FIELDS: &[&str] =
    &["receipt", "lease_ms", "progress", "checkpoint", "checkpoint_base64", "add_cost", "items"];
/// Fields of an item of extend.
pub(crate) const EXTEND_ITEM_FIELDS: &[&str] =
    &["receipt", "lease_ms", "progress", "checkpoint", "checkpoint_base64", "add_cost"];
/// Fields of a progress.
pub(crate) const PROGRESS_FIELDS: &[&str] = &["percent", "note"];

const CHECKPOINT: Names = Names { text: "checkpoint", base64: "checkpoint_base64" };

/// Extends leases, and keeps what their holders report.
pub(super) async fn extend<'b>(permit: &Permit<'_>, source: impl Source<'b>) -> Result<Answer, CallError> {
    let request = Extensions::read(source, &permit.calls().limits())?;
    let ids = || request.items().0.into_iter().map(|item| item.receipt.id);
    let results = request.extend(cleared(permit, ids).await?).await?;
    Ok(Answer::Settled { results, is_list: request.is_list })
}

/// A request to extend.
#[derive(Debug)]
pub(crate) struct Extensions<'a> {
    items: Vec<Extension<'a>>,
    scratch: String,
    octets: Vec<u8>,
    is_list: bool,
}

/// One lease to extend.
#[derive(Clone, Copy, Debug, Default)]
struct Extension<'a> {
    receipt: Option<Text<'a>>,
    lease_ms: Option<u64>,
    progress: Option<(u8, Option<Text<'a>>)>,
    checkpoint: Option<Content<'a>>,
    add_cost: Option<u32>,
}

impl<'a> Extension<'a> {
    fn field(&mut self, reader: &mut impl Source<'a>, name: &'static str) -> Read<()> {
        match name {
            "receipt" => self.receipt = Some(reader.string()?),
            "lease_ms" => self.lease_ms = Some(reader.integer(1, LEASE_MS_MAX)?),
            "progress" => self.progress = Some(read_progress(reader)?),
            "add_cost" => self.add_cost = Some(cost(reader)?),
            _ => reader.content(&mut self.checkpoint, CHECKPOINT, name)?,
        }
        Ok(())
    }

    /// Name of a field given beside the receipt; `None`: there is none.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("lease_ms", self.lease_ms.is_some()),
            ("progress", self.progress.is_some()),
            ("checkpoint", self.checkpoint.is_some()),
            ("add_cost", self.add_cost.is_some()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }
}

fn read_progress<'a>(reader: &mut impl Source<'a>) -> Read<(u8, Option<Text<'a>>)> {
    let (mut percent, mut note) = (None, None);
    reader.object(PROGRESS_FIELDS, |reader, name| {
        match name {
            "percent" => percent = Some(reader.integer(0, 100)? as u8),
            _ => {
                let text = reader.string()?;
                let bytes = text.get(reader.scratch()).len();
                if bytes > PROGRESS_NOTE_BYTES_MAX {
                    let reason = format!("at most {PROGRESS_NOTE_BYTES_MAX} bytes, got {bytes}");
                    return Err(Fault::invalid(reason));
                }
                note = Some(text);
            }
        }
        Ok(())
    })?;
    let percent = percent.ok_or_else(|| Fault::missing("percent", "how far it has come, 0 to 100"))?;
    Ok((percent, note))
}

impl<'a> Extensions<'a> {
    pub(crate) fn read(mut reader: impl Source<'a>, limits: &Limits) -> Read<Extensions<'a>> {
        let mut one = Extension::default();
        let mut items: Option<Bounded<Extension<'a>>> = None;
        reader.object(EXTEND_FIELDS, |reader, name| {
            if name != "items" {
                return one.field(reader, name);
            }
            let list = items.insert(Bounded::new(limits));
            reader.array(|reader, _| {
                list.push(read_extension(reader)?);
                Ok(())
            })
        })?;
        let scratch = reader.finish()?;
        let is_list = items.is_some();
        let mut items = match (one.receipt, items) {
            (Some(_), Some(_)) => return Err(Fault::conflict("receipt", "items")),
            (None, Some(list)) => match one.given() {
                Some(name) => return Err(Fault::conflict(name, "items")),
                None => list.finish("items")?,
            },
            (None, None) => return Err(Fault::missing("receipt", "give receipt, or items for many")),
            (Some(_), None) => vec![one],
        };
        let mut octets = Vec::new();
        for (at, item) in items.iter_mut().enumerate() {
            let Some(checkpoint) = &mut item.checkpoint else { continue };
            checkpoint
                .decode(CHECKPOINT, &scratch, &mut octets)
                .map_err(|fault| if is_list { fault.at(at).inside("items") } else { fault })?;
        }
        Ok(Extensions { items, scratch, octets, is_list })
    }

    /// Extends them; one result per item, in order.
    pub(crate) async fn extend(&self, cleared: Cleared<'_>) -> Result<Vec<Result<(), Error>>, Error> {
        let (items, refused) = self.items();
        // Plain ones get a record of their own kind, which is the smallest.
        let is_plain = |item: &ReportItem<'_>| {
            item.progress.is_none() && item.checkpoint.is_none() && item.add_cost == 0
        };
        let plain = items.iter().all(is_plain);
        let extended = if plain {
            let items: Vec<_> = items.iter().map(|item| (item.receipt, item.lease_ms)).collect();
            cleared.extend(&items).await?
        } else {
            cleared.report(&items).await?
        };
        Ok(in_order(extended, refused))
    }

    /// The items as the engine takes them, and those whose receipt cannot be read.
    pub(crate) fn items(&self) -> Parsed<ReportItem<'_>> {
        let texts = self.items.iter().map(|item| item.receipt.map_or("", |text| text.get(&self.scratch)));
        parse_receipts(texts, |at, receipt| {
            let item = &self.items[at];
            ReportItem {
                receipt,
                lease_ms: item.lease_ms.unwrap_or(0),
                progress: item.progress.map(|(percent, note)| Progress {
                    percent,
                    note: note.map_or("", |note| note.get(&self.scratch)),
                }),
                checkpoint: item.checkpoint.map(|content| content.get(&self.scratch, &self.octets)),
                add_cost: item.add_cost.unwrap_or(0),
            }
        })
    }
}

fn read_extension<'a>(reader: &mut impl Source<'a>) -> Read<Extension<'a>> {
    let mut item = Extension::default();
    reader.object(EXTEND_ITEM_FIELDS, |reader, name| item.field(reader, name))?;
    if item.receipt.is_none() {
        return Err(Fault::missing("receipt", "which delivery is to be extended"));
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use sluice_engine::Receipt;

    use super::*;
    use crate::json::Reader;

    fn read(body: &str) -> Read<Extensions<'_>> {
        Reader::new(body.as_bytes()).and_then(|reader| Extensions::read(reader, &Limits::default()))
    }

    #[test]
    fn reports_are_read() {
        let id = sluice_engine::MessageId { namespace: sluice_engine::NamespaceId::DEFAULT, sequence: 5 };
        let receipt = Receipt { id, token: 1, tag: 0 };
        let body = format!(
            r#"{{"items":[{{"receipt":"{receipt}","progress":{{"percent":40,"note":"a\u0062"}},"checkpoint_base64":"/wA="}},
                {{"receipt":"{receipt}","lease_ms":5,"checkpoint":"x","add_cost":7}}]}}"#
        );
        let request = read(&body).unwrap();
        let (items, refused) = request.items();
        assert!(refused.is_empty() && request.is_list);
        assert_eq!(items[0].receipt, receipt);
        assert_eq!(items[0].progress, Some(Progress { percent: 40, note: "ab" }));
        assert_eq!(items[0].checkpoint, Some(&[255, 0][..]));
        assert_eq!((items[1].lease_ms, items[1].checkpoint), (5, Some(&b"x"[..])));
        assert_eq!((items[0].add_cost, items[1].add_cost), (0, 7));
    }

    #[test]
    fn mistakes_are_named() {
        let fault = |body: &str| {
            let fault = read(body).unwrap_err();
            (fault.code, fault.field)
        };
        assert_eq!(fault(r#"{"items":[],"lease_ms":4}"#).0, "conflicting_fields");
        assert_eq!(fault(r#"{"items":[],"progress":{"percent":1}}"#).0, "conflicting_fields");
        assert_eq!(fault(r#"{"items":[],"add_cost":0}"#).0, "conflicting_fields");
        assert_eq!(fault(r#"{"receipt":"r","add_cost":10000001}"#).1, "add_cost");
        assert_eq!(fault(r#"{"items":[{}]}"#).1, "items[0].receipt");
        assert_eq!(fault(r#"{"receipt":"r","progress":{"percent":101}}"#).1, "progress.percent");
        assert_eq!(fault(r#"{"receipt":"r","progress":{}}"#), ("missing_field", "progress.percent".into()));
        assert_eq!(
            fault(r#"{"receipt":"r","checkpoint":"","checkpoint_base64":""}"#).0,
            "conflicting_fields"
        );
        assert_eq!(fault(r#"{"receipt":"r","checkpoint_base64":"?"}"#).1, "checkpoint_base64");
        let long = format!(r#"{{"receipt":"r","progress":{{"percent":1,"note":"{}"}}}}"#, "n".repeat(1_025));
        assert_eq!(fault(&long).1, "progress.note");
    }

    #[test]
    fn noise_never_panics() {
        let seed = r#"{"items":[{"receipt":"r","progress":{"percent":40,"note":"\u00e9"},"checkpoint_base64":"/wA="}]}"#;
        let mut random = sluice_calls::testing::Random(23);
        for _ in 0..20_000 {
            let mut body = seed.as_bytes().to_vec();
            random.mutate(&mut body);
            if let Ok(request) =
                Reader::new(&body).and_then(|reader| Extensions::read(reader, &Limits::default()))
            {
                request.items();
            }
        }
    }
}
