import type { JsonValue, Payload } from "./payload.js";

/** A time: a date, or milliseconds since the Unix epoch. */
export type Time = Date | number;

/** The delay before another attempt. */
export interface Backoff {
  kind?: "none" | "fixed" | "linear" | "exponential";
  /** Delay after the first attempt; default 1,000. */
  baseMs?: number;
  /** Largest delay; default 600,000. */
  capMs?: number;
  /** Random variation in percent; default 10. */
  jitterPercent?: number;
}

/** Allows one message of its queue with this key at a time. */
export interface Unique {
  key: string;
  /** How long the key counts at most; default one day. */
  windowMs?: number;
  /** When the key becomes free; default `gone`. */
  until?: "gone" | "window";
  /** What a duplicate does; default `keep`. */
  onDuplicate?: "keep" | "replace_payload" | "debounce";
}

/** The options that a message shares with a step of a chain. */
export interface StepOptions {
  /** Media type of the payload. */
  contentType?: string;
  headers?: Readonly<Record<string, string>>;
  tags?: readonly string[];
  /** 0 to 9, higher first; default 0. */
  priority?: number;
  /** Time after which the message is ready. */
  delayMs?: number;
  /** Time at which the message is ready; not together with `delayMs`. */
  deliverAt?: Time;
  /** Attempts before the message becomes a dead letter; default: the queue's. */
  maxAttempts?: number;
  /** Default: the queue's. */
  backoff?: Backoff;
  /** Messages with the same key are delivered in order, one at a time. */
  orderingKey?: string;
  /** Messages of different keys are served in turn. */
  fairKey?: string;
  /** Counts against the limit per key that the queue follows. */
  limitKey?: string;
  /** Counts instead of 1 in the rates of the limit that the queue follows, with each delivery. */
  cost?: number;
  /** The message expires after this time if it still waits. */
  ttlMs?: number;
  /** The message expires at this time if it still waits; not together with `ttlMs`. */
  expiresAt?: Time;
  /** How long the result of the message is kept; default: not at all. */
  resultTtlMs?: number;
  /** Passed on to the reply. */
  correlationId?: string;
  /** Queue that receives the result as a message. */
  replyTo?: string;
  /** True: the message is held until somebody approves it. */
  hold?: boolean;
}

/** The options of a message. */
export interface MessageOptions extends StepOptions {
  unique?: Unique;
  /** Ids of messages to wait for; `#0` is the first message of the same send. */
  dependsOn?: readonly string[];
  /** Wait for all of them (default), or for any one. */
  dependsMode?: "all" | "any";
  /** What happens if they fail; default `cancel`. */
  onParentFailed?: "cancel" | "hold" | "run";
  /** Steps that follow when the message is done, one after the other. */
  chain?: readonly Step[];
  /** Step that is sent when the message, or a step of its chain, fails. */
  onFailure?: Step;
}

/** A message to send. */
export interface OutgoingMessage extends MessageOptions {
  payload: Payload;
}

/** A message to send, with its queue. */
export interface QueueMessage extends OutgoingMessage {
  queue: string;
}

/** A step of a chain. Without a payload it gets the result of the step before. */
export interface Step extends StepOptions {
  queue: string;
  payload?: Payload;
}

/** The options of a send. */
export interface SendOptions {
  /**
   * A repeat with the same key within ten minutes gets the first answer and sends nothing. Default: a new
   * one, so that the library can repeat a send whose answer was lost. A message that is sent with a key of
   * the caller gets no trace header, since a repeat has to say the same.
   */
  idempotencyKey?: string;
  /** Gives the call up. */
  signal?: AbortSignal;
}

/** A message that was sent. */
export interface Sent {
  id: string;
  /** True if it was sent before, by its idempotency key or its unique key. */
  duplicate: boolean;
}

/** Messages that were sent. */
export interface SentMany {
  /** One for each message, in order; of a duplicate that of the first message with its unique key. */
  ids: string[];
  /** True if this send was made before, by its idempotency key. */
  duplicate: boolean;
  /** Indexes of the messages that are duplicates by their unique keys. */
  duplicates: number[];
}

/** What sends messages: a client, or a recorder of `@sluice/client/testing`. */
export interface Sender {
  /** Sends one message. */
  send(queue: string, payload: Payload, options?: MessageOptions & SendOptions): Promise<Sent>;
  /** Sends many messages to a queue, all or none. */
  sendMany(queue: string, messages: readonly OutgoingMessage[], options?: SendOptions): Promise<SentMany>;
}

/** Milliseconds since the Unix epoch. */
export function millis(time: Time): number {
  return typeof time === "number" ? time : time.getTime();
}

export type { JsonValue, Payload };
