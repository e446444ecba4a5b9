import type { Calls } from "./calls.js";
import { isCode } from "./core/errors.js";
import type { MessageOptions, Payload } from "./core/message.js";
import { resultOf, timedOut, waitFor, WAIT_MAX_MS } from "./core/outcome.js";
import type { Outcome, ResultOptions } from "./core/outcome.js";
import { Content } from "./core/payload.js";
import type { AwaitResultResponse } from "./gen/sluice/v1/messages_pb.js";
import type { Messaging } from "./messaging.js";

/** The options of a request. */
export interface RequestOptions extends MessageOptions {
  /** How long to wait for the reply; default 30,000. The request expires then, unless it has a `ttlMs`. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Waits for the ends of messages. */
export class Results {
  readonly #calls: Calls;
  readonly #messaging: Messaging;

  constructor(calls: Calls, messaging: Messaging) {
    this.#calls = calls;
    this.#messaging = messaging;
  }

  outcome(id: string, options: ResultOptions = {}): Promise<Outcome> {
    return waitFor((waitMs) => this.#ask(id, waitMs, options.signal), options.waitMs);
  }

  async result(id: string, options: ResultOptions = {}): Promise<Content> {
    return resultOf(id, await this.outcome(id, options));
  }

  async request(queue: string, payload: Payload, options: RequestOptions = {}): Promise<Content> {
    const { timeoutMs = 30_000, signal, ...message } = options;
    const until = performance.now() + timeoutMs;
    const sending = signal === undefined ? {} : { signal };
    const defaults = { ttlMs: timeoutMs, resultTtlMs: timeoutMs + WAIT_MAX_MS };
    const sent = await this.#messaging.send(queue, payload, { ...defaults, ...message, ...sending });
    const waitMs = Math.max(0, until - performance.now());
    return await this.result(sent.id, { waitMs, ...sending }).catch((error: unknown) => {
      throw hasExpired(error) ? timedOut(sent.id) : error;
    });
  }

  async #ask(id: string, waitMs: number, signal: AbortSignal | undefined): Promise<Outcome> {
    const request = { id, waitMs: BigInt(waitMs) };
    return outcomeOf(await this.#calls.messages.awaitResult(request, signal ? { signal } : {}));
  }
}

/**
 * True if the server has seen the end of the time first. A message that is gone has expired, too, since its
 * result would be kept for longer.
 */
function hasExpired(error: unknown): boolean {
  return (
    isCode(error, "message_not_found") || (isCode(error, "work_failed") && error.details["reason"] === "expired")
  );
}

function outcomeOf(response: AwaitResultResponse): Outcome {
  if (response.state === "dead") return { state: "dead", reason: response.reason };
  if (response.state === "done") {
    const result = response.result && new Content(response.result, response.resultContentType);
    return { state: "done", result };
  }
  const { percent, note } = response.progress ?? {};
  return percent === undefined ? { state: "pending" } : { state: "pending", percent, note: note ?? "" };
}
