//! One method per call of the API.

mod admin;
mod messages;
mod queues;
mod settle;
