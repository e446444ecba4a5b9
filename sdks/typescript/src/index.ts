/**
 * Client of Sluice for Node: queues, locks, documents and transactions over gRPC.
 *
 * @packageDocumentation
 */
export { Client } from "./client.js";
export type { Calls } from "./calls.js";
export type { ClientOptions, TlsOptions } from "./options.js";
export type { ClientCode, ErrorCode, KnownCode, ServerCode } from "./core/codes.js";
export { isCode, SluiceError } from "./core/errors.js";
export { Content, type JsonValue, type Payload } from "./core/payload.js";
export type { RetryPolicy } from "./core/retry.js";
export type {
  Backoff,
  MessageOptions,
  OutgoingMessage,
  QueueMessage,
  Sender,
  SendOptions,
  Sent,
  SentMany,
  Step,
  StepOptions,
  Time,
  Unique,
} from "./core/message.js";
export { Delivery, Received } from "./delivery.js";
export type { ItemResult, ReceiveOptions, SentGroup } from "./messaging.js";
export type { ExtendItem, Report, SettleItem, Settlement } from "./settlement.js";
export type { Outcome, ResultOptions } from "./core/outcome.js";
export type { RequestOptions } from "./results.js";
export type { ScheduleOptions, Schedules, ScheduleState, Times } from "./schedules.js";
export { HeldLock, type LockOptions, type Locks, type LockState } from "./locks.js";
export type {
  AttachmentInfo,
  Attachments,
  AttachmentSource,
  DownloadOptions,
  UploadOptions,
} from "./documents/attachments.js";
export type { DocumentEvent, Documents, QueryOptions, Written } from "./documents/documents.js";
export type { Conditions, Patch, PutOptions, WriteConditions } from "./documents/options.js";
export { StoredDocument, type DocumentInfo } from "./documents/stored.js";
export type { Committed, OperationResult } from "./transactions/committed.js";
export { TransactionBuilder } from "./transactions/builder.js";
export { SeenDocument, Transaction, type TransactionOptions } from "./transactions/transaction.js";
export type { AcquireOptions, DeliveryRef, Operation } from "./transactions/operations.js";
export { Job } from "./worker/job.js";
export { Dead, Release, Retry } from "./worker/outcome.js";
export type { Handler, WorkerEvent, WorkerOptions, WorkerSummary } from "./worker/options.js";
export type { TransactionalHandler, TransactionalWorkerOptions } from "./worker/transactional.js";
export { Worker } from "./worker/worker.js";
