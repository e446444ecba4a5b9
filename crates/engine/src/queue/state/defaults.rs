//! State of queue defaults: settings of new queues, by pattern of their names.

use crate::core::namespace::NamespaceSlot;
use crate::queue::state::DefaultsSlot;
use crate::settings::QueuePatch;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Settings of new queues whose names match a pattern; or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    /// Slot of its namespace.
    pub(crate) namespace: NamespaceSlot,
    pub(crate) pattern: Box<str>,
    pub(crate) patch: QueuePatch,
    next_vacant: Option<DefaultsSlot>,
}

/// Defaults of all namespaces.
pub(crate) type AllDefaults = Slab<Defaults, 64>;

impl Defaults {
    pub(crate) fn new(namespace: NamespaceSlot, pattern: &str, patch: QueuePatch) -> Defaults {
        Defaults { namespace, pattern: pattern.into(), patch, next_vacant: None }
    }
}

impl PlainItem for Defaults {
    const BLOCK: usize = 4;

    fn vacant(next: DefaultsSlot) -> Self {
        Defaults { next_vacant: Some(next), ..Defaults::new(Slot::NIL, "", QueuePatch::default()) }
    }

    fn next_vacant(&self) -> Option<DefaultsSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.namespace.write(out);
        out.name(&self.pattern);
        self.patch.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let namespace = Slot::read(reader)?;
        let pattern = reader.name()?;
        Some(Defaults::new(namespace, pattern, QueuePatch::read(reader)?))
    }
}

/// True if a name matches a pattern, in which `*` stands for any number of characters, none as well. Takes
/// time in proportion to the two lengths together.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let (between, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = name.strip_prefix(begin).and_then(|name| name.strip_suffix(end));
    let Some(mut inner) = inner else { return false };
    for part in between.split('*') {
        let Some(found) = inner.find(part) else { return false };
        inner = &inner[found + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name) in [
            ("*", "a"),
            ("mail.*", "mail.eu"),
            ("mail.*", "mail."),
            ("*.eu", "mail.eu"),
            ("m*l.*u", "mail.eu"),
            ("a*a*a", "aaaa"),
            ("mail", "mail"),
            ("**", "x"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("mail.*", "mail"),
            ("*.eu", "mail.eux"),
            ("a*a*a", "aa"),
            ("mail", "mails"),
            ("b*", "ab"),
            ("ab*ba", "aba"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
