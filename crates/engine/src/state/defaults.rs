//! Settings of queues that are not made yet, by pattern of their names.

use crate::settings::QueuePatch;
use crate::store::NIL;
use crate::store::slab::{PlainSlot, Slab};
use crate::wire::{Put, Reader};

/// What queues begin with whose names match a pattern; or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    /// Slot of its namespace.
    pub(crate) namespace: u32,
    pub(crate) pattern: Box<str>,
    pub(crate) patch: QueuePatch,
    next_vacant: Option<u32>,
}

/// Those of all namespaces.
pub(crate) type AllDefaults = Slab<Defaults, 64>;

impl Defaults {
    pub(crate) fn new(namespace: u32, pattern: &str, patch: QueuePatch) -> Defaults {
        Defaults { namespace, pattern: pattern.into(), patch, next_vacant: None }
    }
}

impl PlainSlot for Defaults {
    const BLOCK: usize = 4;

    fn vacant(next: u32) -> Self {
        Defaults { next_vacant: Some(next), ..Defaults::new(NIL, "", QueuePatch::default()) }
    }

    fn next_vacant(&self) -> Option<u32> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u32(self.namespace);
        out.name(&self.pattern);
        self.patch.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let namespace = reader.u32()?;
        let pattern = reader.name()?;
        Some(Defaults::new(namespace, pattern, QueuePatch::read(reader)?))
    }
}

/// Whether a name matches a pattern, in which `*` stands for any number of characters, none as well.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where to go on when what follows the last star does not match.
    let mut retry = None;
    while from < name.len() {
        if at < pattern.len() && pattern[at] == b'*' {
            at += 1;
            retry = Some((at, from));
        } else if at < pattern.len() && pattern[at] == name[from] {
            at += 1;
            from += 1;
        } else if let Some((star, begin)) = retry {
            (at, from) = (star, begin + 1);
            retry = Some((star, begin + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
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
        for (pattern, name) in
            [("mail.*", "mail"), ("*.eu", "mail.eux"), ("a*a*a", "aa"), ("mail", "mails"), ("b*", "ab")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
