import { SluiceError } from "../core/errors.js";
import { mayDoBetterElsewhere, sleep, Tries } from "../core/retry.js";
import type { ResolvedOptions } from "./options.js";
import { readEvents, type ServerEvent } from "./sse.js";

/** A call of the HTTP API. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path behind that of the namespace. */
  path: string;
  query?: Readonly<Record<string, string | number | undefined>>;
  body?: object;
  headers?: Readonly<Record<string, string>>;
  /** Time for which the server is asked to wait. */
  waitMs?: number;
  signal?: AbortSignal | undefined;
}

/** Calls over HTTP: repeated as those over gRPC, at one server after another. */
export class Http {
  readonly #options: ResolvedOptions;
  #current = 0;

  constructor(options: ResolvedOptions) {
    this.#options = options;
  }

  /** Makes a call; returns the JSON of its answer. */
  async call<T>(call: Call): Promise<T> {
    const tries = new Tries(this.#options.servers.length - 1, this.#options.retry);
    for (;;) {
      const asked = this.#current;
      const late = AbortSignal.timeout(Math.ceil(this.#options.requestTimeoutMs + (call.waitMs ?? 0)));
      try {
        const response = await this.#fetch(call, asked, late);
        return (await response.json()) as T;
      } catch (thrown) {
        call.signal?.throwIfAborted();
        const error = this.#errorOf(thrown, asked, late);
        // A repeated deletion may be about what has come since; all others have keys, or look.
        const delay = tries.next(error, call.method !== "DELETE", this.#passOn(asked, error));
        if (delay === undefined) throw error;
        await sleep(delay, call.signal);
      }
    }
  }

  /** Opens a stream of server-sent events at one server. When it fails, the next one is asked elsewhere. */
  async *events(call: Call): AsyncIterable<ServerEvent> {
    const asked = this.#current;
    try {
      const response = await this.#fetch(call, asked, undefined);
      if (response.body !== null) yield* readEvents(response.body);
    } catch (thrown) {
      call.signal?.throwIfAborted();
      const error = this.#errorOf(thrown, asked, undefined);
      this.#passOn(asked, error);
      throw error;
    }
  }

  async #fetch(call: Call, asked: number, late: AbortSignal | undefined): Promise<Response> {
    const token = await this.#options.token();
    const headers = {
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...call.headers,
    };
    const signals = [late, call.signal].filter((signal) => signal !== undefined);
    const response = await this.#options.fetch(this.#url(call, asked), {
      method: call.method,
      headers,
      body: call.body === undefined ? null : JSON.stringify(call.body),
      signal: signals.length > 0 ? AbortSignal.any(signals) : null,
    });
    if (!response.ok) throw await refusal(response);
    return response;
  }

  #url({ path, query = {} }: Call, asked: number): string {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) parameters.set(name, String(value));
    }
    const text = parameters.size > 0 ? `?${parameters}` : "";
    return `${this.#options.servers[asked]}${this.#options.base}${path}${text}`;
  }

  #errorOf(thrown: unknown, asked: number, late: AbortSignal | undefined): SluiceError {
    if (thrown instanceof SluiceError) return thrown;
    const server = this.#options.servers[asked] as string;
    const facts = { details: { server }, mayHaveTakenEffect: true, cause: thrown };
    if (late?.aborted) return new SluiceError("timed_out", `no answer in time from ${server}`, facts);
    if (thrown instanceof SyntaxError) {
      return new SluiceError("not_understood", `the answer of ${server} is no JSON`, facts);
    }
    return new SluiceError("unreachable", `lost the connection to ${server}: ${reasonOf(thrown)}`, facts);
  }

  #passOn(asked: number, error: SluiceError): boolean {
    const { length } = this.#options.servers;
    if (length === 1 || !mayDoBetterElsewhere(error)) return false;
    // Another call may have passed on already.
    if (this.#current === asked) this.#current = (asked + 1) % length;
    return this.#current !== asked;
  }
}

interface WireError {
  code: string;
  message: string;
  details: Record<string, unknown>;
}

async function refusal(response: Response): Promise<SluiceError> {
  const answer = (await response.json().catch(() => ({}))) as { error?: WireError };
  const retryAfter = response.headers.get("retry-after");
  const { code, message, details } = answer.error ?? {
    code: "not_understood",
    message: `the answer has the status ${response.status}, and is none of Sluice`,
    details: {},
  };
  return new SluiceError(code, message, {
    details: Object.fromEntries(Object.entries(details).map(([name, value]) => [name, text(value)])),
    retryAfterMs: retryAfter === null ? undefined : Number(retryAfter) * 1_000,
    mayHaveTakenEffect: ["outcome_unknown", "internal", "journal_failed"].includes(code),
  });
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
