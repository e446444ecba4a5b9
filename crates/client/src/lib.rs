//! The Rust client of Sluice: async, over HTTP and gRPC, with connections that are reused and retries that are safe.
//!
//! What lives here: [`Client`] (every call of the HTTP API), [`Session`] (a stream of frames), [`Watch`] (a stream of events), [`Worker`] (a loop that
//! receives, runs a handler, and settles), the types of requests and responses, and [`ClientError`]. What does not: any
//! rule of the queue; the server decides, and says so with a code.
//!
//! Map: `client` the handle and its options, `calls` one method per call, `transport` connections, `credentials` what they
//! trust and show, `retry` when to try again, `encode` JSON of the hot requests, `answers` and `json` their responses,
//! `types` the other responses, `message` and `flows` what is sent, `session` streams over gRPC, `events` those of server-sent events, `worker` the loop.
//!
//! ```no_run
//! # async fn example() -> Result<(), sluice_client::ClientError> {
//! use sluice_client::{Client, Message, Receive};
//!
//! let client = Client::new("http://127.0.0.1:7070")?;
//! client.send("emails", &[Message::new(b"hello")]).await?;
//! for message in client.receive(&Receive::from_queue("emails")).await? {
//!     client.ack(&message.receipt).await?;
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod answers;
mod base64;
mod calls;
mod changes;
mod client;
mod consumers;
mod credentials;
mod encode;
mod error;
mod events;
mod flows;
mod json;
mod limits;
mod message;
mod retry;
mod schedules;
mod session;
mod stored;
mod tls_fault;
mod transport;
mod types;
mod worker;

pub use access::{AuditPage, Token, TokenMade, TokenNew, WhoAmI};
pub use answers::{Delivered, DeliveredRef, Details, ItemResult, Payload, ReceivedBody, SentBody, SentIds};
pub use changes::{Bulk, BulkFilter, BulkHeader, Change, Changed, NewFields, Note};
pub use client::{Client, Options};
pub use consumers::{Consumer, Held, Holder};
pub use credentials::Credentials;
pub use error::{ClientError, TransportKind};
pub use events::{Event, Watch, WatchOptions};
pub use flows::{Flow, FlowNode, FlowParent, Group, GroupCounts, GroupSent, QueueMessage, Step};
pub use limits::{Limit, LimitKey, LimitSettings, Rate};
pub use message::{Message, MessageOptions, Receive, Report, Settle, SettleItem, Unique, WorkResult};
pub use schedules::{Schedule, ScheduleSettings};
pub use session::{Frames, Session};
/// The frames of a session.
pub use sluice_proto::v1;
pub use stored::{Attempt, Awaited, Progress, Stored, StoredPage};
pub use tls_fault::TlsFault;
pub use transport::Download;
pub use types::{
    Backoff, BackoffKind, Counts, ErrorBody, FilesUse, KeyUse, Keys, Namespace, OnExpire, OrderingRetry,
    Overflow, Placement, Queue, QueueChange, QueueDefaults, QueueSettings, QuotaChange, Quotas, Redriving,
    Totals,
};
pub use worker::{Job, Stop, Summary, Worker, WorkerEvent, WorkerOptions, WorkerTransport};
