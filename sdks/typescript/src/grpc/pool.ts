import {
  clone,
  create,
  type DescMessage,
  type DescMethodStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  isMessage,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { StreamResponse, Transport, UnaryResponse } from "@connectrpc/connect";
import { SluiceError } from "../core/errors.js";
import { sleep, Tries } from "../core/retry.js";
import type { ResolvedOptions } from "../options.js";
import type { Connection } from "./connection.js";
import { fromThrown } from "./errors.js";
import { isRepeatable } from "./repeatable.js";
import { Servers } from "./servers.js";

/** The headers of a call, as the generated clients give them. */
type Header = Parameters<Transport["unary"]>[3];

/** A request that names a namespace, and may ask to wait. */
interface Scoped {
  namespace?: string;
  waitMs?: bigint;
}

/**
 * The transport of all calls: it asks the servers one after another, repeats what may be repeated, fills in
 * the namespace, and throws {@link SluiceError}s.
 */
export class Pool implements Transport {
  readonly #servers: Servers;
  readonly #options: ResolvedOptions;
  #isClosed = false;

  constructor(options: ResolvedOptions) {
    this.#options = options;
    this.#servers = new Servers(options);
  }

  /** Address of the server that is asked now. */
  get server(): string {
    return this.#servers.current.url;
  }

  /** @param timeoutMs Longest time of the call, all tries together. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: Header,
    input: MessageInitShape<I>,
  ): Promise<UnaryResponse<I, O>> {
    const request = this.#scoped(method.input, input);
    const repeatable = isRepeatable(method.parent.typeName, method.name, request);
    const limit = new Limit(signal, timeoutMs);
    const waiting = new Waiting(request as Scoped);
    const tries = new Tries(this.#servers.others, this.#options.retry);
    for (;;) {
      const server = this.#server();
      const patience = this.#options.requestTimeoutMs + waiting.leftMs();
      try {
        const input = request as MessageInitShape<I>;
        return await server.transport.unary(method, limit.signal, patience, header, input);
      } catch (thrown) {
        limit.check(server);
        const error = fromThrown(thrown, server.url);
        const delay = tries.next(error, repeatable, this.#servers.passOn(server, error));
        if (delay === undefined) throw error;
        await sleep(delay, limit.signal).catch(() => limit.check(server));
      }
    }
  }

  /** Opens a stream at one server. When it fails, the next one is opened elsewhere if that may help. */
  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: Header,
    input: AsyncIterable<MessageInitShape<I>>,
  ): Promise<StreamResponse<I, O>> {
    const server = this.#server();
    const requests = this.#scopeFirst(method.input, input);
    const failed = (thrown: unknown): never => {
      // A caller that breaks the stream off may say why by an error of this library.
      const reason: unknown = signal?.aborted ? signal.reason : thrown;
      if (signal?.aborted && !(reason instanceof SluiceError)) throw reason;
      const error = fromThrown(reason, server.url);
      this.#servers.passOn(server, error);
      throw error;
    };
    const opened = server.transport.stream(method, signal, timeoutMs, header, requests);
    const response = await opened.catch(failed);
    return { ...response, message: guarded(response.message, failed) };
  }

  close(): void {
    this.#isClosed = true;
    this.#servers.close();
  }

  #server(): Connection {
    if (this.#isClosed) throw new SluiceError("usage", "the client is closed");
    return this.#servers.current;
  }

  #scoped<I extends DescMessage>(schema: I, input: MessageInitShape<I>): MessageShape<I> {
    // A message of the caller stays as it is.
    const request = isMessage(input, schema) ? clone(schema, input) : create(schema, input);
    const scoped = request as Scoped;
    if (scoped.namespace === "") scoped.namespace = this.#options.namespace;
    return request;
  }

  async *#scopeFirst<I extends DescMessage>(
    schema: I,
    input: AsyncIterable<MessageInitShape<I>>,
  ): AsyncIterable<MessageInitShape<I>> {
    let isFirst = true;
    for await (const each of input) {
      yield (isFirst ? this.#scoped(schema, each) : each) as MessageInitShape<I>;
      isFirst = false;
    }
  }
}

async function* guarded<T>(items: AsyncIterable<T>, failed: (thrown: unknown) => never): AsyncIterable<T> {
  try {
    yield* items;
  } catch (thrown) {
    failed(thrown);
  }
}

/** The caller's limits of a call: its signal, and its time. */
class Limit {
  readonly signal: AbortSignal | undefined;
  readonly #given: AbortSignal | undefined;

  constructor(given: AbortSignal | undefined, timeoutMs: number | undefined) {
    this.#given = given;
    const signals = given === undefined ? [] : [given];
    if (timeoutMs !== undefined) signals.push(AbortSignal.timeout(Math.ceil(timeoutMs)));
    this.signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  }

  /** Throws if a limit is reached. */
  check(server: Connection): void {
    this.#given?.throwIfAborted();
    if (!this.signal?.aborted) return;
    throw new SluiceError("timed_out", `no answer in time from ${server.url}`, {
      details: { server: server.url },
      mayHaveTakenEffect: true,
    });
  }
}

/** The wait that a request asks for: a repeat waits for what is left of it. */
class Waiting {
  readonly #request: Scoped;
  readonly #until: number;

  constructor(request: Scoped) {
    this.#request = request;
    this.#until = performance.now() + Number(request.waitMs ?? 0n);
  }

  /** What is left, which the request asks for from now on. */
  leftMs(): number {
    if (this.#request.waitMs === undefined) return 0;
    const left = Math.max(0, Math.round(this.#until - performance.now()));
    this.#request.waitMs = BigInt(left);
    return left;
  }
}
