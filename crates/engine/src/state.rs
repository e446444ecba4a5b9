//! The states of a message.

/// The state of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// Waits for its time.
    Delayed,
    /// Waits for a consumer.
    Ready,
    /// Held by a consumer.
    Leased,
    /// Waits for a person.
    Held,
    /// A dead letter.
    Dead,
    /// Would be ready, but waits on what blocks it: another message, or a limit.
    Blocked,
    /// Finished, and kept for a while for those who ask.
    Done,
}

impl State {
    /// All states, in the order of [`crate::query::Counters::states`].
    pub const ALL: [State; State::COUNT] =
        [State::Delayed, State::Ready, State::Leased, State::Held, State::Dead, State::Blocked, State::Done];
    /// Number of states.
    pub const COUNT: usize = 7;

    /// The name used in every API.
    pub fn name(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Leased => "leased",
            State::Held => "held",
            State::Dead => "dead",
            State::Blocked => "blocked",
            State::Done => "done",
        }
    }
}
