//! Fields of records whose layout is the same wherever they stand.

use crate::id::{BlobRef, ConsumerId, MessageId, NamespaceId, ReceiptKey, TransactionId};
use crate::limit::LimitRules;
use crate::limits::Limits;
use crate::settings::{QueuePatch, Quotas};
use crate::wire::{HeadPart, Put, Reader};

/// A field of a command, which knows its bytes.
pub(crate) trait WriteField {
    fn write(&self, out: &mut Vec<u8>);
}

/// A field of a record, read back; `None`: the bytes end too early, or no writer wrote them.
pub(crate) trait ReadField<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Option<Self>;
}

impl<T: WriteField + for<'a> ReadField<'a>> HeadPart for T {
    fn write_head(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        T::read(reader)
    }
}

macro_rules! fields {
    ($($type:ty: |$value:ident, $out:ident| $write:expr, |$reader:ident| $read:expr;)*) => {
        $(
            impl WriteField for $type {
                fn write(&self, $out: &mut Vec<u8>) {
                    let $value = self;
                    $write;
                }
            }

            impl<'a> ReadField<'a> for $type {
                fn read($reader: &mut Reader<'a>) -> Option<Self> {
                    $read
                }
            }
        )*
    };
}

fields! {
    bool: |value, out| out.bool(*value), |reader| reader.bool();
    u16: |value, out| out.u16(*value), |reader| reader.u16();
    u32: |value, out| out.u32(*value), |reader| reader.u32();
    u64: |value, out| out.u64(*value), |reader| reader.u64();
    NamespaceId: |value, out| out.u32(value.0), |reader| reader.u32().map(NamespaceId);
    ConsumerId: |value, out| out.u64(value.0), |reader| reader.u64().map(ConsumerId);
    BlobRef: |value, out| out.blob(*value), |reader| reader.blob();
    ReceiptKey: |value, out| out.raw(&value.0), |reader| reader.array().map(|bytes| ReceiptKey(*bytes));
    Quotas: |value, out| value.write(out), |reader| Quotas::read(reader);
    Limits: |value, out| value.write(out), |reader| Limits::read(reader);
    LimitRules: |value, out| value.write(out), |reader| LimitRules::read(reader);
    QueuePatch: |value, out| value.write(out), |reader| QueuePatch::read(reader);
}

impl WriteField for MessageId {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.namespace.0);
        out.u64(self.sequence);
    }
}

impl<'a> ReadField<'a> for MessageId {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(MessageId { namespace: NamespaceId(reader.u32()?), sequence: reader.u64()? })
    }
}

impl WriteField for TransactionId {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.coordinator.0);
        out.u64(self.number);
    }
}

impl<'a> ReadField<'a> for TransactionId {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(TransactionId { coordinator: NamespaceId(reader.u32()?), number: reader.u64()? })
    }
}

impl WriteField for Option<NamespaceId> {
    fn write(&self, out: &mut Vec<u8>) {
        out.bool(self.is_some());
        out.u32(self.map_or(0, |number| number.0));
    }
}

impl<'a> ReadField<'a> for Option<NamespaceId> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let (is_some, number) = (reader.bool()?, reader.u32()?);
        Some(is_some.then_some(NamespaceId(number)))
    }
}

impl WriteField for &str {
    fn write(&self, out: &mut Vec<u8>) {
        out.name(self);
    }
}

impl<'a> ReadField<'a> for &'a str {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        reader.name()
    }
}

impl WriteField for &[u8] {
    fn write(&self, out: &mut Vec<u8>) {
        out.bytes16(self);
    }
}

impl<'a> ReadField<'a> for &'a [u8] {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        reader.bytes16()
    }
}
