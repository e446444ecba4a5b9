import { readFileSync } from "node:fs";
import { SluiceError } from "./core/errors.js";
import { RETRY_DEFAULT, type RetryPolicy } from "./core/retry.js";

/** Certificates of a connection, as PEM. They count for `https://` addresses only. */
export interface TlsOptions {
  /** The CAs that may have signed the server's certificate; default: those that Node trusts. */
  ca?: string | Uint8Array;
  /** The client's certificate, followed by those between it and the CA. */
  cert?: string | Uint8Array;
  /** Its private key. */
  key?: string | Uint8Array;
}

/**
 * The options of a client. What is not given comes from the environment, with the variables of the command
 * line: `SLUICE_SERVER`, `SLUICE_NAMESPACE`, `SLUICE_CA`, `SLUICE_CERT`, `SLUICE_CERT_KEY` (paths),
 * `SLUICE_TOKEN` and `SLUICE_TOKEN_FILE`. Certificates and tokens of the environment count only for servers
 * of the environment: other servers are not told its secrets.
 */
export interface ClientOptions extends Partial<RetryPolicy> {
  /** Addresses of the server, or of the nodes of a cluster; default `http://127.0.0.1:7070`. */
  servers?: string | readonly string[];
  /** Default `default`. */
  namespace?: string;
  /** A token of `sluice token create`. */
  token?: string;
  tls?: TlsOptions;
  /** Longest time of one try of a call, besides the wait that it asks for; default 30,000. */
  requestTimeoutMs?: number;
  /** Longest time for a connection to be made; default 5,000. */
  connectTimeoutMs?: number;
}

/** The options with everything that they leave open. */
export interface ResolvedOptions {
  servers: string[];
  namespace: string;
  token: string | undefined;
  tls: TlsOptions;
  requestTimeoutMs: number;
  connectTimeoutMs: number;
  retry: RetryPolicy;
}

type Environment = Readonly<Record<string, string | undefined>>;

const SERVER_DEFAULT = "http://127.0.0.1:7070";

/** Completes the options by the environment and the defaults. */
export function resolveOptions(options: ClientOptions, env: Environment = process.env): ResolvedOptions {
  const secrets = options.servers === undefined ? env : {};
  return {
    servers: addresses(options.servers ?? (env.SLUICE_SERVER || SERVER_DEFAULT)),
    namespace: options.namespace ?? (env.SLUICE_NAMESPACE || ""),
    token: options.token ?? tokenOf(secrets),
    tls: checked(options.tls ?? tlsOf(secrets)),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    retry: {
      retryForMs: options.retryForMs ?? RETRY_DEFAULT.retryForMs,
      connectRetryForMs: options.connectRetryForMs ?? RETRY_DEFAULT.connectRetryForMs,
    },
  };
}

function addresses(servers: string | readonly string[]): string[] {
  const texts = typeof servers === "string" ? servers.split(",") : servers;
  const urls = texts.map((text) => address(text.trim()));
  if (new Set(urls.map((url) => url.slice(0, 6))).size !== 1) {
    throw new SluiceError("usage", "all nodes of a cluster are asked with TLS, or none");
  }
  return urls;
}

function address(text: string): string {
  const url = text.includes("://") ? text : `http://${text}`;
  if (!/^https?:\/\/./.test(url) || !URL.canParse(url)) {
    throw new SluiceError("usage", `"${text}" is not the address of a server`);
  }
  return new URL(url).origin;
}

function tokenOf(env: Environment): string | undefined {
  if (env.SLUICE_TOKEN) return env.SLUICE_TOKEN;
  return env.SLUICE_TOKEN_FILE ? read(env.SLUICE_TOKEN_FILE).trim() : undefined;
}

function tlsOf(env: Environment): TlsOptions {
  const tls: TlsOptions = {};
  if (env.SLUICE_CA) tls.ca = read(env.SLUICE_CA);
  if (env.SLUICE_CERT) tls.cert = read(env.SLUICE_CERT);
  if (env.SLUICE_CERT_KEY) tls.key = read(env.SLUICE_CERT_KEY);
  return tls;
}

function checked(tls: TlsOptions): TlsOptions {
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw new SluiceError("usage", "a client's certificate and its private key go together");
  }
  return tls;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new SluiceError("usage", `cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}
