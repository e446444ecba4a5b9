//! A message as the decoders of the hot calls read it.

use std::ops::Range;

use serde::de::DeserializeOwned;
use sluice_calls::fault::{Fault, Read};
use sluice_calls::transactions::{Kept, Protocol};

use super::de::from_field;
use super::rows::{read_rows, text};
use super::schema::{Field, Kind, MessageType, schema};
use super::wire::Raw;
use crate::hot::content::Content;
use crate::hot::content::Text;
use crate::hot::source::{Form, Source};

/// The lists that calls work through: protobuf does not tell one that is absent from an empty one, and to
/// these calls it is empty.
const LISTS: [&str; 3] = ["messages", "items", "queues"];

/// A reader of one message, by the descriptors of the contract.
#[derive(Debug)]
pub(super) struct MessageSource<'b> {
    /// The fields of the message that is read, and behind them those of the messages inside it.
    rows: Vec<(usize, Raw<'b>)>,
    /// The message.
    bytes: &'b [u8],
    next: Next,
}

/// The value that comes next.
#[derive(Clone, Debug)]
enum Next {
    /// The message itself.
    Whole(&'static MessageType),
    /// A field, with the places of its rows: one for each time that it came.
    Field(&'static Field, Range<usize>),
    /// An item of a list.
    Item(&'static Field, usize),
}

impl<'b> MessageSource<'b> {
    /// A reader of these fields of a message.
    pub(super) fn new(
        message: &'static MessageType,
        rows: Vec<(usize, Raw<'b>)>,
        bytes: &'b [u8],
    ) -> MessageSource<'b> {
        MessageSource { rows, bytes, next: Next::Whole(message) }
    }

    /// The field that comes next, and its rows.
    fn field(&self) -> Read<(&'static Field, Range<usize>)> {
        match &self.next {
            Next::Field(field, rows) => Ok((field, rows.clone())),
            Next::Item(field, row) => Ok((field, *row..row + 1)),
            Next::Whole(_) => Err(Fault::new("wrong_type", "a message stands in place of a field")),
        }
    }

    /// The value that comes next; of several, the last counts (protobuf, "Last One Wins").
    fn last(&self) -> Read<(&'static Field, Raw<'b>)> {
        let (field, rows) = self.field()?;
        Ok((field, self.rows[rows].last().map_or(Raw::Bytes(&[]), |(_, raw)| *raw)))
    }

    /// Appends the fields of a message inside this one; of several pieces they count together.
    fn enter(&mut self, message: &MessageType, pieces: Range<usize>) -> Read<Range<usize>> {
        let (from, is_one) = (self.rows.len(), pieces.len() == 1);
        for at in pieces {
            if let (_, Raw::Bytes(bytes)) = self.rows[at] {
                self.rows.extend(read_rows(message, bytes)?);
            }
        }
        if !is_one {
            self.rows[from..].sort_by_key(|(at, _)| *at);
        }
        Ok(from..self.rows.len())
    }

    /// Reads the field of a message inside this one, whose rows are then forgotten.
    fn inside<T>(&mut self, rows: Range<usize>, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let read = read(self)?;
        self.rows.truncate(rows.start);
        Ok(read)
    }

    /// Reads the fields at these rows.
    fn fields(
        &mut self,
        message: &'static MessageType,
        mut rows: Range<usize>,
        allowed: &'static [&'static str],
        field: &mut impl FnMut(&mut Self, &'static str) -> Read<()>,
    ) -> Read<()> {
        let all = rows.clone();
        while let Some((at, _)) = self.rows[rows.clone()].first().copied() {
            let same = self.rows[rows.clone()].iter().take_while(|(other, _)| *other == at).count();
            let of = &message.fields[at];
            let next = rows.start..rows.start + same;
            rows.start += same;
            if !(of.is_implicit && is_default(self.rows[next.end - 1].1)) {
                self.named(Next::Field(of, next), of, allowed, field)?;
            }
        }
        // Contents that are empty are contents.
        let contents = |(_, of): &(usize, &Field)| of.is_implicit && of.kind == Kind::Octets;
        for (at, of) in message.fields.iter().enumerate().filter(contents) {
            let last = self.rows[all.clone()].iter().rev().find(|(other, _)| *other == at);
            if last.is_none_or(|(_, raw)| is_default(*raw)) {
                self.named(Next::Field(of, 0..0), of, allowed, field)?;
            }
        }
        Ok(())
    }

    fn named(
        &mut self,
        next: Next,
        of: &'static Field,
        allowed: &'static [&'static str],
        field: &mut impl FnMut(&mut Self, &'static str) -> Read<()>,
    ) -> Read<()> {
        let known = allowed.iter().find(|known| **known == of.json_name());
        let name = known.ok_or_else(|| Fault::unknown("field", &of.name, allowed))?;
        self.next = next;
        field(self, name).map_err(|fault| fault.inside(&of.name))
    }
}

/// True for the value that stands for none in a field with implicit presence.
fn is_default(raw: Raw<'_>) -> bool {
    matches!(raw, Raw::Number(0) | Raw::Bytes([]))
}

impl<'b> Source<'b> for MessageSource<'b> {
    fn object(
        &mut self,
        allowed: &'static [&'static str],
        mut field: impl FnMut(&mut Self, &'static str) -> Read<()>,
    ) -> Read<()> {
        if let Next::Whole(message) = self.next {
            let rows = 0..self.rows.len();
            self.fields(message, rows.clone(), allowed, &mut field)?;
            for list in message.fields.iter().filter(|field| LISTS.contains(&field.name.as_str())) {
                if list.is_list && !self.rows.iter().any(|(at, _)| message.fields[*at].number == list.number)
                {
                    self.named(Next::Field(list, 0..0), list, allowed, &mut field)?;
                }
            }
            return Ok(());
        }
        let (of, pieces) = self.field()?;
        let Kind::Message(at) = of.kind else { return Err(self.wrong_type("a message")) };
        let message = schema().message(at);
        let rows = self.enter(message, pieces)?;
        self.inside(rows.clone(), |source| source.fields(message, rows, allowed, &mut field))
    }

    fn entries(&mut self, mut entry: impl FnMut(&mut Self, Text<'b>) -> Read<()>) -> Read<()> {
        let (of, rows) = self.field()?;
        let Kind::Entries(at) = of.kind else { return Err(self.wrong_type("names with values")) };
        let message = schema().message(at);
        for (index, row) in rows.enumerate() {
            let inner = self.enter(message, row..row + 1).map_err(|fault| fault.at(index))?;
            let values = self.rows[inner.clone()].iter().position(|(at, _)| *at == 1);
            let value = inner.start + values.unwrap_or(inner.len());
            let name = match self.rows[inner.start..value].last() {
                Some((_, Raw::Bytes(bytes))) => {
                    text(bytes).map_err(|fault| fault.inside("name").at(index))?
                }
                _ => "",
            };
            self.next = Next::Field(&message.fields[1], value..inner.end);
            self.inside(inner, |source| entry(source, Text::Plain(name)))?;
        }
        Ok(())
    }

    fn array(&mut self, mut item: impl FnMut(&mut Self, usize) -> Read<()>) -> Read<()> {
        let (of, rows) = self.field()?;
        if let (Kind::Message(at), false) = (of.kind, of.is_list)
            && let Some(list) = schema().stands_for(at)
        {
            let inner = self.enter(schema().message(at), rows)?;
            self.next = Next::Field(list, inner.clone());
            return self.inside(inner, |source| source.array(item));
        }
        for (index, row) in rows.enumerate() {
            self.next = Next::Item(of, row);
            item(self, index).map_err(|fault| fault.at(index))?;
        }
        Ok(())
    }

    fn string(&mut self) -> Read<Text<'b>> {
        match self.last()? {
            (_, Raw::Bytes(bytes)) => text(bytes).map(Text::Plain),
            (_, Raw::Number(_)) => Err(self.wrong_type("a text")),
        }
    }

    fn octets(&mut self) -> Read<Content<'b>> {
        match self.last()? {
            (_, Raw::Bytes(bytes)) => Ok(Content::Octets(bytes)),
            (_, Raw::Number(_)) => Err(self.wrong_type("octets")),
        }
    }

    fn integer(&mut self, min: u64, max: u64) -> Read<u64> {
        match self.last()? {
            (_, Raw::Number(number)) if (min..=max).contains(&number) => Ok(number),
            (_, Raw::Number(number)) => {
                Err(Fault::invalid(format!("expected a number from {min} to {max}, got {number}")))
            }
            (_, Raw::Bytes(_)) => Err(self.wrong_type("an integer")),
        }
    }

    fn boolean(&mut self) -> Read<bool> {
        self.integer(0, u64::MAX).map(|number| number != 0)
    }

    fn value<T: DeserializeOwned>(&mut self) -> Read<T> {
        let (field, rows) = self.field()?;
        from_field(field, &self.rows[rows])
    }

    fn form(&mut self) -> Read<Form> {
        Ok(match self.field()?.0.kind {
            Kind::Text => Form::Text,
            Kind::Message(_) | Kind::Entries(_) => Form::Object,
            Kind::Octets | Kind::Boolean | Kind::Number => Form::Other,
        })
    }

    #[cold]
    fn wrong_type(&mut self, expected: &str) -> Box<Fault> {
        Fault::new("wrong_type", format!("expected {expected}"))
    }

    fn is_blank(&mut self) -> bool {
        false
    }

    fn whole(&self) -> Kept<'b> {
        Kept { protocol: Protocol::Protobuf, bytes: self.bytes }
    }

    type Again<'r> = MessageSource<'r>;

    fn again<'r>(kept: Kept<'r>) -> Read<MessageSource<'r>> {
        let bytes = kept.expect(Protocol::Protobuf)?;
        let message = schema().named("StageTransactionRequest");
        let mut rows = read_rows(message, bytes)?;
        rows.retain(|(at, _)| message.by_name("operations") == Some(*at));
        Ok(MessageSource::new(message, rows, bytes))
    }

    fn scratch(&self) -> &str {
        ""
    }

    fn finish(self) -> Read<String> {
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use sluice_engine::Limits;
    use sluice_engine::item::Chain;
    use sluice_proto::v1::{Backoff, Header, Message, SendMany, Step, Unique};

    use super::*;
    use crate::grpc::rows::read_rows;
    use crate::grpc::wire::put_bytes;
    use crate::hot::send::Batch;

    fn read(request: &SendMany) -> Read<usize> {
        let bytes = request.encode_to_vec();
        let message = schema().named("SendMany");
        let rows = read_rows(message, &bytes)?;
        Batch::read(MessageSource::new(message, rows, &bytes), &Limits::default())
            .map(|batch| batch.with_items(|items| items.len()))
    }

    #[test]
    fn a_message_is_read_with_all_that_is_inside_it() {
        let step = Step { queue: "b".into(), payload: Some((&b"\xff"[..]).into()), ..Step::default() };
        let message = Message {
            payload: (&b"\xff\x00"[..]).into(),
            headers: vec![
                Header { name: "b".into(), value: "1".into() },
                Header { name: "a".into(), value: "".into() },
            ],
            tags: vec!["t".into()],
            priority: Some(9),
            unique: Some(Unique { key: "k".into(), ..Unique::default() }.into()),
            backoff: Some(
                Backoff { kind: Some("fixed".into()), base_ms: Some(5), ..Backoff::default() }.into(),
            ),
            chain: vec![step.clone(), step],
            hold: Some(true),
            ..Message::default()
        };
        let request = SendMany { messages: vec![Message::default(), message], ..SendMany::default() };
        let bytes = request.encode_to_vec();
        let message = schema().named("SendMany");
        let rows = read_rows(message, &bytes).unwrap();
        let source = MessageSource::new(message, rows, &bytes);
        let batch = Batch::read(source, &Limits::default()).unwrap();
        batch.with_items(|items| {
            assert_eq!((items.len(), items[0].payload), (2, &b""[..]));
            let item = &items[1];
            assert_eq!((item.payload, item.headers), (&b"\xff\x00"[..], &[("b", "1"), ("a", "")][..]));
            assert_eq!((item.tags, item.priority), (&["t"][..], 9));
            assert_eq!(item.backoff.map(|backoff| backoff.base_ms), Some(5));
            let options = item.options.unwrap();
            assert!(options.hold && options.unique.is_some_and(|unique| unique.key == b"k"));
            let Chain::Given(steps) = options.chain else { panic!("no chain") };
            assert_eq!((steps.steps.len(), steps.steps[1].item.payload), (2, &b"\xff"[..]));
        });
    }

    #[test]
    fn faults_have_their_place() {
        let fault = |message: Message| {
            let messages = vec![Message::default(), message];
            let fault = read(&SendMany { messages, ..SendMany::default() }).unwrap_err();
            format!("{} {}: {}", fault.code, fault.field, fault.reason)
        };
        assert_eq!(
            fault(Message { priority: Some(10), ..Message::default() }),
            "invalid_argument messages[1].priority: expected a number from 0 to 9, got 10"
        );
        assert_eq!(
            fault(Message { unique: Some(Unique::default().into()), ..Message::default() }),
            "missing_field messages[1].unique.key: a unique message needs its key"
        );
        // A client may write the default of a field that it does not give.
        let given_as_none = Message { ordering_key: "".into(), ..Message::default() };
        let mut bytes = given_as_none.encode_to_vec();
        put_bytes(&mut bytes, 10, b"");
        let mut request = Vec::new();
        put_bytes(&mut request, 2, &bytes);
        let message = schema().named("SendMany");
        let rows = read_rows(message, &request).unwrap();
        Batch::read(MessageSource::new(message, rows, &request), &Limits::default()).unwrap();
        let empty = read(&SendMany::default()).unwrap_err();
        assert_eq!(
            (empty.field.as_str(), empty.reason.as_str()),
            ("messages", "expected at least one message")
        );
    }
}
