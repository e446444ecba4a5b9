import { readFileSync } from "node:fs";
import { contextOf, type Context } from "./contexts.js";
import { SluiceError } from "./core/errors.js";
import { RETRY_DEFAULT, type RetryPolicy } from "./core/retry.js";
import { checkedToken } from "./core/token.js";

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
 * line: `SLUICE_SERVER`, `SLUICE_CONTEXT`, `SLUICE_NAMESPACE`, `SLUICE_CA`, `SLUICE_CERT`, `SLUICE_CERT_KEY`
 * (paths), `SLUICE_TOKEN` and `SLUICE_TOKEN_FILE`; else from the context that `sluice context use` has chosen.
 * Certificates and tokens of the environment count only for servers of the environment, those of a context
 * only for its servers: others are not told these secrets.
 */
export interface ClientOptions extends Partial<RetryPolicy> {
  /** Addresses of the server, or of the nodes of a cluster; default `http://127.0.0.1:7070`. */
  servers?: string | readonly string[];
  /** Instead of `servers`: the name of a context that `sluice context add` has made. */
  context?: string;
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

/** Completes the options by the environment, a context of the command line, and the defaults. */
export function resolveOptions(options: ClientOptions, env: Environment = process.env): ResolvedOptions {
  const found = foundIn(options, env);
  return {
    servers: addresses(options.servers ?? found.server),
    namespace: options.namespace ?? (env.SLUICE_NAMESPACE || found.namespace || ""),
    token: checkedToken(options.token ?? found.token ?? (found.tokenFile && read(found.tokenFile).trim())),
    tls: checked(options.tls ?? tlsOf(found)),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    retry: {
      retryForMs: options.retryForMs ?? RETRY_DEFAULT.retryForMs,
      connectRetryForMs: options.connectRetryForMs ?? RETRY_DEFAULT.connectRetryForMs,
    },
  };
}

/** What the environment or a context says; the token itself stands in the environment alone. */
type Found = Context & { token: string | undefined };

function foundIn({ servers, context }: ClientOptions, env: Environment): Found {
  if (servers !== undefined && context !== undefined) {
    throw new SluiceError("usage", "a client has servers or a context, not both");
  }
  const isNamed = servers !== undefined || (context === undefined && env.SLUICE_SERVER);
  const chosen = isNamed ? undefined : contextOf(context ?? (env.SLUICE_CONTEXT || undefined), env);
  if (chosen !== undefined) return { ...chosen, token: undefined };
  const secrets = servers === undefined ? env : {};
  return {
    server: env.SLUICE_SERVER || SERVER_DEFAULT,
    namespace: undefined,
    ca: secrets.SLUICE_CA || undefined,
    cert: secrets.SLUICE_CERT || undefined,
    certKey: secrets.SLUICE_CERT_KEY || undefined,
    tokenFile: secrets.SLUICE_TOKEN_FILE || undefined,
    token: secrets.SLUICE_TOKEN || undefined,
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

function tlsOf({ ca, cert, certKey }: Found): TlsOptions {
  const tls: TlsOptions = {};
  if (ca !== undefined) tls.ca = read(ca);
  if (cert !== undefined) tls.cert = read(cert);
  if (certKey !== undefined) tls.key = read(certKey);
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
