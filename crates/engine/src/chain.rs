//! What follows a message when it is done: the steps of its chain; and what follows when it fails.

use crate::command::SendItem;

/// Most steps of one chain, the message that carries it not counted.
pub const STEPS_MAX: usize = 100;
/// What the steps of one message may take in memory, in bytes: everything of them but what goes with a
/// payload.
pub const CHAIN_BYTES_MAX: usize = 16 << 10;

/// The steps that a message carries.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Chain<'a> {
    /// None.
    #[default]
    None,
    /// As a sender gives them.
    Given(&'a Steps<'a>),
    /// As they lie in a record.
    Laid(&'a [u8]),
}

impl Chain<'_> {
    /// How many steps a sender gives, the one for a failure included.
    pub(crate) fn len(&self) -> usize {
        match self {
            Chain::Given(steps) => steps.steps.len() + usize::from(steps.on_failure.is_some()),
            Chain::None | Chain::Laid(_) => 0,
        }
    }
}

/// The steps of a chain; at least one of the two is given.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps<'a> {
    /// Those that follow, each when the one before it is done; at most [`STEPS_MAX`].
    pub steps: &'a [Step<'a>],
    /// What follows instead when one of them fails.
    pub on_failure: Option<&'a Step<'a>>,
}

/// One message that will be sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Step<'a> {
    /// Name of the queue.
    pub queue: &'a str,
    /// Whether its payload is that of `item`; if not, it is the result of the message before it, or, of what
    /// follows a failure, the payload of what has failed. Then `item` has neither payload nor content type
    /// nor tags.
    pub own_payload: bool,
    /// The message. It is not unique, waits for no others, and has no chain.
    pub item: SendItem<'a>,
}
