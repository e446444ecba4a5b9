//! One method per call of the API.

mod access;
mod admin;
pub(crate) mod any;
mod attachments;
mod changes;
mod cluster;
mod consumers;
mod documents;
mod events;
mod flows;
mod in_doubt;
mod limits;
mod locks;
mod messages;
mod open_transactions;
mod pages;
pub(crate) mod queues;
mod results;
mod schedules;
mod settle;
mod transactions;
