//! The client against servers that answer as told.
#![allow(clippy::unwrap_used)]

mod attachments;
mod documents;
mod locks;
mod retries;
mod sessions;
mod support;
mod transactional;
mod worker;
