//! The async client of Sluice, a durable message queue server: send messages, work on queues, administer the
//! server.
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
//!
//! | for | there is |
//! |---|---|
//! | every call of the HTTP API | [`Client`] |
//! | a loop that receives, runs a handler and settles | [`Worker`], with [`WorkerOptions`] |
//! | such a loop, whose handlers commit writes and messages with their acks | [`Worker::transactional`] |
//! | work that is committed as a whole, again after a conflict | [`Client::transact`], with a [`Work`] |
//! | messages over one gRPC stream each way | [`Client::session`], which gives a [`Session`] |
//! | locks, renewed while they are held | [`Client::lock`], which gives a [`HeldLock`] |
//! | the states of a lock, as they change | [`Client::lock_watch`], which gives a [`LockWatch`] |
//! | documents: keys with a versioned content | [`Client::document_put`], [`Client::document_update`] |
//! | events: what happens to messages, as it happens | [`Client::watch`], which gives a [`Watch`] |
//! | a server with TLS, certificates and tokens | [`Credentials`] in [`Options`] |
//!
//! Calls that fail for a reason that may pass are repeated for as long as [`Options`] say, in so far as a
//! repeat cannot take effect twice; a send carries an idempotency key for this. Every method returns a
//! [`ClientError`], which carries the stable code of the server's error where the server has answered. No
//! rule of a queue is in this crate: the server decides.
//!
//! A worker that acks what its handler has done, until the queue is empty:
//!
//! ```no_run
//! # async fn example() -> Result<(), sluice_client::ClientError> {
//! use sluice_client::{Client, Job, Settle, Stop, Worker, WorkerOptions};
//!
//! let client = Client::new("http://127.0.0.1:7070")?;
//! let options =
//!     WorkerOptions { until_empty: true, ..WorkerOptions::new(vec![("emails".to_owned(), 0)]) };
//! let handler = |job: Job| async move {
//!     println!("{}", String::from_utf8_lossy(&job.message.payload.0));
//!     Settle::Ack
//! };
//! let (events, _) = tokio::sync::mpsc::unbounded_channel();
//! let summary = Worker::new(client, options).run(Stop::new(), handler, events).await?;
//! println!("{} messages acked", summary.acked);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

// Map: `client` the handle and its options, `calls` one method per call, `transport` connections,
// `servers` which server is asked, `credentials` what they trust and show, `retry` when to try again,
// `encode` JSON of the hot requests, `answers` and `json` their responses, `types` the other responses,
// `message` and `flows` what is sent, `locks` what is held, `documents` what is kept, `transactions` what is
// done together, `work` what is read and staged until then, `session` streams over gRPC, `sse` those of
// server-sent events, `events` what they tell of messages, `stop` a signal, `worker` the loop.

mod access;
mod answers;
mod attachments;
mod base64;
mod calls;
mod changes;
mod client;
mod cluster;
mod consumers;
mod credentials;
mod documents;
mod encode;
mod error;
mod events;
mod flows;
mod json;
mod limits;
mod locks;
mod message;
mod options;
mod outgoing;
mod receiving;
mod retry;
mod schedules;
mod servers;
mod session;
mod sse;
mod stop;
mod stored;
mod tls_fault;
mod transactions;
mod transport;
mod types;
mod work;
mod worker;

pub use access::{AuditPage, Rights, StoredPolicy, Token, TokenMade, TokenNew, WhoAmI};
pub use answers::{Delivered, DeliveredRef, Details, ItemResult, Payload, ReceivedBody, SentBody, SentIds};
pub use attachments::{Attachment, AttachmentCondition, Downloading, Upload, Uploading};
pub use calls::any::AnyCall;
pub use calls::queues::*;
pub use changes::{Bulk, BulkFilter, Change, Changed, NewFields, Note};
pub use client::Client;
pub use cluster::{
    Cluster, ClusterLimits, ClusterNode, ClusterStatus, Joined, Machine, MadeJoinToken, Neighbour,
    NodeLimits, NodeStatus, ReplicatedShard, ShardFollower, Transferred,
};
pub use consumers::{Consumer, Held, Holder};
pub use credentials::Credentials;
pub use documents::{
    ChangedDocument, Document, DocumentChange, DocumentChanges, DocumentCheck, DocumentDelete, DocumentIndex,
    DocumentPatch, DocumentPut, DocumentQuery, DocumentVersion, DocumentWritten, DocumentsFound,
};
pub use error::{ClientError, TransportKind};
pub use events::{Event, Watch, WatchOptions};
pub use flows::{Flow, FlowNode, FlowParent, Group, GroupCounts, GroupSent, QueueMessage};
pub use limits::{Limit, LimitKey, LimitSettings, Rate};
pub use locks::{HeldLock, Lock, LockGrant, LockHolder, LockMode, LockRequest, LockWaiter, LockWatch};
pub use message::{Message, MessageOptions, Receive, Report, Settle, SettleItem, Step, Unique, WorkResult};
pub use options::Options;
pub use schedules::{Schedule, ScheduleSettings, Triggered};
pub use session::{Frames, Session};
/// The frames of a session.
pub use sluice_proto::v1;
pub use stop::Stop;
pub use stored::{Attempt, Awaited, MessageSearch, MessagesFound, Progress, Stored, StoredPage};
pub use tls_fault::TlsFault;
pub use transactions::{
    Begun, Committed, InDoubtTransaction, OpenTransaction, OperationResult, Resolved, StageResult,
    StagedDocument, StagedOperation, Transaction,
};
pub use transport::Download;
pub use types::{
    Backoff, BackoffKind, Counts, ErrorBody, FilesUse, KeyUse, Keys, Namespace, OnExpire, OrderingRetry,
    Overflow, Placement, Queue, QueueChange, QueueSettings, QuotaChange, Quotas, Redriving, TestTime, Totals,
};
pub use work::{Work, WorkError};
pub use worker::{Job, Summary, Worker, WorkerEvent, WorkerOptions, WorkerTransport};

/// The examples of the README, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
