import { Code, ConnectError } from "@connectrpc/connect";
import { SluiceError } from "../core/errors.js";
import type { Error as WireError } from "../gen/sluice/v1/common_pb.js";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { CONNECT_TIMEOUT } from "./socket.js";

/** Errors of the operating system after which nothing was sent. */
const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", CONNECT_TIMEOUT];
/** Beginning of the library's text about a request with a value that its field cannot hold. */
const NOT_ENCODED = "serialize binary: ";
/** Beginnings of Node's codes for certificates that are not trusted, and TLS that is not agreed on. */
const TLS_FAULT =
  /^(ERR_SSL|ERR_TLS|EPROTO|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA)/;

/** The error of a call, whatever was thrown. */
export function fromThrown(thrown: unknown, url: string): SluiceError {
  if (thrown instanceof SluiceError) return thrown;
  const error = ConnectError.from(thrown);
  return fromServer(error) ?? fromTransport(error, url);
}

/** The error of an item or a frame. */
export function fromWire(error: WireError): SluiceError {
  return new SluiceError(error.code, error.message, {
    details: error.details,
    mayHaveTakenEffect: isUnknown(error.code),
  });
}

/** An error that the server has told; its code is in the details of the status, and in a trailer. */
function fromServer(error: ConnectError): SluiceError | undefined {
  const info = error.findDetails(ErrorInfoSchema).find((found) => found.domain === "sluice");
  const code = info?.reason ?? error.metadata.get("sluice-code");
  if (!code) return undefined;
  return new SluiceError(code, error.rawMessage, {
    details: info?.metadata ?? {},
    retryAfterMs: retryAfter(error),
    mayHaveTakenEffect: isUnknown(code),
    cause: error,
  });
}

function isUnknown(code: string): boolean {
  return code === "outcome_unknown" || code === "internal" || code === "journal_failed";
}

function retryAfter(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay && Number(delay.seconds) * 1_000 + delay.nanos / 1e6;
}

function fromTransport(error: ConnectError, url: string): SluiceError {
  if (error.code === Code.Internal && error.rawMessage.startsWith(NOT_ENCODED)) {
    // The library tells by its text alone that nothing was sent.
    const reason = error.rawMessage.slice(NOT_ENCODED.length);
    return new SluiceError("invalid_argument", `the request cannot be encoded: ${reason}`, { cause: error });
  }
  const causes = codesOf(error);
  const fault = (code: string, text: string, mayHaveTakenEffect: boolean): SluiceError =>
    new SluiceError(code, `${text} ${url}: ${reasonOf(error)}`, {
      details: { server: url },
      mayHaveTakenEffect,
      cause: error,
    });
  if (causes.some((code) => NOT_SENT.includes(code))) return fault("unreachable", "cannot connect to", false);
  if (causes.some((code) => TLS_FAULT.test(code))) {
    return fault("tls_failed", "cannot agree on TLS with", false);
  }
  if (causes.includes("ERR_HTTP2_ERROR")) return fault("not_understood", "no HTTP/2 (or TLS) from", true);
  if (error.code === Code.DeadlineExceeded) return fault("timed_out", "no answer in time from", true);
  if (error.code === Code.Unimplemented || error.code === Code.InvalidArgument) {
    return fault("not_understood", "no call of Sluice at", false);
  }
  return fault("unreachable", "lost the connection to", true);
}

/** The innermost message says most. */
function reasonOf(error: Error): string {
  let inner: Error = error;
  while (inner.cause instanceof Error) inner = inner.cause;
  return inner instanceof ConnectError ? inner.rawMessage : inner.message;
}

function codesOf(error: Error): string[] {
  const codes: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") codes.push(at.code);
    if (at instanceof AggregateError) codes.push(...at.errors.flatMap(codesOf));
  }
  return codes;
}
