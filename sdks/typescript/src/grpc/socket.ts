import * as net from "node:net";
import * as tls from "node:tls";
import type { ResolvedOptions } from "../options.js";

/** The code of the failure to connect in time. */
export const CONNECT_TIMEOUT = "SLUICE_CONNECT_TIMEOUT";

/** Connects with a server, in the time of the options. */
export function connectSocket(url: URL, options: ResolvedOptions): net.Socket {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const secure = url.protocol === "https:";
  const port = Number(url.port || (secure ? 443 : 80));
  const socket = secure ? connectTls(host, port, options) : net.connect({ host, port });
  socket.setNoDelay(true);
  const late = (): void => {
    const message = `no connection within ${options.connectTimeoutMs} ms`;
    socket.destroy(Object.assign(new Error(message), { code: CONNECT_TIMEOUT }));
  };
  const timer = setTimeout(late, options.connectTimeoutMs);
  socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
  return socket;
}

function connectTls(host: string, port: number, options: ResolvedOptions): tls.TLSSocket {
  const { ca, cert, key } = options.tls;
  return tls.connect({
    host,
    port,
    ALPNProtocols: ["h2"],
    // An address is no name to ask for.
    ...(net.isIP(host) ? {} : { servername: host }),
    ca: pem(ca),
    cert: pem(cert),
    key: pem(key),
  });
}

function pem(text: string | Uint8Array | undefined): string | Buffer | undefined {
  return text instanceof Uint8Array ? Buffer.from(text) : text;
}
