import * as http2 from "node:http2";
import type { GrpcTransportOptions } from "@connectrpc/connect-node";
import type { ResolvedOptions } from "../options.js";
import { connectSocket } from "./socket.js";

type SessionManager = NonNullable<GrpcTransportOptions["sessionManager"]>;

/** A connection with calls that is silent for so long is asked whether it still lives. */
const PING_EVERY_MS = 10_000;
const PING_WITHIN_MS = 5_000;

/**
 * The HTTP/2 connection with one server: made when it is needed, and anew after it broke. Where the other
 * side is no HTTP/2, Node tells a connection's error twice, and the manager of connect-node, which listens
 * once, would let the second one end the process.
 */
export class Http2Connection implements SessionManager {
  readonly authority: string;
  readonly #options: ResolvedOptions;
  /** The one for new calls. */
  #current: Live | undefined;
  /** Those that have calls, too: one that takes no more of them may still have some. */
  readonly #open = new Set<Live>();

  constructor(url: string, options: ResolvedOptions) {
    this.authority = url;
    this.#options = options;
  }

  async request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: Omit<http2.ClientSessionRequestOptions, "signal">,
  ): Promise<http2.ClientHttp2Stream> {
    for (;;) {
      const live = (this.#current ??= this.#connect());
      await live.connected;
      const stream = await live.open({ ...headers, ":method": method, ":path": path }, options);
      if (stream !== undefined) return stream;
      this.#forget(live);
    }
  }

  notifyResponseByteRead(): void {
    this.#current?.touch();
  }

  /** Ends it with all calls that are under way. */
  close(): void {
    for (const live of this.#open) live.session.destroy();
  }

  #connect(): Live {
    const live = new Live(this.authority, this.#options);
    this.#open.add(live);
    live.session.on("error", () => this.#forget(live));
    live.session.once("goaway", () => this.#forget(live));
    live.session.once("close", () => {
      this.#forget(live);
      this.#open.delete(live);
    });
    return live;
  }

  #forget(live: Live): void {
    if (this.#current === live) this.#current = undefined;
  }
}

/** A connection from its beginning to its end. */
class Live {
  readonly session: http2.ClientHttp2Session;
  /** Rejects if it cannot be made. */
  readonly connected: Promise<void>;
  #calls = 0;
  #aliveAt = 0;
  #pings: NodeJS.Timeout | undefined;

  constructor(url: string, options: ResolvedOptions) {
    const createConnection = (authority: URL) => connectSocket(authority, options);
    this.session = http2.connect(url, { createConnection } as http2.ClientSessionOptions);
    this.connected = new Promise((resolve, reject) => {
      this.session.on("error", reject);
      this.session.once("close", () => reject(new Error("the connection was closed")));
      this.session.once("connect", () => {
        this.touch();
        // An idle connection does not keep the process from its end.
        if (this.#calls === 0) this.session.unref();
        resolve();
      });
    });
    this.session.once("close", () => clearInterval(this.#pings));
  }

  /** Notes that something came. */
  touch(): void {
    this.#aliveAt = performance.now();
  }

  /** Begins a call; `undefined`: this connection takes no more. */
  async open(
    headers: http2.OutgoingHttpHeaders,
    options: http2.ClientSessionRequestOptions,
  ): Promise<http2.ClientHttp2Stream | undefined> {
    // One that was idle for long may be gone without a word.
    if (this.#isSilent() && !(await this.#lives())) this.session.destroy();
    if (this.session.closed || this.session.destroyed) return undefined;
    const stream = this.session.request(headers, options);
    this.#begun();
    stream.once("close", () => this.#ended());
    return stream;
  }

  #begun(): void {
    this.#calls += 1;
    if (this.#calls > 1) return;
    this.session.ref();
    this.#pings = setInterval(() => void this.#look(), PING_EVERY_MS).unref();
  }

  #ended(): void {
    this.#calls -= 1;
    if (this.#calls > 0) return;
    clearInterval(this.#pings);
    if (!this.session.destroyed) this.session.unref();
  }

  #isSilent(): boolean {
    return performance.now() - this.#aliveAt > PING_EVERY_MS;
  }

  async #look(): Promise<void> {
    if (!this.#isSilent() || (await this.#lives())) return;
    this.session.destroy(new Error("the server does not answer"));
  }

  /** True if the other side answers in time. */
  #lives(): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.session.destroyed) return resolve(false);
      const late = setTimeout(() => resolve(false), PING_WITHIN_MS);
      this.session.ping((error) => {
        clearTimeout(late);
        if (error === null) this.touch();
        resolve(error === null);
      });
    });
  }
}
