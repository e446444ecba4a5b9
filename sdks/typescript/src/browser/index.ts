/**
 * Client of Sluice for web pages: over `fetch` and server-sent events, without anything of Node.
 *
 * @packageDocumentation
 */
export { Client, type EventOptions, type MessageEvent } from "./client.js";
export type { ClientOptions } from "./options.js";
export type { Documents } from "./documents.js";
export type { Queues, QueueStatistics } from "./queues.js";
export type { ClientCode, ErrorCode, KnownCode, ServerCode } from "../core/codes.js";
export { isCode, SluiceError } from "../core/errors.js";
export { Content, type JsonValue, type Payload } from "../core/payload.js";
export type { Outcome, ResultOptions } from "../core/outcome.js";
export type {
  MessageOptions,
  OutgoingMessage,
  Sender,
  SendOptions,
  Sent,
  SentMany,
  Step,
  StepOptions,
} from "../core/message.js";
export type { DocumentEvent, QueryOptions, Written } from "../documents/documents.js";
export type { Conditions, Patch, PutOptions, WriteConditions } from "../documents/options.js";
export { StoredDocument, type DocumentInfo } from "../documents/stored.js";
