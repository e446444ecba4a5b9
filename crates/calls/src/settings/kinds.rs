//! Types of settings: their conversion from and to the engine's, and whether an answer shows them.

use sluice_engine::search::SearchKinds;
use sluice_engine::settings::{self as engine, BackoffKind, OnExpire, OrderingRetry, Overflow, Placement};

use super::{Backoff, FairWeights};
use crate::value::{Within, Word, Words, words};

words! {
    OrderingRetry: "block" = OrderingRetry::Block, "step_aside" = OrderingRetry::StepAside;
    OnExpire: "dead_letter" = OnExpire::DeadLetter, "drop" = OnExpire::Drop;
    Overflow: "refuse_new" = Overflow::RefuseNew, "dead_letter_oldest" = Overflow::DeadLetterOldest;
    Placement: "fair" = Placement::Fair, "least_loaded" = Placement::LeastLoaded, "sticky" = Placement::Sticky;
    SearchKinds:
        "none" = SearchKinds::NONE,
        "tags" = SearchKinds::TAGS,
        "errors" = SearchKinds::ERRORS,
        "tags_and_errors" = SearchKinds::ALL;
    BackoffKind:
        "none" = BackoffKind::None,
        "fixed" = BackoffKind::Fixed,
        "linear" = BackoffKind::Linear,
        "exponential" = BackoffKind::Exponential;
}

/// A setting that every answer shows.
pub(super) type Always<T> = T;
/// A setting that an answer leaves out while its value is that of a new queue.
pub(super) type UnlessNew<T> = Option<T>;

/// A setting in an answer.
pub(super) trait Shown<T> {
    /// The setting with this value; `new` is the value of a new queue.
    fn of(value: T, new: &T) -> Self;

    /// The value; `None`: it is left out.
    fn shown(&self) -> Option<&T>;
}

impl<T> Shown<T> for Always<T> {
    fn of(value: T, _: &T) -> Self {
        value
    }

    fn shown(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T: PartialEq> Shown<T> for UnlessNew<T> {
    fn of(value: T, new: &T) -> Self {
        Some(value).filter(|value| value != new)
    }

    fn shown(&self) -> Option<&T> {
        self.as_ref()
    }
}

/// A type of settings in requests and answers; `E` is the engine's type.
pub(super) trait Setting<E> {
    /// The setting with the engine's value.
    fn of_engine(value: &E) -> Self;

    /// The engine's value.
    fn into_engine(self) -> E;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl<const MIN: u64, const MAX: u64> Setting<$type> for Within<MIN, MAX> {
            fn of_engine(value: &$type) -> Self {
                Within::clamped(u64::from(*value))
            }

            fn into_engine(self) -> $type {
                <$type>::try_from(self.get()).unwrap_or(<$type>::MAX)
            }
        })*
    };
}

numbers!(u16, u32, u64);

impl<T: Words> Setting<T> for Word<T> {
    fn of_engine(value: &T) -> Self {
        Word(*value)
    }

    fn into_engine(self) -> T {
        self.0
    }
}

impl Setting<bool> for bool {
    fn of_engine(value: &bool) -> Self {
        *value
    }

    fn into_engine(self) -> bool {
        self
    }
}

impl Setting<Box<str>> for String {
    fn of_engine(value: &Box<str>) -> Self {
        value.to_string()
    }

    fn into_engine(self) -> Box<str> {
        self.into()
    }
}

impl Setting<engine::Backoff> for Backoff {
    fn of_engine(value: &engine::Backoff) -> Self {
        (*value).into()
    }

    fn into_engine(self) -> engine::Backoff {
        self.into()
    }
}

impl Setting<engine::FairWeights> for FairWeights {
    fn of_engine(value: &engine::FairWeights) -> Self {
        FairWeights(value.clone())
    }

    fn into_engine(self) -> engine::FairWeights {
        self.0
    }
}
