//! The client against servers that answer as told.
#![allow(clippy::unwrap_used)]

mod retries;
mod support;
mod worker;
