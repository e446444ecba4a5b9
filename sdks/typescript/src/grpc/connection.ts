import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { ResolvedOptions } from "../options.js";
import { Http2Connection } from "./http2.js";

/** The connection with one server, and the calls that go over it. */
export interface Connection {
  readonly url: string;
  readonly transport: Transport;
  /** Ends it with all calls that are under way. */
  close(): void;
}

/** Prepares the connection with a server. */
export function connection(url: string, options: ResolvedOptions): Connection {
  const session = new Http2Connection(url, options);
  const transport = createGrpcTransport({
    baseUrl: url,
    sessionManager: session,
    acceptCompression: [],
    interceptors: options.token === undefined ? [] : [authorize(options.token)],
  });
  return { url, transport, close: () => session.close() };
}

function authorize(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
