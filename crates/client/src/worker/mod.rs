//! The worker: receives, runs a handler for each message, settles, and keeps leases alive meanwhile.

mod leases;
mod link;
mod options;
mod run;
mod settler;
mod transactional;

pub use options::{Job, Summary, Worker, WorkerEvent, WorkerOptions, WorkerTransport};
