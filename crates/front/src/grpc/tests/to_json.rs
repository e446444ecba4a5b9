//! A message of a call as JSON, to look at.

use std::borrow::Cow;

use crate::grpc::rows::{read_rows, text, text_of};
use crate::grpc::schema::{Field, Kind, MessageType, Schema, schema};
use crate::grpc::wire::Raw;
use sluice_calls::Read;

use crate::json::{push_number, push_text};

/// Appends a JSON object with these fields.
pub(super) fn write_object(message: &MessageType, rows: &[(usize, Raw<'_>)], out: &mut Vec<u8>) -> Read<()> {
    Writer { schema: schema(), out }.object(message, rows)
}

struct Writer<'o> {
    schema: &'static Schema,
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn object(&mut self, message: &MessageType, rows: &[(usize, Raw<'_>)]) -> Read<()> {
        self.out.push(b'{');
        for (index, of_field) in rows.chunk_by(|one, other| one.0 == other.0).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            let field = &message.fields[of_field[0].0];
            push_text(self.out, field.json_name());
            self.out.push(b':');
            self.field(field, of_field).map_err(|fault| fault.inside(&field.name))?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn field(&mut self, field: &Field, rows: &[(usize, Raw<'_>)]) -> Read<()> {
        if let Kind::Entries(entry) = field.kind {
            return self.entries(entry, rows);
        }
        if !field.is_list {
            return self.single(field.kind, rows);
        }
        self.out.push(b'[');
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.single(field.kind, std::slice::from_ref(row)).map_err(|fault| fault.at(index))?;
        }
        self.out.push(b']');
        Ok(())
    }

    /// Reads a field that is no list: a message that came in several pieces as one, of anything else the
    /// last.
    fn single(&mut self, kind: Kind, rows: &[(usize, Raw<'_>)]) -> Read<()> {
        match (kind, rows) {
            (Kind::Message(at), [(_, Raw::Bytes(bytes))]) => self.message(at, bytes),
            (Kind::Message(at), many) => {
                let pieces =
                    many.iter().map(|(_, raw)| if let Raw::Bytes(bytes) = raw { *bytes } else { &[] });
                self.message(at, &pieces.collect::<Vec<_>>().concat())
            }
            (kind, [.., (_, last)]) => self.value(kind, *last),
            (_, []) => Ok(()),
        }
    }

    fn value(&mut self, kind: Kind, value: Raw<'_>) -> Read<()> {
        match (kind, value) {
            (Kind::Boolean, Raw::Number(number)) => {
                self.out.extend_from_slice(if number == 0 { b"false" } else { b"true" });
            }
            (_, Raw::Number(number)) => push_number(self.out, number),
            (Kind::Octets, Raw::Bytes(bytes)) => {
                self.out.push(b'"');
                let from = self.out.len();
                self.out.resize(from + data_encoding::BASE64.encode_len(bytes.len()), 0);
                data_encoding::BASE64.encode_mut(bytes, &mut self.out[from..]);
                self.out.push(b'"');
            }
            (_, Raw::Bytes(bytes)) => push_text(self.out, text(bytes)?),
        }
        Ok(())
    }

    fn message(&mut self, at: usize, bytes: &[u8]) -> Read<()> {
        let message = self.schema.message(at);
        let rows = read_rows(message, bytes)?;
        match self.schema.stands_for(at) {
            Some(field) => self.field(field, &rows),
            None => self.object(message, &rows),
        }
    }

    fn entries(&mut self, entry: usize, rows: &[(usize, Raw<'_>)]) -> Read<()> {
        let message = self.schema.message(entry);
        self.out.push(b'{');
        for (index, (_, row)) in rows.iter().enumerate() {
            let Raw::Bytes(bytes) = row else { continue };
            if index > 0 {
                self.out.push(b',');
            }
            let rows = read_rows(message, bytes).map_err(|fault| fault.at(index))?;
            let name: Cow<'_, str> = text_of(message, &rows, 0).map_err(|fault| fault.at(index))?.into();
            push_text(self.out, &name);
            self.out.push(b':');
            let value = &message.fields[1];
            match rows.iter().rev().find(|(at, _)| *at == 1) {
                Some((_, raw)) => self.value(value.kind, *raw).map_err(|fault| fault.inside(&name))?,
                None if value.kind == Kind::Text => self.out.extend_from_slice(b"\"\""),
                None => self.out.push(b'0'),
            }
        }
        self.out.push(b'}');
        Ok(())
    }
}
