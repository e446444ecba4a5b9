import { SluiceError } from "../core/errors.js";
import { RETRY_DEFAULT, type RetryPolicy } from "../core/retry.js";
import { checkedToken } from "../core/token.js";

/** The options of a client in a browser. */
export interface ClientOptions extends Partial<RetryPolicy> {
  /**
   * Addresses of the server, or of the nodes of a cluster; default: the origin of the page. The server
   * refuses pages of another origin: put both behind one.
   */
  servers?: string | readonly string[];
  /** Default `default`. */
  namespace?: string;
  /** A token, or what gets one; it goes with every request. */
  token?: string | (() => string | Promise<string>);
  /** Longest time of one try of a call, besides the wait that it asks for; default 30,000. */
  requestTimeoutMs?: number;
  /** Takes the place of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** The options with everything that they leave open. */
export interface ResolvedOptions {
  servers: string[];
  /** The path before those of the calls. */
  base: string;
  token: () => string | undefined | Promise<string>;
  requestTimeoutMs: number;
  fetch: typeof globalThis.fetch;
  retry: RetryPolicy;
}

/** Completes the options. */
export function resolveOptions(options: ClientOptions): ResolvedOptions {
  const { namespace, token } = options;
  return {
    servers: addresses(options.servers),
    base: namespace === undefined ? "/v1" : `/v1/namespaces/${encodeURIComponent(namespace)}`,
    token: tokenOf(token),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
    retry: {
      retryForMs: options.retryForMs ?? RETRY_DEFAULT.retryForMs,
      connectRetryForMs: options.connectRetryForMs ?? RETRY_DEFAULT.connectRetryForMs,
    },
  };
}

function tokenOf(token: ClientOptions["token"]): ResolvedOptions["token"] {
  if (typeof token === "function") return async () => checkedToken(await token());
  const checked = checkedToken(token);
  return () => checked;
}

function addresses(servers: string | readonly string[] | undefined): string[] {
  const page = (globalThis as { location?: { origin: string } }).location?.origin;
  const given = servers ?? page;
  if (given === undefined) throw new SluiceError("usage", "without a page the client needs `servers`");
  const texts = typeof given === "string" ? given.split(",") : given;
  return texts.map((text) => text.trim().replace(/\/+$/, ""));
}
