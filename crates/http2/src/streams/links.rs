//! Links of the lists that order streams by priority, kept in the streams themselves.

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Place of a stream in a list of the schedule: slots of its neighbours, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) previous: u32,
    pub(crate) next: u32,
    /// The list that it stands in, or [`UNLINKED`].
    pub(crate) list: u8,
}

/// No list.
pub(crate) const UNLINKED: u8 = u8::MAX;

impl Default for Links {
    fn default() -> Self {
        Self { previous: NONE, next: NONE, list: UNLINKED }
    }
}

impl Links {
    pub(crate) fn is_linked(self) -> bool {
        self.list != UNLINKED
    }
}
