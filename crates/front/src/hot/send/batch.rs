//! The messages of a request.

mod steps;
#[cfg(test)]
mod tests;

use sluice_engine::Error;
use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::error::FieldPath;
use sluice_engine::item::SendOptions;
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, Limits, PRIORITY_MAX, TAGS_MAX};
use sluice_engine::settings::Backoff;

use self::steps::{Carried, StepFields};
use super::fields::{GROUP_FIELDS, GROUP_MESSAGE_FIELDS, MESSAGE_FIELDS, SEND_FIELDS};
use crate::hot::content::{Content, Names};
use crate::hot::options::{AT_MS_MAX, Options};
use sluice_calls::settings;

use crate::hot::content::Text;
use crate::hot::source::Source;
use sluice_calls::fault::{Fault, Read};

/// The fields of a payload.
const PAYLOAD: Names = Names { text: "payload", base64: "payload_base64" };

/// The messages of a request, in flat lists that all messages share.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    messages: Vec<Message<'a>>,
    headers: Vec<(Text<'a>, Text<'a>)>,
    tags: Vec<Text<'a>>,
    options: Vec<Options<'a>>,
    steps: Vec<StepFields<'a>>,
    /// Texts that held escapes.
    scratch: String,
    /// Payloads that were base64.
    octets: Vec<u8>,
    /// True when the request was a list.
    pub(crate) is_list: bool,
    /// True when the last message is the callback of a group.
    has_callback: bool,
    /// Places of the messages among the operations of a transaction, if they are sent by one.
    operations: Vec<usize>,
}

#[derive(Debug, Default)]
struct Message<'a> {
    payload: Option<Content<'a>>,
    content_type: Option<Text<'a>>,
    /// From and to in the list of headers.
    headers: (usize, usize),
    /// From and to in the list of tags.
    tags: (usize, usize),
    priority: u8,
    deliver: Deliver,
    max_attempts: u16,
    backoff: Option<Backoff>,
    /// Place in the list of options.
    options: Option<usize>,
    /// Places in the list of steps.
    carried: Carried,
}

impl<'a> Batch<'a> {
    /// Reads one message or a list of them.
    pub(crate) fn read(mut reader: impl Source<'a>, limits: &Limits) -> Read<Batch<'a>> {
        let mut batch = Batch::default();
        let mut single = Message::default();
        let mut count = 0u64;
        let mut stray = None;
        reader.object(SEND_FIELDS, |reader, name| {
            if name != "messages" {
                stray = Some(name);
                return batch.message_field(reader, name, &mut single, limits);
            }
            batch.is_list = true;
            reader.array(|reader, _| {
                let mut message = Message::default();
                reader.object(MESSAGE_FIELDS, |reader, name| {
                    batch.message_field(reader, name, &mut message, limits)
                })?;
                message.check()?;
                batch.check_options(&message)?;
                count += 1;
                batch.keep(message, count <= u64::from(limits.batch_items));
                Ok(())
            })
        })?;
        match (batch.is_list, stray) {
            (true, Some(name)) => return Err(Fault::conflict("messages", name)),
            (true, None) => {}
            (false, _) => {
                single.check()?;
                batch.check_options(&single)?;
                count = 1;
                batch.messages.push(single);
            }
        }
        batch.scratch = reader.finish()?;
        let limit = u64::from(limits.batch_items);
        if count == 0 {
            return Err(Fault::invalid("expected at least one message").inside("messages"));
        }
        if count > limit {
            return Err(Error::BatchTooLarge { what: "messages", size: count, limit }.into());
        }
        batch.decode_base64()?;
        Ok(batch)
    }

    /// Reads the messages of a group and its callback, which comes last here, with their queues.
    pub(crate) fn read_group(
        mut reader: impl Source<'a>,
        limits: &Limits,
    ) -> Read<(Batch<'a>, Vec<Text<'a>>)> {
        let mut batch = Batch { is_list: true, has_callback: true, ..Batch::default() };
        let (mut queues, mut callback, mut count) = (Vec::new(), None, None);
        let limit = u64::from(limits.batch_items);
        reader.object(GROUP_FIELDS, |reader, name| {
            if name == "callback" {
                callback = Some(batch.group_message(reader, limits)?);
                return Ok(());
            }
            let count = count.insert(0);
            reader.array(|reader, _| {
                let (message, queue) = batch.group_message(reader, limits)?;
                *count += 1;
                batch.keep(message, *count <= limit);
                if *count <= limit {
                    queues.push(queue);
                }
                Ok(())
            })
        })?;
        let size =
            count.ok_or_else(|| Fault::missing("messages", "a group needs its list, which may be empty"))?;
        let (message, queue) = callback.ok_or_else(|| {
            Fault::missing("callback", "a group needs the message that follows when it has ended")
        })?;
        if size > limit {
            return Err(Error::BatchTooLarge { what: "messages", size, limit }.into());
        }
        batch.messages.push(message);
        queues.push(queue);
        batch.scratch = reader.finish()?;
        batch.decode_base64()?;
        Ok((batch, queues))
    }

    /// Adds a message. One over the limit is counted by the caller, to name the number, but not kept.
    fn keep(&mut self, message: Message<'a>, is_within_limit: bool) {
        if is_within_limit {
            self.messages.push(message);
        } else {
            self.forget(&message);
        }
    }

    /// Drops the message read last, with its entries in the lists.
    fn forget(&mut self, message: &Message<'a>) {
        self.headers.truncate(message.headers.0);
        self.tags.truncate(message.tags.0);
        self.options.truncate(message.options.unwrap_or(self.options.len()));
        self.steps.truncate(message.carried.first().unwrap_or(self.steps.len()));
    }

    fn group_message(
        &mut self,
        reader: &mut impl Source<'a>,
        limits: &Limits,
    ) -> Read<(Message<'a>, Text<'a>)> {
        let read = self.message_with_queue(reader, GROUP_MESSAGE_FIELDS, "the message", limits)?;
        read.0.check()?;
        Ok(read)
    }

    /// Reads the message of an operation of a transaction; tells its queue. [`Batch::finish`] must follow.
    pub(crate) fn read_for_queue(
        &mut self,
        reader: &mut impl Source<'a>,
        operation: usize,
        limits: &Limits,
    ) -> Read<Text<'a>> {
        let (message, queue) = self.group_message(reader, limits)?;
        self.messages.push(message);
        self.operations.push(operation);
        Ok(queue)
    }

    /// Reads a message that names its queue.
    fn message_with_queue(
        &mut self,
        reader: &mut impl Source<'a>,
        fields: &'static [&'static str],
        what: &str,
        limits: &Limits,
    ) -> Read<(Message<'a>, Text<'a>)> {
        let (mut message, mut queue) = (Message::default(), None);
        reader.object(fields, |reader, name| match name {
            "queue" => {
                queue = Some(reader.string()?);
                Ok(())
            }
            _ => self.message_field(reader, name, &mut message, limits),
        })?;
        self.check_options(&message)?;
        match queue {
            Some(queue) => Ok((message, queue)),
            None => Err(Fault::missing("queue", &format!("say which queue {what} goes to"))),
        }
    }

    /// A text of this request.
    pub(crate) fn text(&self, text: Text<'a>) -> &str {
        text.get(&self.scratch)
    }

    /// Reads one message that lies within a larger body; [`Batch::finish`] must follow.
    pub(crate) fn read_one(reader: &mut impl Source<'a>, limits: &Limits) -> Read<Batch<'a>> {
        let mut batch = Batch::default();
        let mut message = Message::default();
        reader
            .object(MESSAGE_FIELDS, |reader, name| batch.message_field(reader, name, &mut message, limits))?;
        message.check()?;
        batch.check_options(&message)?;
        batch.messages.push(message);
        Ok(batch)
    }

    /// Takes over the scratch of the reader that has read it.
    pub(crate) fn finish(&mut self, scratch: String) -> Read<()> {
        self.scratch = scratch;
        self.decode_base64()
    }

    fn message_field(
        &mut self,
        reader: &mut impl Source<'a>,
        name: &'static str,
        message: &mut Message<'a>,
        limits: &Limits,
    ) -> Read<()> {
        match name {
            "payload" | "payload_base64" => {
                reader.content(&mut message.payload, PAYLOAD, name).map_err(Fault::of_payload)?;
            }
            "content_type" => message.content_type = Some(reader.string()?),
            "headers" => message.headers = self.read_headers(reader, limits)?,
            "tags" => message.tags = self.read_tags(reader)?,
            "priority" => message.priority = reader.integer(0, u64::from(PRIORITY_MAX))? as u8,
            "delay_ms" | "deliver_at_ms" => {
                if message.deliver != Deliver::Now {
                    return Err(Fault::conflict("delay_ms", "deliver_at_ms"));
                }
                message.deliver = match name {
                    "delay_ms" => Deliver::AfterMs(reader.integer(0, DELAY_MS_MAX)?),
                    _ => Deliver::AtUs(reader.integer(0, AT_MS_MAX)? * 1_000),
                };
            }
            "max_attempts" => message.max_attempts = reader.integer(1, u64::from(ATTEMPTS_MAX))? as u16,
            "backoff" => message.backoff = Some(reader.value::<settings::Backoff>()?.into()),
            "chain" | "on_failure" => self.read_steps(reader, name, message, limits)?,
            other => {
                let at = self.enter_options(message);
                if !self.options[at].field(reader, other)? {
                    return Err(Fault::unknown("field", other, MESSAGE_FIELDS));
                }
            }
        }
        Ok(())
    }

    /// The place of a message's options, which it gets if it has none.
    fn enter_options(&mut self, message: &mut Message<'a>) -> usize {
        let at = *message.options.get_or_insert(self.options.len());
        if at == self.options.len() {
            self.options.push(Options::default());
        }
        at
    }

    fn check_options(&self, message: &Message<'a>) -> Read<()> {
        message.options.and_then(|at| self.options.get(at)).map_or(Ok(()), Options::check)
    }

    fn read_headers(&mut self, reader: &mut impl Source<'a>, limits: &Limits) -> Read<(usize, usize)> {
        let from = self.headers.len();
        let mut count = 0u64;
        let limit = u64::from(limits.headers);
        reader.entries(|reader, key| {
            count += 1;
            if count > limit {
                return reader.string().map(|_| ());
            }
            let scratch = reader.scratch();
            let name = key.get(scratch);
            if self.headers[from..].iter().any(|(other, _)| other.get(scratch) == name) {
                return Err(Fault::new("duplicate_field", "the header is given twice").inside(name));
            }
            let value = match reader.string() {
                Ok(value) => value,
                Err(fault) => return Err(fault.inside(key.get(reader.scratch()))),
            };
            self.headers.push((key, value));
            Ok(())
        })?;
        if count > limit {
            let field = FieldPath::default();
            return Err(Error::HeadersTooLarge { field, what: "headers", size: count, limit }.into());
        }
        Ok((from, self.headers.len()))
    }

    fn read_tags(&mut self, reader: &mut impl Source<'a>) -> Read<(usize, usize)> {
        let from = self.tags.len();
        reader.array(|reader, at| {
            let tag = reader.string()?;
            if at >= TAGS_MAX {
                return Err(Fault::invalid(format!("too many tags: use at most {TAGS_MAX}")));
            }
            self.tags.push(tag);
            Ok(())
        })?;
        Ok((from, self.tags.len()))
    }

    fn decode_base64(&mut self) -> Read<()> {
        let (scratch, octets) = (&self.scratch, &mut self.octets);
        let mut decode = |message: &mut Message<'_>| match &mut message.payload {
            Some(payload) => payload.decode(PAYLOAD, scratch, octets).err(),
            None => None,
        };
        let mut messages = self.messages.iter_mut().enumerate();
        if let Some((at, fault)) = messages.find_map(|(at, message)| Some((at, decode(message)?))) {
            return Err(self.place_of_message(at, fault));
        }
        let mut steps = self.steps.iter_mut().enumerate();
        if let Some((at, fault)) = steps.find_map(|(at, step)| Some((at, decode(&mut step.message)?))) {
            return Err(self.place_of_step(at, fault));
        }
        Ok(())
    }

    /// Adds the place of a message to a fault in it.
    fn place_of_message(&self, at: usize, fault: Box<Fault>) -> Box<Fault> {
        if let Some(operation) = self.operations.get(at) {
            fault.inside("send").at(*operation).inside("operations")
        } else if self.has_callback && at + 1 == self.messages.len() {
            fault.inside("callback")
        } else if self.is_list {
            fault.at(at).inside("messages")
        } else {
            fault
        }
    }

    /// Lends out the messages of one queue as the engine takes them.
    pub(crate) fn with_items<T>(&self, take: impl FnOnce(&[SendItem<'_>]) -> T) -> T {
        let (headers, tags, plain) = (self.headers(), self.tags(), self.options());
        let steps = self.steps(&headers, &tags, &plain);
        let chains = self.chains(&steps);
        let options = self.chained(plain.clone(), &chains);
        take(&self.items(&headers, &tags, &options))
    }

    /// The headers of all messages, for [`Batch::items`] to take from.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.get(&self.scratch), value.get(&self.scratch))).collect()
    }

    /// The tags, likewise.
    pub(crate) fn tags(&self) -> Vec<&str> {
        self.tags.iter().map(|tag| tag.get(&self.scratch)).collect()
    }

    /// The options of those messages that have any, likewise.
    pub(crate) fn options(&self) -> Vec<SendOptions<'_>> {
        self.options.iter().map(|options| options.as_engine(&self.scratch)).collect()
    }

    /// The messages as the engine takes them, with what [`Batch::headers`], [`Batch::tags`] and
    /// [`Batch::options`] gave.
    pub(crate) fn items<'s>(
        &'s self,
        headers: &'s [(&'s str, &'s str)],
        tags: &'s [&'s str],
        options: &'s [SendOptions<'s>],
    ) -> Vec<SendItem<'s>> {
        self.messages.iter().map(|message| self.item(message, headers, tags, options)).collect()
    }

    fn item<'s>(
        &'s self,
        message: &Message<'a>,
        headers: &'s [(&'s str, &'s str)],
        tags: &'s [&'s str],
        options: &'s [SendOptions<'s>],
    ) -> SendItem<'s> {
        SendItem {
            options: message.options.and_then(|at| options.get(at)),
            payload: message.payload.map_or(b"", |payload| payload.get(&self.scratch, &self.octets)),
            content_type: message.content_type.map_or("", |text| text.get(&self.scratch)),
            headers: &headers[message.headers.0..message.headers.1],
            tags: &tags[message.tags.0..message.tags.1],
            priority: message.priority,
            deliver: message.deliver,
            max_attempts: message.max_attempts,
            backoff: message.backoff,
        }
    }
}

impl Message<'_> {
    fn check(&self) -> Read<()> {
        match self.payload {
            Some(_) => Ok(()),
            None => {
                Err(Fault::missing("payload", "a message needs payload (text) or payload_base64 (octets)"))
            }
        }
    }
}
