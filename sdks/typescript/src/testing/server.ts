import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { Client } from "../client.js";
import { SluiceError } from "../core/errors.js";
import type { TestTime } from "../gen/sluice/v1/testing_pb.js";
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

/** A time by which a server for tests is moved; the parts are added up. */
export interface Advance {
  days?: number;
  hours?: number;
  minutes?: number;
  seconds?: number;
  milliseconds?: number;
}

/** What a server says when it is ready. */
interface Ready {
  url: string;
  /** Files to reach it with, if it has made them. */
  credentials?: { ca: string; cert: string; key: string } | null;
}

/** Time after which a server that was told to stop is killed. */
const STOP_WITHIN_MS = 5_000;

/** A server for tests: it keeps everything in memory, and `advance` moves its time. */
export class TestServer implements AsyncDisposable {
  /** Its address, for `servers` of a client. */
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #clients: Client[] = [];
  readonly #kill: () => void;
  /** The client that moves the time. */
  readonly #mover: Client;

  /** @internal */
  constructor(ready: Ready, process: ChildProcess, kill: () => void) {
    this.url = ready.url;
    this.#process = process;
    this.#kill = kill;
    const made = ready.credentials;
    const tls = made
      ? { ca: readFileSync(made.ca), cert: readFileSync(made.cert), key: readFileSync(made.key) }
      : undefined;
    this.#mover = this.client({ tls });
  }

  /**
   * Moves the time of the server forward, and returns it. Whatever is due by then is done when this returns:
   * delays, leases and times to live are over, and schedules have fired for each time in between.
   */
  async advance(by: Advance): Promise<Date> {
    return dateOf(await this.#mover.calls.testing.advance({ advanceMs: BigInt(milliseconds(by)) }));
  }

  /** The time of the server. */
  async now(): Promise<Date> {
    return dateOf(await this.#mover.calls.testing.getTime({}));
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

function milliseconds(by: Advance): number {
  const { days = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0 } = by;
  const sum = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + milliseconds;
  if (!(sum >= 0 && Number.isFinite(sum))) {
    throw new RangeError(`the time moves forward only, not by ${sum} ms`);
  }
  return Math.floor(sum);
}

function dateOf(time: TestTime): Date {
  return new Date(Number(time.nowMs));
}

/**
 * Starts a server that keeps everything in memory, and whose time a test can move.
 *
 * @example
 * let server: TestServer;
 * beforeAll(async () => { server = await startServer(); });
 * afterAll(() => server.stop());
 */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const bin = options.bin ?? (process.env.SLUICE_BIN || "sluice");
  const listen = options.listen ?? (process.env.SLUICE_TEST_LISTEN || "127.0.0.1:0");
  const args = ["serve", "--test", "--listen", listen, ...(options.args ?? [])];
  // Its stdin is a pipe, with whose end it ends: also when this process is killed.
  const child = spawn(bin, args, { cwd: tmpdir(), env: ownEnvironment(), stdio: ["pipe", "pipe", "pipe"] });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  try {
    return new TestServer(await readyOf(child, bin), child, kill);
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
async function readyOf(child: ChildProcess, bin: string): Promise<Ready> {
  let log = "";
  child.stderr?.on("data", (text) => (log = `${log}${text}`.slice(-4_096)));
  const failed = new Promise<never>((_, reject) => {
    child.once("error", (cause) => reject(cannotStart(bin, cause.message, cause)));
    child.once("close", () => reject(cannotStart(bin, log.trim())));
  });
  failed.catch(() => undefined);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await Promise.race([once(lines, "line"), failed])) as [string];
  return JSON.parse(line) as Ready;
}

function cannotStart(bin: string, reason: string, cause?: Error): SluiceError {
  const text = `cannot start ${bin}, set SLUICE_BIN to the path of the sluice program: ${reason}`;
  return new SluiceError("failed", text, { cause });
}
