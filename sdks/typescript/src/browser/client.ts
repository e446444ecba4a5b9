import { randomKey } from "../core/key.js";
import type { MessageOptions, OutgoingMessage, Payload, Sender } from "../core/message.js";
import type { SendOptions, Sent, SentMany } from "../core/message.js";
import { resultOf, waitFor, type Outcome, type ResultOptions } from "../core/outcome.js";
import type { Content } from "../core/payload.js";
import { reopened } from "../watching.js";
import { Documents } from "./documents.js";
import { Http } from "./http.js";
import { contentOf, messageFields, type Json } from "./json.js";
import { resolveOptions, type ClientOptions } from "./options.js";
import { Queues } from "./queues.js";

/** What has happened to a message. Its further fields are those of the API, by their names there. */
export interface MessageEvent {
  /** `sent`, `delivered`, `acked` and the like; `gap`, whatever types are asked for: events are missing. */
  type: string;
  /** Milliseconds since the Unix epoch; absent of a gap. */
  at_ms?: number;
  queue?: string;
  id?: string;
  attempt?: number;
  reason?: string;
  [field: string]: unknown;
}

/** The options of a stream of events. */
export interface EventOptions {
  /** Events of this queue; default: of all queues. */
  queue?: string;
  /** Default: all types. */
  types?: readonly string[];
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** A client over HTTP, for web pages and other places that have `fetch`. */
export class Client implements Sender {
  readonly documents: Documents;
  readonly queues: Queues;
  readonly #http: Http;

  constructor(options: ClientOptions = {}) {
    this.#http = new Http(resolveOptions(options));
    this.documents = new Documents(this.#http);
    this.queues = new Queues(this.#http);
  }

  /** Sends one message. The queue is created if it does not exist. */
  async send(queue: string, payload: Payload, options: MessageOptions & SendOptions = {}): Promise<Sent> {
    const sent = await this.sendMany(queue, [{ ...options, payload }], options);
    return { id: sent.ids[0] as string, duplicate: sent.duplicate || sent.duplicates.length > 0 };
  }

  /** Sends up to 10,000 messages to a queue, all or none. */
  async sendMany(
    queue: string,
    messages: readonly OutgoingMessage[],
    options: SendOptions = {},
  ): Promise<SentMany> {
    const answer = await this.#http.call<SentMany>({
      method: "POST",
      path: `/queues/${encodeURIComponent(queue)}/messages`,
      headers: { "idempotency-key": options.idempotencyKey ?? randomKey() },
      body: { messages: messages.map(messageFields) },
      signal: options.signal,
    });
    return { ...answer, duplicates: answer.duplicates ?? [] };
  }

  /** How a message has ended, or with `pending` that it has not within `waitMs`. */
  outcome(id: string, options: ResultOptions = {}): Promise<Outcome> {
    const path = `/messages/${encodeURIComponent(id)}/result`;
    const ask = async (waitMs: number): Promise<Outcome> => {
      const query = { wait_ms: waitMs };
      const { signal } = options;
      return outcomeOf(await this.#http.call<Json>({ method: "GET", path, query, waitMs, signal }));
    };
    return waitFor(ask, options.waitMs);
  }

  /**
   * Waits for the end of a message, which was sent with `resultTtlMs`, and returns its result. `timed_out`:
   * it has not ended within `waitMs`; `work_failed`: it is dead.
   */
  async result(id: string, options: ResultOptions = {}): Promise<Content> {
    return resultOf(id, await this.outcome(id, options));
  }

  /** What happens to messages from now on. Goes on by itself when the connection breaks. */
  async *events(options: EventOptions = {}): AsyncIterable<MessageEvent> {
    const { queue, types, signal } = options;
    let after: string | undefined;
    const path = queue === undefined ? "/events" : `/queues/${encodeURIComponent(queue)}/events`;
    const open = () =>
      this.#http.events({ method: "GET", path, query: { types: types?.join(","), after }, signal });
    for await (const { id, data } of reopened(open, signal)) {
      after = id ?? after;
      if (data !== "") yield JSON.parse(data) as MessageEvent;
    }
  }
}

function outcomeOf(fields: Json): Outcome {
  if (fields["state"] === "done") {
    return { state: "done", result: contentOf(fields, "result", "result_content_type") };
  }
  if (fields["state"] === "dead") return { state: "dead", reason: fields["reason"] as string };
  const progress = fields["progress"] as { percent: number; note?: string } | undefined;
  if (progress === undefined) return { state: "pending" };
  return { state: "pending", percent: progress.percent, note: progress.note ?? "" };
}
