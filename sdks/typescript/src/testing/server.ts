import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { Client } from "../client.js";
import { SluiceError } from "../core/errors.js";
import type { ClientOptions } from "../options.js";

/** The options of a server for tests. */
export interface TestServerOptions {
  /** Path of the program; default: `SLUICE_BIN`, else `sluice` in the `PATH`. */
  bin?: string;
  /** Address to listen on; default: `SLUICE_TEST_LISTEN`, else a free port of this machine. */
  listen?: string;
  /** Further arguments of `sluice serve`. */
  args?: readonly string[];
}

/** Time after which a server that was told to stop is killed. */
const STOP_WITHIN_MS = 5_000;

/** A server that keeps everything in memory, for tests. */
export class TestServer implements AsyncDisposable {
  /** Its address, for `servers` of a client. */
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #clients: Client[] = [];
  readonly #kill: () => void;

  /** @internal */
  constructor(url: string, process: ChildProcess, kill: () => void) {
    this.url = url;
    this.#process = process;
    this.#kill = kill;
  }

  /** A client of this server, which is closed with it. */
  client(options: Omit<ClientOptions, "servers"> = {}): Client {
    const client = new Client({ ...options, servers: this.url });
    this.#clients.push(client);
    return client;
  }

  /** Ends the server, and with it all its data. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    process.off("exit", this.#kill);
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    const late = setTimeout(this.#kill, STOP_WITHIN_MS);
    await ended;
    clearTimeout(late);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/**
 * Starts a server that keeps everything in memory.
 *
 * @example
 * let server: TestServer;
 * beforeAll(async () => { server = await startServer(); });
 * afterAll(() => server.stop());
 */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const bin = options.bin ?? (process.env.SLUICE_BIN || "sluice");
  const listen = options.listen ?? (process.env.SLUICE_TEST_LISTEN || "127.0.0.1:0");
  const args = ["serve", "--memory", "--json", "--listen", listen, ...(options.args ?? [])];
  // Neither settings of this shell nor a configuration file of this folder are meant for it.
  const child = spawn(bin, args, { cwd: tmpdir(), env: ownEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  try {
    return new TestServer(await addressOf(child, bin), child, kill);
  } catch (error) {
    process.off("exit", kill);
    kill();
    throw error;
  }
}

function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SLUICE_")));
}

/** Waits for the line with which the server tells that it is ready. */
async function addressOf(child: ChildProcess, bin: string): Promise<string> {
  let log = "";
  child.stderr?.on("data", (text) => (log = `${log}${text}`.slice(-4_096)));
  const failed = new Promise<never>((_, reject) => {
    child.once("error", (cause) => reject(cannotStart(bin, cause.message, cause)));
    child.once("close", () => reject(cannotStart(bin, log.trim())));
  });
  failed.catch(() => undefined);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await Promise.race([once(lines, "line"), failed])) as [string];
  return (JSON.parse(line) as { url: string }).url;
}

function cannotStart(bin: string, reason: string, cause?: Error): SluiceError {
  const text = `cannot start ${bin}, set SLUICE_BIN to the path of the sluice program: ${reason}`;
  return new SluiceError("failed", text, { cause });
}
